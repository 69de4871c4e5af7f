//! One walk over the steps of a blueprint for one owner.
//!
//! [`realization`] is the machine: it asks for one thing after another and is answered. [`prepare`] brings a step to its
//! question: it chooses the template, renders it and decorates the object. [`observe`] makes the end of the step from the
//! answer. A step that writes to an environment, or validates one, takes a longer way: it looks at what is there
//! ([`guarding`]) before it writes ([`arrivals`]) or runs ([`trials`]). [`conclusion`] ends the walk: it says what is to be
//! deleted ([`orphans`]) and what to report.

pub(crate) mod arrivals;
pub(crate) mod conclusion;
pub(crate) mod guarding;
pub(crate) mod observe;
pub(crate) mod orphans;
pub(crate) mod prepare;
pub(crate) mod realization;
pub(crate) mod trials;
