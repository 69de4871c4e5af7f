//! Runnable and ClusterRunTemplate: objects that are created anew whenever their inputs change.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::custom_resource::custom_resource;
use crate::status::StampedRef;
use crate::templates::{HealthRule, RetentionPolicy};
use crate::texts::text_enum;

/// The most attempts a [`RetryPolicy`] may ask for; the schema's maximum.
pub const MOST_ATTEMPTS: u32 = 20;

/// How many runs [`RunnableStatus::runs`] remembers.
pub const MOST_RUNS: usize = 20;

custom_resource! {
    /// Which ClusterRunTemplate to stamp, with which inputs.
    #[kube(
        kind = "Runnable",
        plural = "runnables",
        shortname = "run",
        namespaced,
        status = "RunnableStatus",
        doc = "An object that is created anew whenever its inputs change.",
        printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
        printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
        printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
        printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].message"}"#
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct RunnableSpec {
        /// The ClusterRunTemplate.
        pub run_template_ref: RunTemplateReference,
        /// An object of the cluster the template may read.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub selector: Option<ResourceSelector>,
        /// Any JSON by name, for the template.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub inputs: BTreeMap<String, Value>,
        /// ServiceAccount in the Runnable's namespace whose rights are used; `default` when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub service_account_name: Option<String>,
        /// How many finished objects are kept; ten of each when absent, by the schema's default.
        pub retention_policy: RetentionPolicy,
        /// Whether a failed run is tried again; not when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub retry: Option<RetryPolicy>,
        /// What happens when the inputs change while a run is going; [`Concurrency::Allow`] when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub concurrency: Option<Concurrency>,
    }
}

/// How often a failed run is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// How many runs there are for the same inputs at the most, the first included; 1 to [`MOST_ATTEMPTS`].
    pub max_attempts: u32,
    /// How long after its end the first failed run is tried again, as in `30s`; doubles with each attempt. Ten seconds
    /// when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
}

text_enum! {
    /// What happens when the inputs change while a run is going.
    ///
    /// ```
    /// assert_eq!(api_types::runnable::Concurrency::default().as_str(), "Allow");
    /// ```
    #[derive(Default, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Concurrency {
        /// A new run starts beside it.
        #[default]
        Allow,
        /// The new run waits for its end; of several changes only the last one is run.
        Queue,
        /// The going run is deleted, and the new one starts when it is gone.
        Replace,
    }
}

/// A ClusterRunTemplate by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RunTemplateReference {
    /// Ignored; always ClusterRunTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the ClusterRunTemplate.
    pub name: String,
}

/// Exactly one object of a kind, by labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSelector {
    /// The kind.
    pub resource: ResourceType,
    /// Labels the object must have.
    pub matching_labels: BTreeMap<String, String>,
}

/// A kind and the version to read it in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceType {
    /// `<group>/<version>`, or `<version>` for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// What became of a Runnable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RunnableStatus {
    /// `metadata.generation` this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `RunTemplateReady`, `StampedObjectCondition`, `Ready`, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Any JSON by output name, of the newest object that succeeded.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Value>,
    /// The object that was submitted last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamped_ref: Option<StampedRef>,
    /// The runs, newest first, also those that are gone; [`MOST_RUNS`] at the most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunRecord>,
    /// The value of annotation `carto.run/rerun-requested-at` that runs are made for. Taking the annotation away
    /// starts no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_rerun_requested_at: Option<String>,
    /// The owners that led to this one, as `<Kind>/<name>`, the first one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stamped_for: Vec<String>,
}

/// One run of a Runnable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// Name of the object.
    pub name: String,
    /// Uid of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Position among the runs of the Runnable; the highest is the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Digest of what it was made from: the rendering, the attempt and the request for a rerun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When it ended, or was seen to have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Time>,
    /// What came of it.
    pub result: RunResult,
    /// Why, in the words of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

text_enum! {
    /// What came of a run.
    #[derive(Default, Serialize, Deserialize)]
    pub enum RunResult {
        /// It is going.
        #[default]
        Running,
        /// It succeeded.
        Succeeded,
        /// It failed.
        Failed,
        /// It was deleted before its end.
        Removed,
    }
}

custom_resource! {
    /// The object a Runnable creates, and where its outputs are.
    #[kube(
        kind = "ClusterRunTemplate",
        plural = "clusterruntemplates",
        shortname = "crt",
        doc = "The object a Runnable creates, and where its outputs are."
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct ClusterRunTemplateSpec {
        /// The object to stamp, with `$(…)$` tags. Exactly one of `template` and `ytt` is given when admitted.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub template: Option<Value>,
        /// The object to stamp, as a ytt document.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ytt: Option<String>,
        /// When a run has succeeded (healthy) or failed (unhealthy); by its condition `Succeeded` when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub health_rule: Option<HealthRule>,
        /// Path in the stamped object by output name.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub outputs: BTreeMap<String, String>,
    }
}
