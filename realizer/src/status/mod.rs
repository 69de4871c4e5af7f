//! What is told of an owner or a blueprint: conditions, entries of steps, events, and what to do.
//!
//! [`conditions`] adds conditions up to `Ready`. [`entry`] writes the entry of one step, [`environments`] what there is to
//! say of environments, and [`report`] what every report has besides. [`events`] are the texts of events. [`progress`] says
//! in one line what an owner waits for, and [`advice`] what somebody can do about it. Both follow from [`explanation`], the
//! tree of all reasons. [`unrealized`] reports an owner that comes to no walk at all, [`blueprint_status`] a blueprint. All
//! reasons are typed until they are put into a condition.
//!
//! A new reason is a variant of `api_types::Reason`; [`advice`] then says what to do about it. Which error has it is
//! decided by the one table in `step::error`.

pub(crate) mod advice;
pub(crate) mod blueprint_status;
pub(crate) mod conditions;
pub(crate) mod entry;
pub(crate) mod environments;
pub(crate) mod events;
pub mod explanation;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod unrealized;
