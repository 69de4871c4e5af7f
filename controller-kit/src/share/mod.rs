//! Several replicas of one controller that share the owners without being told how
//! (docs/adr/0040-replicas-share-the-owners-by-one-lease.md).
//!
//! ```text
//! Lease ◀─ renewed ─ replica.rs ─▶ record.rs: who shares, and who claims what ─▶ standing.rs: what is held
//!                                                                                   │
//!             watches keep what is accepted, reconciles begin in what is held ◀─────┘
//! ```

mod excluded;
mod gained;
mod own;
mod part;
mod reading;
mod record;
mod replica;
mod standing;
#[cfg(test)]
pub(crate) mod tests;
mod view;

pub(crate) use gained::{Beside, DueListing, Gained, Growth, Open, PAGE_BESIDE};
pub use own::{MayShare, OwnShare, Permit};
pub use part::{Part, Share};
pub(crate) use reading::Held;
pub use record::{Entry, MOST_REPLICAS, Myself, Numbered, Record};
pub(crate) use replica::take_part;
pub use replica::{RECORD, TOGETHER};
pub use standing::Standing;
pub use view::{Identity, View};
