//! What passes between the engine and the shell around it.
//!
//! The engine asks ([`Ask`]), the shell does and feeds back ([`Rendered`], [`Observation`]), and at the
//! end the engine says what follows ([`Outcome`]). Everything here is a plain value.
//!
//! ```text
//!             next()                       record_*()
//! engine ───────────────▶ shell ─▶ cluster ───────────────▶ engine ─▶ conclude() ─▶ report() ─▶ Outcome
//! ```

mod ask;
mod observation;
mod outcome;
mod submission;

pub use api_types::Lifecycle;

pub use ask::*;
pub use observation::*;
pub use outcome::*;
pub use submission::*;
