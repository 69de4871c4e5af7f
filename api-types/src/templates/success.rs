//! When what a stamped object says may be handed on.

use std::time::Duration;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::OtherObject;
use crate::duration::parse_duration;
use crate::texts::text_enum;

/// How deep conditions may be nested: one that stands by itself has depth 1.
pub const MOST_CONDITION_DEPTH: usize = 4;

/// When the outputs of a stamped object are good, and so may be handed on. At most one rule is given when admitted, of a
/// ClusterDeploymentTemplate exactly one; without any, outputs are read as soon as they are there.
///
/// ```
/// use api_types::templates::SuccessRules;
/// use serde_json::json;
///
/// let rules: SuccessRules = serde_json::from_value(json!({
///     "observedCompletion": {"succeeded": [{"key": ".status.phase", "value": "Done"}]},
/// }))?;
/// let succeeded = &rules.observed_completion.as_ref().unwrap().succeeded;
/// assert_eq!(succeeded.all_of[0].key, ".status.phase");
/// assert!(rules.are_attributed());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SuccessRules {
    /// Pairs of paths whose values must be equal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub observed_matches: Vec<ObservedMatch>,
    /// Values that say succeeded or failed, once the object has observed its generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_completion: Option<ObservedCompletion>,
    /// As soon as the object holds what was rendered: for kinds that no controller reconciles, such as ConfigMaps.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub always_successful: bool,
    /// Whenever the inputs that the object reports are those that it was rendered from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs_on_status: Vec<InputOnStatus>,
    /// What says failed, beside `observedMatches` or `inputsOnStatus`; `observedCompletion` has its own.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "CompletionCondition::optional"
    )]
    pub failed: Option<CompletionCondition>,
    /// What becomes of an update that comes while the object is neither good nor failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_policy: Option<UpdatePolicy>,
    /// What becomes of outputs while others have set fields of the object that are not rendered; see
    /// [`SuccessRules::refuses_foreign_fields`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_fields: Option<ForeignFields>,
}

text_enum! {
    /// What becomes of outputs while others have set fields of the object that are not rendered.
    #[derive(Default, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum ForeignFields {
        /// They are read, and their provenance names these fields.
        #[default]
        Allow,
        /// They are not read.
        Refuse,
    }
}

/// What becomes of an update that comes while the object is neither good nor failed.
///
/// ```
/// use api_types::templates::UpdatePolicy;
/// use serde_json::json;
/// use std::time::Duration;
///
/// let policy: UpdatePolicy = serde_json::from_value(json!({"whenReconciling": "Wait", "timeout": "20m"}))?;
/// assert!(policy.waits());
/// assert_eq!(policy.time_limit(), Some(Duration::from_secs(1200)));
/// assert_eq!(policy.most_waiting(), 10);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UpdatePolicy {
    /// Whether it is applied at once or waits.
    pub when_reconciling: WhenReconciling,
    /// How long an update may take before a newer one takes its place: a duration such as `90s`, `30m` or `1h`; `0` for ever.
    /// See [`UpdatePolicy::time_limit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How many updates may wait. See [`UpdatePolicy::most_waiting`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

text_enum! {
    /// What becomes of an update that comes while the object is neither good nor failed.
    #[derive(Default, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum WhenReconciling {
        /// It is applied at once.
        #[default]
        Apply,
        /// It waits until the object is good or has failed, and is dropped if a newer one is good before it.
        Wait,
    }
}

/// Two paths in the stamped object whose values must be equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObservedMatch {
    /// Path of what was asked for, normally in `spec`.
    pub input: String,
    /// Path of what was reached, normally in `status`.
    pub output: String,
    /// The object that `output` is read from, if that is not the stamped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<OtherObject>,
}

/// Values in the stamped object that say whether it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObservedCompletion {
    /// What says succeeded.
    #[serde(deserialize_with = "CompletionCondition::one_or_list")]
    pub succeeded: CompletionCondition,
    /// What says failed; asked first.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "CompletionCondition::optional"
    )]
    pub failed: Option<CompletionCondition>,
}

/// What must be so of a stamped object: a path with the text expected there, or several conditions. Exactly one of `key`,
/// `allOf`, `anyOf` and `not` is given when admitted. It holds, does not hold, or is not known yet, because nothing is at its
/// path; `not` of what is not known is not known.
///
/// A list of conditions is read as [`CompletionCondition::all_of`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CompletionCondition {
    /// The path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The text expected there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The object that the path is read from, if that is not the stamped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<OtherObject>,
    /// All of these must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<Self>,
    /// One of these must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Self>,
    /// This must not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Self>>,
}

/// An input that the stamped object reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InputOnStatus {
    /// Path in what the template sees, such as `sources.source.revision`.
    pub templating_context_path: String,
    /// Path in the stamped object of the same value, normally in `status`.
    pub object_path: String,
}

impl SuccessRules {
    /// How many of the four rules are given.
    pub fn given(&self) -> usize {
        [
            !self.observed_matches.is_empty(),
            self.observed_completion.is_some(),
            self.always_successful,
            !self.inputs_on_status.is_empty(),
        ]
        .into_iter()
        .filter(|given| *given)
        .count()
    }

    /// The objects beside the stamped one that the rules read, each once, in the order in which they stand there.
    pub fn other_objects(&self) -> Vec<&OtherObject> {
        let completion = self.observed_completion.as_ref();
        let conditions = [
            completion.map(|completion| &completion.succeeded),
            completion.and_then(|completion| completion.failed.as_ref()),
            self.failed.as_ref(),
        ];
        let conditions = conditions.into_iter().flatten();
        let of_conditions = conditions.flat_map(CompletionCondition::other_objects);
        let pairs = self.observed_matches.iter();
        let all = of_conditions.chain(pairs.filter_map(|pair| pair.object.as_ref()));
        let mut objects: Vec<&OtherObject> = Vec::new();
        for object in all {
            if !objects.contains(&object) {
                objects.push(object);
            }
        }
        objects
    }

