//! What became of a PodIntent, and what its status says then.

use std::collections::BTreeMap;

use convention_protocol::PodTemplate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value};

use crate::condition::{self, IntentReason, Verdict};
use crate::considered::{self, bounded, bounded_images};
use crate::intent::{ConsideredConvention, PodIntentStatus, ResolvedImage};
use crate::schema::shape::Fault;
use crate::select::SelectionError;

/// Why conventions could not be applied. Each is for somebody to put right; an API server that does not answer is not
/// among them, since then nothing is known, and nothing is said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The certificate authority of a convention is not known.
    #[error("failed to authenticate: {cause}")]
    CaBundle {
        /// Why.
        cause: String,
    },
    /// There are no credentials for the images.
    #[error("failed to authenticate: {cause}")]
    Credentials {
        /// Why.
        cause: String,
    },
    /// A Secret that is needed may not be read.
    #[error("failed to authenticate: {cause}")]
    Forbidden {
        /// The reason of the condition, which says what for.
        reason: IntentReason,
        /// What the API server said.
        cause: String,
    },
    /// Which conventions are to be applied is not known.
    #[error("filtering conventions failed: {0}")]
    Selection(#[from] SelectionError),
    /// A convention that may be for this PodIntent cannot be read.
    #[error(
        "filtering conventions failed: ClusterPodConvention {convention:?} cannot be read: {cause}"
    )]
    Unreadable {
        /// The convention.
        convention: String,
        /// Why.
        cause: String,
    },
    /// Images could not be read: by image, why.
    #[error("{}", images_message(.causes))]
    Images {
        /// By image, why.
        causes: BTreeMap<String, String>,
    },
    /// A webhook failed.
    #[error("failed to apply convention with name {convention}: {cause}")]
    Webhook {
        /// The convention.
        convention: String,
        /// Why.
        cause: String,
    },
    /// The template is too large to be stored a second time, with no convention to blame.
    #[error("the template cannot be stored: {0}")]
    TooLarge(Fault),
    /// What a convention answered cannot be stored.
    #[error("convention {convention} answered with a template that cannot be stored: {fault}")]
    NotStorable {
        /// The convention.
        convention: String,
        /// The field, and what is wrong there.
        fault: Fault,
    },
}

/// All images that failed, in their order.
fn images_message(causes: &BTreeMap<String, String>) -> String {
    let causes = causes.iter();
    let causes: Vec<String> = causes
        .map(|(image, cause)| format!("image: \"{image}\" error: {cause}"))
        .collect();
    format!("failed to fetch metadata for Images: {}", causes.join("; "))
}

impl Failure {
    /// What the API server says of a template that is too large for its store.
    pub fn too_large(said: &str) -> Self {
        Self::TooLarge(Fault {
            field: "status.template".to_owned(),
            problem: format!("Too long: {said}"),
        })
    }

    /// The reason of the condition that tells it.
    pub fn reason(&self) -> IntentReason {
        match self {
            Self::CaBundle { .. } => IntentReason::CaBundleResolutionFailed,
            Self::Credentials { .. } => IntentReason::ImageResolutionFailed,
            Self::Forbidden { reason, .. } => *reason,
            Self::Selection(_) | Self::Unreadable { .. } => IntentReason::LabelSelector,
            Self::Images { .. } | Self::Webhook { .. } => IntentReason::ConventionsApplied,
            Self::TooLarge(_) | Self::NotStorable { .. } => IntentReason::TemplateNotStorable,
        }
    }

    /// What is said of it.
    pub fn verdict(&self) -> Verdict {
        Verdict::failed(self.reason(), self.to_string())
    }
}

/// What a pass over a PodIntent came to.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The template, or why there is none.
    pub outcome: Result<PodTemplate, Failure>,
    /// [`crate::inputs::Inputs::digest`] of what it was made from.
    pub inputs_digest: String,
    /// [`crate::inputs::Inputs::digest_of_contents`] of what the template was made from, if nothing
    /// was left out.
    pub template_inputs_digest: String,
    /// The conventions that were considered.
    pub conventions: Vec<ConsideredConvention>,
    /// The images that were resolved.
    pub images: Vec<ResolvedImage>,
}

impl Pass {
    /// One that ended before any convention was asked: of them nothing new is known.
    pub fn failed(failure: Failure, before: &PodIntentStatus) -> Self {
        Self {
            outcome: Err(failure),
            inputs_digest: String::new(),
            template_inputs_digest: String::new(),
            conventions: before.conventions.clone(),
            images: Vec::new(),
        }
    }
}

