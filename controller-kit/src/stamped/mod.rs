//! What the cluster holds of the kinds that templates stamp.
//!
//! One watch per kind, shared by all owners, selected by a label that every stamped object carries,
//! started on first use, dropped when no owner uses the kind. A member must also have a controller owner
//! reference: Tekton, Knative and kpack copy labels to their children.

mod follow;
mod kind_watch;
mod object;
mod projection;
#[cfg(test)]
mod scripted;
mod store;
mod vigil;
mod watch;

pub(crate) use kind_watch::LISTING_PATIENCE;
pub use kind_watch::{KindWatch, Readiness};
pub use object::{ControllerRef, KnownAs, ObjectKey, Stamped};
pub use projection::Projection;
pub use store::{Store, Touched};
pub use watch::{HearsOthers, Moved, STALE_AFTER, StampedWatches, Wake, WatchSettings};
