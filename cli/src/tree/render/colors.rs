//! Marks and colours.

use api_types::{Condition, ConditionStatus, ConditionType, ValidationVerdict};

use crate::tree::{State, Step};

/// Whether the lines carry colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    /// For a terminal.
    On,
    /// For files and pipes.
    Off,
}

#[derive(Clone, Copy)]
pub(super) enum Style {
    Good,
    Bad,
    Waiting,
    Faint,
    Strong,
}

impl Colors {
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            _ if self == Self::Off => return text.to_owned(),
            Style::Good => "32",
            Style::Bad => "31",
            Style::Waiting => "33",
            Style::Faint => "2",
            Style::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Conditions that exist only while something is so are no good news when true: a revision that is held back waits,
    /// anything else is a problem.
    pub(super) fn condition_mark(self, condition: &Condition) -> String {
        let mut extra = ConditionType::ALL.into_iter().filter(|it| it.is_extra());
        match extra.find(|extra| condition.is(*extra)) {
            Some(ConditionType::UpdateHeld | ConditionType::Reconciling) => {
                self.mark(ConditionStatus::Unknown)
            }
            Some(_) => self.paint(Style::Bad, "!"),
            None => self.mark(condition.status),
        }
    }

    /// What a validation says: only one that has ended is marked as good or bad.
    pub(super) fn verdict_mark(self, verdict: ValidationVerdict) -> String {
        match verdict {
            ValidationVerdict::Succeeded => self.mark(ConditionStatus::True),
            ValidationVerdict::Failed | ValidationVerdict::TimedOut => {
                self.mark(ConditionStatus::False)
            }
            ValidationVerdict::Running => self.mark(ConditionStatus::Unknown),
            ValidationVerdict::Pending | ValidationVerdict::Skipped => {
                self.paint(Style::Faint, "·")
            }
        }
    }

    /// A step whose inputs are not there does not fail: it is not its turn.
    pub(super) fn step_mark(self, step: &Step) -> String {
        if step.status() != ConditionStatus::True && !step.waiting_for.is_empty() {
            self.paint(Style::Faint, "·")
        } else {
            self.mark(step.status())
        }
    }

    pub(super) fn state_mark(self, state: Option<State>) -> String {
        match state {
            Some(State::Ready) => self.mark(ConditionStatus::True),
            Some(State::Waiting) => self.mark(ConditionStatus::Unknown),
            Some(State::Failing) => self.mark(ConditionStatus::False),
            None => self.paint(Style::Faint, "?"),
        }
    }

    pub(super) fn mark(self, status: ConditionStatus) -> String {
        match status {
            ConditionStatus::True => self.paint(Style::Good, "✓"),
            ConditionStatus::False => self.paint(Style::Bad, "✗"),
            ConditionStatus::Unknown => self.paint(Style::Waiting, "…"),
        }
    }
}