/// The status after a pass over this generation. After a failure the template is still the last good one.
///
/// ```
/// use conventions::PodIntentStatus;
/// use conventions::outcome::{Failure, Pass, status_after};
/// use convention_protocol::PodTemplate;
/// use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
///
/// let now = Time(Timestamp::UNIX_EPOCH);
/// let failure = Failure::Webhook { convention: "add-env".to_owned(), cause: "connection refused".to_owned() };
/// let failed = Pass::failed(failure, &PodIntentStatus::default());
/// let made = Pass { outcome: Ok(PodTemplate::default()), inputs_digest: "sha256:1".to_owned(), ..failed.clone() };
/// let good = status_after(&PodIntentStatus::default(), 1, made, &now);
/// let bad = status_after(&good, 2, failed, &now);
/// assert_eq!(bad.template, good.template);
/// assert_eq!(bad.observed_generation, Some(2));
/// assert_eq!(bad.conditions[1].message, "failed to apply convention with name add-env: connection refused");
/// ```
pub fn status_after(
    before: &PodIntentStatus,
    generation: i64,
    pass: Pass,
    now: &Time,
) -> PodIntentStatus {
    let conventions = bounded(pass.conventions);
    let (verdict, stands) = match pass.outcome {
        Ok(template) => {
            let made = PodIntentStatus {
                template: Some(template),
                inputs_digest: pass.inputs_digest,
                template_inputs_digest: pass.template_inputs_digest,
                images: bounded_images(pass.images),
                ..PodIntentStatus::default()
            };
            (Verdict::APPLIED, made)
        }
        Err(failure) => {
            let last = PodIntentStatus {
                inputs_digest: String::new(),
                ..before.clone()
            };
            (failure.verdict(), last)
        }
    };
    let mut conditions = verdict.conditions(&before.conditions, now);
    let names: Vec<&str> = considered::unsettled(&conventions).collect();
    conditions.extend(condition::unsettled(&names, &before.conditions, now));
    conditions.sort_by(|left, right| left.type_.cmp(&right.type_));
    PodIntentStatus {
        observed_generation: Some(generation),
        conditions,
        conventions,
        ..stands
    }
}

/// Whether a status is worth no write, as the stored one says all of it already.
pub fn say_the_same(stored: &PodIntentStatus, made: &PodIntentStatus) -> bool {
    // Without copies of templates, which may be large.
    let PodIntentStatus {
        observed_generation,
        conditions,
        template,
        inputs_digest,
        template_inputs_digest,
        conventions,
        images,
    } = stored;
    (observed_generation, conditions, images)
        == (&made.observed_generation, &made.conditions, &made.images)
        && (inputs_digest, template_inputs_digest)
            == (&made.inputs_digest, &made.template_inputs_digest)
        && considered::say_the_same(conventions, &made.conventions)
        && is_stored_as(made.template.as_ref(), template.as_ref())
}

/// Whether a template would be stored as this one. The API server adds defaults to what is written; that nothing was taken out
/// of the template is told by the digests of what it was made from and of what each convention made.
fn is_stored_as(made: Option<&PodTemplate>, stored: Option<&PodTemplate>) -> bool {
    match (made, stored) {
        (Some(made), Some(stored)) => {
            made.metadata == stored.metadata
                && match (&made.spec, &stored.spec) {
                    (Some(made), Some(stored)) => are_filled_in(made, stored),
                    (made, stored) => made == stored,
                }
        }
        (made, stored) => made.is_none() && stored.is_none(),
    }
}

/// Whether these are others with defaults, which are single values.
fn are_filled_in(made: &Map<String, Value>, stored: &Map<String, Value>) -> bool {
    let is_kept = |(name, made): (&String, &Value)| {
        let stored = stored.get(name);
        stored.is_some_and(|stored| is_filled_in(made, stored))
    };
    let mut added = stored.iter().filter(|(name, _)| !made.contains_key(*name));
    made.iter().all(is_kept) && added.all(|(_, it)| it.is_string() || it.is_boolean())
}

fn is_filled_in(made: &Value, stored: &Value) -> bool {
    match (made, stored) {
        (Value::Object(made), Value::Object(stored)) => are_filled_in(made, stored),
        (Value::Array(made), Value::Array(stored)) => {
            let mut pairs = made.iter().zip(stored);
            made.len() == stored.len() && pairs.all(|(made, stored)| is_filled_in(made, stored))
        }
        (made, stored) => made == stored,
    }
}

