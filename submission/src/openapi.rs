//! What the schema of a kind says of an object that is to be applied.
//!
//! Server-side apply wants every field declared and every list-map key once; the Go controller's merge
//! patch did not. An owner whose template adds `env` to the owner's own `env`, or that sets a field the
//! kind forgot to declare, worked for years. The API server answers a plain 500 with the text
//! `failed to create typed patch object`; then, and only then, the kind's OpenAPI schema is read and the
//! object made to fit it ([`conform`]). Nulls where the kind knows none are left out beforehand
//! ([`leave_out_nulls`]).
//!
//! Memory: a published document describes hundreds of kinds. It is compiled to [`KindSchema`] for the one
//! kind asked for, and dropped (incident: kubernetes-sigs/kro#724).

mod compile;
mod conform;
mod document;
mod nulls;
#[cfg(test)]
mod tests;

use kube_core::Status;

pub use compile::KindSchema;
pub use conform::conform;
pub use nulls::{has_nulls, leave_out_nulls};

/// Whether server-side apply refused an object because it does not fit the kind's schema.
///
/// Beside what the shell asks of a 500, this is the only place in the product that looks at error text: the API server
/// gives this refusal no code and no reason of its own.
pub fn is_typed_patch_failure(status: &Status) -> bool {
    status.code == 500
        && status
            .message
            .contains("failed to create typed patch object")
}
