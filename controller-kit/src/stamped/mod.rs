//! What the cluster holds of the kinds that templates stamp.
//!
//! One watch per kind, shared by all owners, selected by a label that every stamped object carries,
//! started on first use, dropped when no owner uses the kind. A member must also have a controller owner
//! reference: Tekton, Knative and kpack copy labels to their children.

mod follow;
mod foreign_watches;
mod kind_watch;
mod object;
mod projection;
mod store;
mod uses;
mod watch;

pub use crate::object_key::ObjectKey;
pub(crate) use kind_watch::LISTING_PATIENCE;
pub use kind_watch::{KindWatch, Readiness};
pub(crate) use object::string_map;
pub use object::{KnownAs, Stamped};
pub use projection::Projection;
pub use store::{Store, Touched};
pub use submission::ControllerRef;
pub use watch::{HearsOthers, Moved, STALE_AFTER, StampedWatches, Wake, WatchSettings};
