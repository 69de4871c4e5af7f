//! The conditions of a PodIntent: the only place where their types and reasons exist as text.

use std::borrow::Cow;

use api_types::condition::{MAX_MESSAGE_CHARS, cut, whole_seconds};
use api_types::{Condition, ConditionStatus, ConditionType, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The condition that [`ConditionType::Ready`] follows.
pub const CONVENTIONS_APPLIED: &str = "ConventionsApplied";
/// A condition that is there only while some convention makes another template of the same inputs again and again.
pub const CONVENTIONS_SETTLED: &str = "ConventionsSettled";

/// A condition that is there only while something that is needed cannot be read, and nobody who
/// reads the status can mend it. The other conditions are what they were.
pub const INPUTS_READABLE: &str = "InputsReadable";

/// Why a condition of a PodIntent has its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntentReason {
    /// Nothing is known yet.
    Initializing,
    /// All conventions were applied.
    Applied,
    /// The certificate authority of a convention is not known.
    CaBundleResolutionFailed,
    /// There are no credentials for the images.
    ImageResolutionFailed,
    /// Which conventions are to be applied is not known.
    LabelSelector,
    /// An image could not be read or a webhook failed; of Ready also that all is well.
    ConventionsApplied,
    /// The template cannot be stored: mostly since a convention answered with one that is none.
    TemplateNotStorable,
    /// A convention makes another template of the same inputs each time.
    OutputUnstable,
    /// The API server, or what stands behind it, has not carried out a request for half a minute.
    ApiServerUnavailable,
}

impl IntentReason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Initializing,
        Self::Applied,
        Self::CaBundleResolutionFailed,
        Self::ImageResolutionFailed,
        Self::LabelSelector,
        Self::ConventionsApplied,
        Self::TemplateNotStorable,
        Self::OutputUnstable,
        Self::ApiServerUnavailable,
    ];

    /// The text of `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "Initializing",
            Self::Applied => "Applied",
            Self::CaBundleResolutionFailed => "CABundleResolutionFailed",
            Self::ImageResolutionFailed => "ImageResolutionFailed",
            Self::LabelSelector => "LabelSelector",
            Self::ConventionsApplied => CONVENTIONS_APPLIED,
            Self::TemplateNotStorable => "TemplateNotStorable",
            Self::OutputUnstable => "OutputUnstable",
            Self::ApiServerUnavailable => text_of(&UNAVAILABLE),
        }
    }
}

/// As other kinds of ours say it.
static UNAVAILABLE: Reason = Reason::ApiServerUnavailable;

/// The text of a reason that is one of its own, and not made of another text.
fn text_of(reason: &'static Reason) -> &'static str {
    match reason.as_str() {
        Cow::Borrowed(text) => text,
        Cow::Owned(_) => "",
    }
}

/// What is to be said of a PodIntent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    status: ConditionStatus,
    reason: IntentReason,
    message: String,
}

impl Verdict {
    /// Nothing is known yet.
    pub const INITIALIZING: Self = Self {
        status: ConditionStatus::Unknown,
        reason: IntentReason::Initializing,
        message: String::new(),
    };
    /// All conventions were applied.
    pub const APPLIED: Self = Self {
        status: ConditionStatus::True,
        reason: IntentReason::Applied,
        message: String::new(),
    };

    /// Something failed. A message longer than conditions may have is cut.
    pub fn failed(reason: IntentReason, message: String) -> Self {
        Self {
            status: ConditionStatus::False,
            reason,
            message: cut(message, MAX_MESSAGE_CHARS),
        }
    }

    /// Why.
    pub fn reason(&self) -> IntentReason {
        self.reason
    }

    /// Why, for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The conditions, sorted by type. One that says what it said before keeps its time.
    ///
    /// ```
    /// use conventions::condition::Verdict;
    /// use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    ///
    /// let (now, later) = (Time(Timestamp::from_second(10)?), Time(Timestamp::from_second(20)?));
    /// let before = Verdict::APPLIED.conditions(&[], &now);
    /// let said: Vec<_> = before.iter().map(|it| (it.type_.as_str(), it.status.as_str(), it.reason.as_str())).collect();
    /// assert_eq!(said, [("ConventionsApplied", "True", "Applied"), ("Ready", "True", "ConventionsApplied")]);
    /// assert_eq!(Verdict::APPLIED.conditions(&before, &later), before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn conditions(&self, before: &[Condition], now: &Time) -> Vec<Condition> {
        let ready = match self.status {
            ConditionStatus::True => IntentReason::ConventionsApplied,
            ConditionStatus::False | ConditionStatus::Unknown => self.reason,
        };
        let of = |type_: &str, reason: IntentReason| {
            let message = self.message.clone();
            condition(type_, (self.status, reason, message), before, now)
        };
        vec![
            of(CONVENTIONS_APPLIED, self.reason),
            of(ConditionType::Ready.as_str(), ready),
        ]
    }

    /// The reason that a condition Ready has, as one of a few words.
    pub fn label(reason: &str) -> &'static str {
        let known = IntentReason::ALL.into_iter().map(IntentReason::as_str);
        known
            .into_iter()
            .find(|it| *it == reason)
            .unwrap_or("other")
    }
}

/// A condition that says so, since when it has.
fn condition(
    type_: &str,
    (status, reason, message): (ConditionStatus, IntentReason, String),
    before: &[Condition],
    now: &Time,
) -> Condition {
    let condition = Condition {
        type_: type_.to_owned(),
        status,
        reason: reason.as_str().to_owned(),
        message: cut(message, MAX_MESSAGE_CHARS),
        last_transition_time: whole_seconds(now),
        observed_generation: None,
    };
    let same = before.iter().find(|it| it.says_the_same_as(&condition));
    same.cloned().unwrap_or(condition)
}

