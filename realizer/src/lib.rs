//! The realization engine: decides what to stamp and what to report, without any I/O.
//!
//! ```text
//!  Owner ──┐  select_blueprint                     ┌─▶ Step::Render ─▶ record_rendered ─┐
//!          ├─────────────────▶ Realization ────────┤                                    ├─▶ …
//!  Blueprint┘                  next_step()         ├─▶ Step::Look ───▶ record_looked ───┤
//!                                   │              └─▶ Step::Submit ─▶ record_observed ─┘
//!                                   │ Done
//!                                   ▼
//!                  conclude(known) ─▶ Conclusion ─▶ removals() ─▶ report(failed) ─▶ Outcome
//! ```
//!
//! - [`Owner`], [`Blueprint`] and [`Template`] are compiled once per resourceVersion; a walk only borrows them.
//! - There is one algorithm. In what Workload and Deliverable differ is in [`Family`], and nowhere else.
//! - The engine holds nothing between walks: what it must remember is in the owner's status and on the objects.
//! - A deployment with validations behind it is looked at before it is written, and written only when a status that was
//!   stored says that all of them have ended for what is there.
//! - An error in one step never stops the others. What a failing step once made stays as it is, in the cluster and in
//!   status.

// What is new in an enum is decided about wherever the enum is told apart.
#![warn(clippy::wildcard_enum_match_arm)]

mod advice;
mod arrivals;
mod blueprint;
mod blueprint_status;
mod body;
mod canonical;
mod conclusion;
mod conditions;
mod context;
mod deployment;
mod entry;
mod environment;
mod error;
mod events;
mod exchange;
mod family;
mod family_members;
mod field_path;
mod graph;
mod guarding;
mod health;
mod judgement;
pub mod lineage;
mod matching;
mod observe;
mod orphans;
mod outputs;
mod own_status;
mod owner;
mod owner_status;
mod params;
mod prepare;
mod progress;
mod realization;
mod redaction;
mod report;
pub mod runnable;
mod runs;
mod select;
mod stamp;
mod status_key;
mod step_end;
mod survey;
mod template;
mod trials;
mod typed_view;
mod unrealized;
mod ytt;

pub use advice::Advice;
pub use blueprint::{Blueprint, BlueprintError};
pub use blueprint_status::blueprint_status;
pub use conclusion::{Conclusion, KnownObject};
pub use exchange::*;
pub use family::Family;
pub use graph::GraphWarning;
pub use owner::{Owner, OwnerError};
pub use progress::Standing;
pub use realization::Realization;
pub use select::{Selection, select_blueprint};
pub use stamp::Labels;
pub use status_key::StatusKey;
pub use template::{Template, TemplateError, TemplateSource, TemplateState};
pub use unrealized::{Unrealized, report_unrealized};
