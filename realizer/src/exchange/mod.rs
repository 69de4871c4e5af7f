//! What passes between the engine and the shell around it.
//!
//! The engine asks ([`Ask`]), the shell does and feeds back ([`Rendered`], [`Observation`]), and at the
//! end the engine says what follows ([`Outcome`]). Everything here is a plain value.
//!
//! ```text
//!             next()                       record_*()
//! engine ───────────────▶ shell ─▶ cluster ───────────────▶ engine ─▶ conclude() ─▶ report() ─▶ Outcome
//! ```
//!
//! `ask` has what the engine asks for, `submission` what it wants to be in the cluster, `observation` what the shell found or why it
//! failed, `other_object` what is read beside it, `outcome` what follows: status, events, deletions, when to look again. `artifact` is
//! what is known of outputs that are kept outside of status.

mod artifact;
mod ask;
mod observation;
mod other_object;
mod outcome;
mod submission;

pub use api_types::Lifecycle;

pub use artifact::{ArtifactWrite, KnownArtifact, KnownArtifacts, identity_of, previews};
pub(crate) use artifact::{digest_of, kept_in};
pub use ask::*;
pub use observation::*;
pub use other_object::*;
pub use outcome::*;
pub use submission::*;