/// Whether the last pass was good and was made from these inputs, so that another one would make the same.
pub fn stands(status: &PodIntentStatus, inputs_digest: &str) -> bool {
    status.inputs_digest == inputs_digest && is_good(status)
}

/// Whether the last pass over this generation was good: its author has had what he asked for,
/// whatever else has changed since.
pub fn has_good(status: &PodIntentStatus, generation: i64) -> bool {
    status.observed_generation == Some(generation) && is_good(status)
}

fn is_good(status: &PodIntentStatus) -> bool {
    let applied = |it: &api_types::Condition| {
        it.type_ == condition::CONVENTIONS_APPLIED && it.status == api_types::ConditionStatus::True
    };
    status.template.is_some() && status.conditions.iter().any(applied)
}

#[cfg(test)]
mod tests {
    use api_types::ConditionStatus;
    use api_types::selector::SelectorError;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_failure_has_its_reason_and_message() {
        let cause = || "why".to_owned();
        let convention = || "add-env".to_owned();
        let images = |images: &[&str]| Failure::Images {
            causes: images
                .iter()
                .map(|&image| (image.to_owned(), cause()))
                .collect(),
        };
        let source = SelectorError::Operator {
            operator: "Near".to_owned(),
        };
        for (failure, reason, message) in [
            (
                Failure::CaBundle { cause: cause() },
                "CABundleResolutionFailed",
                "failed to authenticate: why",
            ),
            (
                Failure::Credentials { cause: cause() },
                "ImageResolutionFailed",
                "failed to authenticate: why",
            ),
            (
                Failure::Forbidden {
                    reason: IntentReason::CaBundleResolutionFailed,
                    cause: cause(),
                },
                "CABundleResolutionFailed",
                "failed to authenticate: why",
            ),
            (
                Failure::Selection(SelectionError {
                    convention: convention(),
                    source,
                }),
                "LabelSelector",
                r#"filtering conventions failed: unable to convert label selector for ClusterPodConvention "add-env": "Near" is not a valid pod selector operator"#,
            ),
            (
                Failure::Unreadable {
                    convention: convention(),
                    cause: cause(),
                },
                "LabelSelector",
                r#"filtering conventions failed: ClusterPodConvention "add-env" cannot be read: why"#,
            ),
            (
                images(&["a"]),
                "ConventionsApplied",
                r#"failed to fetch metadata for Images: image: "a" error: why"#,
            ),
            (
                images(&["b", "a"]),
                "ConventionsApplied",
                r#"failed to fetch metadata for Images: image: "a" error: why; image: "b" error: why"#,
            ),
            (
                Failure::Webhook {
                    convention: convention(),
                    cause: cause(),
                },
                "ConventionsApplied",
                "failed to apply convention with name add-env: why",
            ),
            (
                Failure::TooLarge(Fault {
                    field: "status.template".to_owned(),
                    problem: "Too long: why".to_owned(),
                }),
                "TemplateNotStorable",
                "the template cannot be stored: status.template: Too long: why",
            ),
            (
                Failure::NotStorable {
                    convention: convention(),
                    fault: Fault {
                        field: "spec.containers".to_owned(),
                        problem: "Required value".to_owned(),
                    },
                },
                "TemplateNotStorable",
                "convention add-env answered with a template that cannot be stored: spec.containers: Required value",
            ),
        ] {
            assert_eq!(
                (failure.reason().as_str(), failure.to_string().as_str()),
                (reason, message)
            );
            assert_eq!(failure.verdict().message(), message);
        }
    }

    #[test]
    fn the_last_good_template_outlives_failures_and_the_generation_is_told() {
        let at = |second| Time(Timestamp::from_second(second).unwrap());
        let template = |name: &str| -> PodTemplate {
            serde_json::from_value(json!({"spec": {"containers": [{"name": name}]}})).unwrap()
        };
        let failed = || {
            let cause = "why".to_owned();
            Pass::failed(Failure::CaBundle { cause }, &PodIntentStatus::default())
        };
        let made = |name: &str| Pass {
            outcome: Ok(template(name)),
            inputs_digest: name.to_owned(),
            template_inputs_digest: format!("of {name}"),
            ..failed()
        };
        let none = PodIntentStatus::default();
        let never = status_after(&none, 1, failed(), &at(1));
        assert_eq!((never.template, never.observed_generation), (None, Some(1)));

        let good = status_after(&none, 1, made("a"), &at(1));
        assert!(stands(&good, "a") && !stands(&good, "b"));
        assert!(has_good(&good, 1) && !has_good(&good, 2));
        let bad = status_after(&good, 2, failed(), &at(2));
        assert!(!stands(&bad, "a") && !stands(&bad, "") && !has_good(&bad, 2));
        assert_eq!(bad.template, Some(template("a")));
        assert_eq!(bad.template_inputs_digest, "of a");
        assert_eq!(bad.observed_generation, Some(2));
        assert!(
            bad.conditions
                .iter()
                .all(|it| it.status == ConditionStatus::False)
        );
        assert_eq!(status_after(&bad, 2, failed(), &at(3)), bad);
        let better = status_after(&bad, 2, made("b"), &at(4));
        assert_eq!(better.template, Some(template("b")));
        assert_eq!(status_after(&better, 2, made("b"), &at(5)), better);
    }

