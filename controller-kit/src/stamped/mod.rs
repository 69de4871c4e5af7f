//! What the cluster holds of the kinds that templates stamp.
//!
//! One watch per kind, shared by all owners, selected by a label that every stamped object carries,
//! started on first use, dropped when no owner uses the kind. A member must also have a controller owner
//! reference: Tekton, Knative and kpack copy labels to their children.

mod follow;
pub(crate) mod managed;
mod object;
mod projection;
mod store;
mod values;
mod vigil;
mod watch;

pub(crate) use object::owner_mark_text;
pub use object::{ControllerRef, KnownAs, ObjectKey, Stamped};
pub use projection::Projection;
pub use store::{Store, Touched};
pub use values::{OwnedValues, State};
pub(crate) use watch::LISTING_PATIENCE;
pub use watch::{KindWatch, Moved, Readiness, StampedWatches, Wake, WatchSettings};
