//! What became of a PodIntent, and what its status says then.

use std::collections::BTreeMap;

use convention_protocol::PodTemplate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

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
    /// Which conventions are to be applied is not known.
    #[error("filtering conventions failed: {0}")]
    Selection(#[from] SelectionError),
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
    /// The reason of the condition that tells it.
    pub fn reason(&self) -> IntentReason {
        match self {
            Self::CaBundle { .. } => IntentReason::CaBundleResolutionFailed,
            Self::Credentials { .. } => IntentReason::ImageResolutionFailed,
            Self::Selection(_) => IntentReason::LabelSelector,
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
    /// The conventions that were considered.
    pub conventions: Vec<ConsideredConvention>,
    /// The images that were resolved.
    pub images: Vec<ResolvedImage>,
}

impl Pass {
    /// One that ended before any convention was asked.
    pub fn failed(failure: Failure) -> Self {
        Self {
            outcome: Err(failure),
            inputs_digest: String::new(),
            conventions: Vec::new(),
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
/// let failed = Pass::failed(failure);
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
    let (verdict, template, inputs_digest, images) = match pass.outcome {
        Ok(template) => {
            let images = bounded_images(pass.images);
            (Verdict::APPLIED, Some(template), pass.inputs_digest, images)
        }
        Err(failure) => {
            let (template, images) = (before.template.clone(), before.images.clone());
            (failure.verdict(), template, String::new(), images)
        }
    };
    let mut conditions = verdict.conditions(&before.conditions, now);
    let names: Vec<&str> = considered::unsettled(&conventions).collect();
    conditions.extend(condition::unsettled(&names, &before.conditions, now));
    conditions.sort_by(|left, right| left.type_.cmp(&right.type_));
    PodIntentStatus {
        observed_generation: Some(generation),
        conditions,
        template,
        inputs_digest,
        conventions,
        images,
    }
}

/// Whether a status is worth no write, as another one says all of it already.
pub fn say_the_same(left: &PodIntentStatus, right: &PodIntentStatus) -> bool {
    let rest = |status: &PodIntentStatus| PodIntentStatus {
        conventions: Vec::new(),
        ..status.clone()
    };
    considered::say_the_same(&left.conventions, &right.conventions) && rest(left) == rest(right)
}

/// Whether the last pass was good and was made from these inputs, so that another one would make the same.
pub fn stands(status: &PodIntentStatus, inputs_digest: &str) -> bool {
    let applied = |it: &api_types::Condition| {
        it.type_ == condition::CONVENTIONS_APPLIED && it.status == api_types::ConditionStatus::True
    };
    status.inputs_digest == inputs_digest
        && status.template.is_some()
        && status.conditions.iter().any(applied)
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
                Failure::Selection(SelectionError {
                    convention: convention(),
                    source,
                }),
                "LabelSelector",
                r#"filtering conventions failed: unable to convert label selector for ClusterPodConvention "add-env": "Near" is not a valid pod selector operator"#,
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
            Pass::failed(Failure::CaBundle { cause })
        };
        let made = |name: &str| Pass {
            outcome: Ok(template(name)),
            inputs_digest: name.to_owned(),
            ..failed()
        };
        let none = PodIntentStatus::default();
        let never = status_after(&none, 1, failed(), &at(1));
        assert_eq!((never.template, never.observed_generation), (None, Some(1)));

        let good = status_after(&none, 1, made("a"), &at(1));
        assert!(stands(&good, "a") && !stands(&good, "b"));
        let bad = status_after(&good, 2, failed(), &at(2));
        assert!(!stands(&bad, "a") && !stands(&bad, ""));
        assert_eq!(bad.template, Some(template("a")));
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
}
