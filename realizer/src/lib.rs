//! The realization engine: decides what to stamp and what to report, without any I/O.
//!
//! ```text
//!  Owner ───┐  select_blueprint                    ┌─▶ Ask::Render ─▶ record_rendered ─┐
//!           ├────────────────▶ Realization ────────┤                                   ├─▶ …
//!  Blueprint┘                  next()              ├─▶ Ask::Look ───▶ record_looked ───┤
//!                                   │              ├─▶ Ask::Submit ─▶ record_observed ─┤
//!                                   │              └─▶ Ask::Read ───▶ record_read ─────┘
//!                                   │ Done
//!                                   ▼
//!                  conclude(known) ─▶ Conclusion ─▶ removals() ─▶ report(failed) ─▶ Outcome
//! ```
//!
//! Where to find what:
//!
//! | module | what it is about |
//! |---|---|
//! | `exchange` | the plain values that pass between the engine and the shell |
//! | `owner` | a Workload or Deliverable, its status, its ancestors; [`Family`] says in what the two differ |
//! | `blueprint` | a supply chain or delivery: which one an owner gets, and in which order its steps come |
//! | `template` | from a template and its inputs to an object, and from the object to outputs and health |
//! | `step` | what became of one step: its end, or its error with condition and retry |
//! | `environment` | when what is deployed and validated may be changed |
//! | `status` | conditions, entries, events, and what somebody can do |
//! | `walk` | one walk over all steps, from the first question to what is deleted and reported |
//! | `runnable` | the machine of Runnables |
//! | `values` | JSON as such: paths, requirements, digests, secret texts |
//! | [`offline`] | a cluster in memory, to walk without an API server |
//!
//! - [`Owner`], [`Blueprint`] and [`Template`] are compiled once per resourceVersion; a walk only borrows them.
//! - There is one algorithm. In what Workload and Deliverable differ is in [`Family`], and nowhere else.
//! - The engine holds nothing between walks: what it must remember is in the owner's status and on the objects.
//! - A deployment with validations behind it is looked at before it is written, and written only when a status that was
//!   stored says that all of them have ended for what is there.
//! - An error in one step never stops the others. What a failing step once made stays as it is, in the cluster and in
//!   status.

// Adding a variant to an enum must be a compile error in every match.
#![warn(clippy::wildcard_enum_match_arm)]

mod blueprint;
mod environment;
mod exchange;
pub mod offline;
mod owner;
pub mod runnable;
mod status;
mod step;
mod template;
mod values;
mod walk;

pub use blueprint::graph::GraphWarning;
pub use blueprint::select::{Selection, select_blueprint, weigh_blueprints};
pub use blueprint::{Blueprint, BlueprintError, DEFAULT_SERVICE_ACCOUNT};
pub use exchange::*;
pub use owner::family::Family;
pub use owner::{Owner, OwnerError, lineage};
pub use status::advice::Advice;
pub use status::blueprint_status::blueprint_status;
pub use status::explanation;
pub use status::unrealized::{Unrealized, report_unrealized};
pub use template::{MANAGED_FIELDS, Template, TemplateError, TemplateSource, TemplateState};
pub use values::status_key::StatusKey;
pub use walk::conclusion::{Conclusion, KnownObject};
pub use walk::realization::Realization;
