//! What became of one step of a walk.
//!
//! A step ends in one of three ways ([`end`]): its object was submitted, it passed an input through, or it failed.
//! [`error`] lists every way to fail and says in one table which condition, which retry and which urgency follow.
//! [`state`] is what a walk knows of its steps; nothing else may change it. The walk makes these values, and `status`
//! tells of them.

pub(crate) mod end;
pub(crate) mod error;
pub(crate) mod state;