    /// Whether updates wait while the object is neither good nor failed.
    pub fn waits_with_updates(&self) -> bool {
        self.update_policy.as_ref().is_some_and(UpdatePolicy::waits)
    }

    /// Whether nothing is read while others have set fields of the object that are not rendered.
    ///
    /// ```
    /// use api_types::templates::SuccessRules;
    /// use serde_json::json;
    ///
    /// let rules = |rules| serde_json::from_value::<SuccessRules>(rules);
    /// assert!(!rules(json!({"alwaysSuccessful": true}))?.refuses_foreign_fields());
    /// assert!(rules(json!({"alwaysSuccessful": true, "foreignFields": "Refuse"}))?.refuses_foreign_fields());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn refuses_foreign_fields(&self) -> bool {
        self.foreign_fields == Some(ForeignFields::Refuse)
    }

    /// Whether anything is given that the templates of the Go controller do not have, so that outputs are tied to what made
    /// them. A ClusterDeploymentTemplate that gives no more than it could there works as it did there.
    pub fn are_attributed(&self) -> bool {
        let is_composed =
            |it: &CompletionCondition| !it.is_value() || !it.other_objects().is_empty();
        let completion = self.observed_completion.as_ref();
        self.always_successful
            || self.waits_with_updates()
            || self.foreign_fields.is_some()
            || !self.inputs_on_status.is_empty()
            || self.failed.is_some()
            || self
                .observed_matches
                .iter()
                .any(|pair| pair.object.is_some())
            || completion.is_some_and(|completion| {
                is_composed(&completion.succeeded)
                    || completion.failed.as_ref().is_some_and(is_composed)
            })
    }
}

impl UpdatePolicy {
    /// The limit that holds where the template gives none.
    pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_hours(1);

    /// How many updates wait where the template does not say.
    pub const DEFAULT_DEPTH: usize = 10;

    /// The most that a template may let wait: each is kept in the owner's status.
    pub const MOST_DEPTH: u32 = 100;

    /// Whether updates wait while the object is neither good nor failed.
    pub fn waits(&self) -> bool {
        self.when_reconciling == WhenReconciling::Wait
    }

    /// How long an update may take before a newer one takes its place; `None` is for ever. A text that is no duration, which
    /// is not admitted, counts as none given.
    pub fn time_limit(&self) -> Option<Duration> {
        let given = self.timeout.as_deref().and_then(parse_duration);
        Some(given.unwrap_or(Self::DEFAULT_TIME_LIMIT)).filter(|limit| !limit.is_zero())
    }

    /// How many updates may wait; at least one.
    pub fn most_waiting(&self) -> usize {
        let given = self.depth.and_then(|depth| usize::try_from(depth).ok());
        given.unwrap_or(Self::DEFAULT_DEPTH).max(1)
    }
}

impl InputOnStatus {
    /// The tag of a template that has the value which is looked for.
    ///
    /// ```
    /// use api_types::templates::InputOnStatus;
    ///
    /// for path in ["sources.source.url", ".sources.source.url", "$(sources.source.url)$"] {
    ///     let input = InputOnStatus { templating_context_path: path.into(), ..InputOnStatus::default() };
    ///     assert_eq!(input.tag(), "$(sources.source.url)$");
    /// }
    /// ```
    pub fn tag(&self) -> String {
        let path = self.templating_context_path.trim();
        let inner = path
            .strip_prefix("$(")
            .and_then(|path| path.strip_suffix(")$"));
        format!("$({})$", inner.unwrap_or(path).trim_start_matches('.'))
    }
}

impl CompletionCondition {
    /// Whether it is a path with a text, as opposed to several conditions.
    pub fn is_value(&self) -> bool {
        self.all_of.is_empty() && self.any_of.is_empty() && self.not.is_none()
    }

    /// The conditions that it consists of.
    pub fn parts(&self) -> impl Iterator<Item = &Self> {
        let not = self.not.as_deref();
        self.all_of.iter().chain(&self.any_of).chain(not)
    }

    /// All paths, in the order in which they stand there.
    ///
    /// ```
    /// use api_types::templates::CompletionCondition;
    /// use serde_json::json;
    ///
    /// let condition: CompletionCondition = serde_json::from_value(json!({"anyOf": [
    ///     {"key": "a", "value": "1"}, {"not": {"key": "b", "value": "2"}},
    /// ]}))?;
    /// assert_eq!(condition.keys(), ["a", "b"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn keys(&self) -> Vec<&str> {
        let own = self.is_value().then_some(self.key.as_str());
        let parts = self.parts().flat_map(Self::keys);
        own.into_iter().chain(parts).collect()
    }

    /// The objects beside the stamped one that it reads.
    pub fn other_objects(&self) -> Vec<&OtherObject> {
        let parts = self.parts().flat_map(Self::other_objects);
        self.object.iter().chain(parts).collect()
    }

    fn one_or_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        let value = Option::<Value>::deserialize(deserializer)?;
        let read = value.map(Self::read).transpose();
        read.map_err(D::Error::custom)
    }

    fn read(value: Value) -> Result<Self, serde_json::Error> {
        if !value.is_array() {
            return serde_json::from_value(value);
        }
        serde_json::from_value(value).map(|all_of| Self {
            all_of,
            ..Self::default()
        })
    }
}