    #[test]
    fn who_never_settles_is_named_as_long_as_that_lasts() {
        let at = |second| Time(Timestamp::from_second(second).unwrap());
        let made = |changes, millis| Pass {
            outcome: Ok(PodTemplate::default()),
            inputs_digest: "a".to_owned(),
            template_inputs_digest: "c".to_owned(),
            conventions: vec![ConsideredConvention {
                name: "random".to_owned(),
                matched: true,
                changes,
                duration_millis: Some(millis),
                ..ConsideredConvention::default()
            }],
            images: Vec::new(),
        };
        let none = PodIntentStatus::default();
        let types = |status: &PodIntentStatus| -> Vec<String> {
            status
                .conditions
                .iter()
                .map(|it| it.type_.clone())
                .collect()
        };
        let settled = status_after(&none, 1, made(2, 1), &at(1));
        assert_eq!(types(&settled), ["ConventionsApplied", "Ready"]);
        let unsettled = status_after(&settled, 1, made(3, 1), &at(2));
        let all = ["ConventionsApplied", "ConventionsSettled", "Ready"];
        assert_eq!(types(&unsettled), all);
        assert!(unsettled.conditions[1].message.ends_with(": random"));
        assert_eq!(
            types(&status_after(&unsettled, 1, made(0, 1), &at(3))).len(),
            2
        );
        // How long it took is no news.
        let slower = status_after(&settled, 1, made(2, 9), &at(9));
        assert!(say_the_same(&settled, &slower) && settled != slower);
        assert!(!say_the_same(&settled, &unsettled));
    }

    #[test]
    fn what_the_api_server_fills_in_is_no_news_and_any_other_difference_is() {
        let status = |spec: serde_json::Value, output: &str| PodIntentStatus {
            template: serde_json::from_value(json!({"spec": spec})).unwrap(),
            conventions: vec![ConsideredConvention {
                output_digest: output.to_owned(),
                ..ConsideredConvention::default()
            }],
            ..PodIntentStatus::default()
        };
        let ports =
            |port: serde_json::Value| json!({"containers": [{"name": "web", "ports": [port]}]});
        let made = status(ports(json!({"containerPort": 80})), "a");
        for (stored, output, is_same) in [
            (json!({"containerPort": 80}), "a", true),
            (json!({"containerPort": 80, "protocol": "TCP"}), "a", true),
            (json!({"containerPort": 80, "protocol": "TCP"}), "b", false),
            (json!({"containerPort": 81, "protocol": "TCP"}), "a", false),
            (json!({"protocol": "TCP"}), "a", false),
            (json!({"containerPort": 80, "more": [1]}), "a", false),
        ] {
            let stored = status(ports(stored), output);
            assert_eq!(say_the_same(&stored, &made), is_same, "{stored:?}");
        }
        let two = status(
            json!({"containers": [{"name": "web"}, {"name": "forged"}]}),
            "a",
        );
        let one = status(json!({"containers": [{"name": "web"}]}), "a");
        assert!(!say_the_same(&two, &one) && !say_the_same(&one, &two));
        let none = PodIntentStatus {
            template: None,
            ..one.clone()
        };
        assert!(!say_the_same(&none, &one) && !say_the_same(&one, &none));
    }

    #[test]
    fn what_is_said_of_conventions_outlives_a_pass_in_which_none_was_asked() {
        let before = PodIntentStatus {
            conventions: vec![ConsideredConvention {
                name: "add-env".to_owned(),
                matched: true,
                ..ConsideredConvention::default()
            }],
            ..PodIntentStatus::default()
        };
        let cause = "why".to_owned();
        let failed = Pass::failed(Failure::Credentials { cause }, &before);
        let after = status_after(&before, 1, failed, &Time(Timestamp::UNIX_EPOCH));
        assert_eq!(after.conventions, before.conventions);
    }
}
