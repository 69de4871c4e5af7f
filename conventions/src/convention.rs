//! ClusterPodConvention: which webhook is asked about which PodIntents.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use api_types::Selector;

/// Which templates, when among other conventions, and who is asked.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "conventions.carto.run",
    version = "v1alpha1",
    kind = "ClusterPodConvention",
    plural = "clusterpodconventions",
    schema = "disabled",
    doc = "A webhook that decorates pod templates.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    ),
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterPodConventionSpec {
    /// One of them must match; without any, everything does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<Selector>,
    /// Whose labels they are matched with; see [`SelectorTarget::from_text`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector_target: String,
    /// When among other conventions; see [`Priority::from_text`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub priority: String,
    /// Who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<ConventionWebhook>,
    /// Instead of a webhook: nobody is asked, and the template gets what pod presets add to pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_presets: Option<PodPresetsConvention>,
}

/// What pod presets add to pods is added to templates. There is nothing to choose yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodPresetsConvention {}

/// A webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConventionWebhook {
    /// Its address, and the authorities that are trusted there.
    pub client_config: WebhookClientConfig,
    /// A Certificate of cert-manager whose authority is trusted instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateReference>,
    /// Seconds that one call may take, tries included; see [`Self::budget`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// What follows when it fails; see [`FailurePolicy::from_text`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure_policy: String,
}

/// The longest time that a call may take, and what it takes when nothing is said.
pub const MOST_TIMEOUT_SECONDS: i32 = 30;

impl ConventionWebhook {
    /// How long one call may take.
    ///
    /// ```
    /// use conventions::ConventionWebhook;
    ///
    /// let mut webhook = ConventionWebhook::default();
    /// assert_eq!(webhook.budget().as_secs(), 30);
    /// webhook.timeout_seconds = Some(5);
    /// assert_eq!(webhook.budget().as_secs(), 5);
    /// ```
    pub fn budget(&self) -> Duration {
        let seconds = self.timeout_seconds.unwrap_or(MOST_TIMEOUT_SECONDS);
        let seconds = seconds.clamp(1, MOST_TIMEOUT_SECONDS);
        Duration::from_secs(u64::from(seconds.unsigned_abs()))
    }
}

/// What follows when a webhook fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FailurePolicy {
    /// The whole chain fails.
    #[default]
    Fail,
    /// The template goes on as if the convention did not match.
    Ignore,
}

impl FailurePolicy {
    /// Every policy.
    pub const ALL: [Self; 2] = [Self::Fail, Self::Ignore];

    /// The text of `failurePolicy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }

    /// What a text stands for; what nobody knows is a failure.
    ///
    /// ```
    /// use conventions::FailurePolicy;
    ///
    /// assert_eq!(FailurePolicy::from_text("Ignore"), FailurePolicy::Ignore);
    /// assert_eq!(FailurePolicy::from_text("ignore"), FailurePolicy::Fail);
    /// ```
    pub fn from_text(text: &str) -> Self {
        let known = Self::ALL.into_iter().find(|it| it.as_str() == text);
        known.unwrap_or_default()
    }
}

/// A Certificate of cert-manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateReference {
    /// Namespace of the Certificate.
    pub namespace: String,
    /// Name of the Certificate.
    pub name: String,
}

/// When a convention is applied among others.
///
/// ```
/// use conventions::Priority;
///
/// assert!(Priority::Early < Priority::Normal && Priority::Normal < Priority::Late);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Before all others.
    Early,
    /// Where nothing else is said.
    #[default]
    Normal,
    /// After all others.
    Late,
}

impl Priority {
    /// Every priority, first to last.
    pub const ALL: [Self; 3] = [Self::Early, Self::Normal, Self::Late];

    /// The text of `priority`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Early => "Early",
            Self::Normal => "Normal",
            Self::Late => "Late",
        }
    }

    /// What a text stands for. Objects that were stored unchecked may have none, or one that nobody knows: these are
    /// normal, as an order must hold for all.
    ///
    /// ```
    /// use conventions::Priority;
    ///
    /// assert_eq!(Priority::from_text("Late"), Priority::Late);
    /// assert_eq!(Priority::from_text("Whenever"), Priority::Normal);
    /// ```
    pub fn from_text(text: &str) -> Self {
        let known = Self::ALL.into_iter().find(|it| it.as_str() == text);
        known.unwrap_or_default()
    }
}

/// Whose labels a convention is selected by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SelectorTarget {
    /// Those of the template.
    #[default]
    PodTemplateSpec,
    /// Those of the PodIntent itself.
    PodIntent,
}

impl SelectorTarget {
    /// Every target.
    pub const ALL: [Self; 2] = [Self::PodTemplateSpec, Self::PodIntent];

    /// The text of `selectorTarget`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PodTemplateSpec => "PodTemplateSpec",
            Self::PodIntent => "PodIntent",
        }
    }

    /// What a text stands for; the template where it is none of the two.
    ///
    /// ```
    /// use conventions::SelectorTarget;
    ///
    /// assert_eq!(SelectorTarget::from_text(""), SelectorTarget::PodTemplateSpec);
    /// ```
    pub fn from_text(text: &str) -> Self {
        let known = Self::ALL.into_iter().find(|it| it.as_str() == text);
        known.unwrap_or_default()
    }
}