/// What is said of conventions that never settle; nothing if all do.
///
/// ```
/// use conventions::condition::unsettled;
/// use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
///
/// let now = Time(Timestamp::UNIX_EPOCH);
/// assert!(unsettled(&[], &[], &now).is_none());
/// let condition = unsettled(&["random"], &[], &now).unwrap();
/// assert_eq!(condition.message, "these conventions make another template each time, of the same inputs: random");
/// ```
pub fn unsettled(names: &[&str], before: &[Condition], now: &Time) -> Option<Condition> {
    if names.is_empty() {
        return None;
    }
    let message = format!(
        "these conventions make another template each time, of the same inputs: {}",
        names.join(", ")
    );
    let said = (
        ConditionStatus::False,
        IntentReason::OutputUnstable,
        message,
    );
    Some(condition(CONVENTIONS_SETTLED, said, before, now))
}

/// The conditions where something has not been readable for long. One that says so already stays:
/// the next try may fail in other words.
///
/// ```
/// use conventions::condition::{Verdict, while_unreadable, without_trouble};
/// use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
///
/// let now = Time(Timestamp::UNIX_EPOCH);
/// let good = Verdict::APPLIED.conditions(&[], &now);
/// let troubled = while_unreadable(&good, "no answer", &now);
/// let said: Vec<_> = troubled.iter().map(|it| (it.type_.as_str(), it.status.as_str())).collect();
/// assert_eq!(said, [("ConventionsApplied", "True"), ("InputsReadable", "False"), ("Ready", "True")]);
/// assert_eq!(while_unreadable(&troubled, "a reset", &now), troubled);
/// assert_eq!(without_trouble(&troubled), good);
/// assert_eq!(while_unreadable(&[], "no answer", &now)[2].status.as_str(), "Unknown");
/// ```
pub fn while_unreadable(before: &[Condition], message: &str, now: &Time) -> Vec<Condition> {
    let is_known = |type_: &str| before.iter().any(|it| it.type_ == type_);
    if is_known(INPUTS_READABLE) {
        return before.to_vec();
    }
    let mut conditions = if is_known(CONVENTIONS_APPLIED) {
        before.to_vec()
    } else {
        Verdict::INITIALIZING.conditions(before, now)
    };
    let said = (
        ConditionStatus::False,
        IntentReason::ApiServerUnavailable,
        message.to_owned(),
    );
    conditions.push(condition(INPUTS_READABLE, said, before, now));
    conditions.sort_by(|left, right| left.type_.cmp(&right.type_));
    conditions
}

/// The conditions where all is readable again.
pub fn without_trouble(conditions: &[Condition]) -> Vec<Condition> {
    let others = conditions.iter().filter(|it| it.type_ != INPUTS_READABLE);
    others.cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn said(verdict: &Verdict) -> Vec<(String, &'static str, String, String)> {
        let conditions = verdict.conditions(&[], &at(0));
        let said = conditions.into_iter();
        said.map(|it| (it.type_, it.status.as_str(), it.reason, it.message))
            .collect()
    }

    #[test]
    fn ready_follows_what_was_applied() {
        let owned = |type_: &str, status, reason: &str, message: &str| {
            (
                type_.to_owned(),
                status,
                reason.to_owned(),
                message.to_owned(),
            )
        };
        for (verdict, status, reason, of_ready, message) in [
            (
                Verdict::INITIALIZING,
                "Unknown",
                "Initializing",
                "Initializing",
                "",
            ),
            (
                Verdict::APPLIED,
                "True",
                "Applied",
                "ConventionsApplied",
                "",
            ),
            (
                Verdict::failed(IntentReason::LabelSelector, "why".to_owned()),
                "False",
                "LabelSelector",
                "LabelSelector",
                "why",
            ),
        ] {
            assert_eq!(
                said(&verdict),
                [
                    owned("ConventionsApplied", status, reason, message),
                    owned("Ready", status, of_ready, message),
                ]
            );
        }
    }

    #[test]
    fn time_moves_only_with_what_is_said() {
        let failed =
            |message: &str| Verdict::failed(IntentReason::ConventionsApplied, message.to_owned());
        let before = failed("one").conditions(&[], &at(1));
        assert_eq!(failed("one").conditions(&before, &at(2)), before);
        let after = failed("two").conditions(&before, &at(2));
        assert!(after.iter().all(|it| it.last_transition_time == at(2)));
        let mut forged = before;
        forged.reverse();
        let again = failed("one").conditions(&forged, &at(3));
        assert_eq!(again[0].type_, CONVENTIONS_APPLIED);
        assert!(again.iter().all(|it| it.last_transition_time == at(1)));
    }

    #[test]
    fn a_message_is_no_longer_than_the_schema_allows() {
        let long = "é".repeat(MAX_MESSAGE_CHARS + 5);
        let verdict = Verdict::failed(IntentReason::ConventionsApplied, long);
        for condition in verdict.conditions(&[], &at(0)) {
            assert_eq!(condition.message.chars().count(), MAX_MESSAGE_CHARS);
        }
    }

    #[test]
    fn every_reason_has_its_own_text_that_the_schema_accepts() {
        let texts: BTreeSet<_> = IntentReason::ALL.map(IntentReason::as_str).into();
        assert_eq!(texts.len(), IntentReason::ALL.len());
        assert!(texts.contains("APIServerUnavailable"), "as in other kinds");
        assert!(
            texts
                .iter()
                .all(|text| api_types::condition::is_valid_reason(text))
        );
    }
}
