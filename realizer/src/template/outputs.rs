//! Outputs of a step: reading them from the stamped object, and reporting them
//! (docs/behaviour/outputs.md#reading, docs/behaviour/outputs.md#status).

use std::sync::Arc;

use api_types::{OutputStatus, Provenance};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::template::goodness::{NotDone, RuleInputs};
use crate::template::provenance::MOST_VALUE_BYTES;
use crate::template::{OutputPaths, Template};
use crate::values::field_path::{FieldPath, PathProblem};
use crate::values::redaction::{self, REDACTED, Taint, Veil};
use template_language::yaml_digest;

use crate::StatusKey;

/// What a step hands on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) values: OutputValues,
    /// What of the values came from Secrets; unless that is nothing, they must not be shown.
    pub(crate) taint: Taint,
    /// What made them, where the template says when they are good.
    pub(crate) provenance: Option<Arc<Provenance>>,
    /// Digest of what was rendered, of outputs that were read in this walk and that know what made them. None where a Secret
    /// is in it.
    pub(crate) rendering: Option<Arc<str>>,
}

/// The values by kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OutputValues {
    Source { url: Value, revision: Value },
    Image(Value),
    Config(Value),
    Nothing,
}

/// Why outputs cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A path yields no value, or there is no object to read it from.
    #[error("failed to evaluate json path '{path}': {cause}")]
    Path {
        /// The path.
        path: String,
        /// Why not; it may quote the object.
        cause: String,
    },
    /// As [`ReadError::Path`], and only somebody who corrects the path can help.
    #[error("failed to evaluate json path '{path}': {cause}")]
    Hopeless {
        /// The path.
        path: String,
        /// Why not; it may quote the object.
        cause: String,
    },
    /// The deployment is not done.
    #[error(transparent)]
    NotDone(#[from] NotDone),
    /// The object does not hold what was rendered: somebody changed it, and it is not changed back yet.
    #[error("the object does not hold what was rendered")]
    Changed,
    /// The object held values of somebody else with these inputs, and does not tell what it made from which.
    #[error("the object does not tell from whose values it made what it reports")]
    Doubtful,
    /// Others have set fields that are not rendered, and the template refuses that.
    #[error("others have set fields of the object that are not rendered")]
    Foreign {
        /// These, as far as they are known.
        fields: Vec<String>,
    },
    /// It is not known whether others have set fields, and the template refuses that.
    #[error("it is not known whether others have set fields of the object: {cause}")]
    ForeignUnknown {
        /// Why not.
        cause: String,
    },
    /// No healthy object of the family is there to judge.
    #[error("failed to evaluate path of empty object")]
    NoObject,
    /// The step declares no deployment, or it is not there.
    #[error("deployment not found in upstream template")]
    NoDeployment,
}

impl OutputValues {
    /// What an object reports at these paths, good or not. `inputs` is what the inputs of the step taint with.
    fn at(paths: &OutputPaths, object: Option<&Value>, inputs: &Taint) -> Result<Self, ReadError> {
        Ok(match paths {
            OutputPaths::Nothing | OutputPaths::IncomingDeployment => Self::Nothing,
            OutputPaths::Source { url, revision } => Self::Source {
                url: read(url, object, inputs, "the url path")?,
                revision: read(revision, object, inputs, "the revision path")?,
            },
            // "url" is what upstream says here, and users compare messages; a new kind names its own field.
            OutputPaths::Image(path) => Self::Image(read(path, object, inputs, "the url path")?),
            OutputPaths::Config(path) => {
                Self::Config(read(path, object, inputs, "spec.configPath")?)
            }
        })
    }
}

impl Output {
    pub(crate) const NOTHING: Self = Self {
        values: OutputValues::Nothing,
        taint: Taint::NONE,
        provenance: None,
        rendering: None,
    };

    /// Values of which nobody knows what made them.
    pub(crate) fn of(values: OutputValues, taint: Taint) -> Self {
        Self {
            values,
            taint,
            provenance: None,
            rendering: None,
        }
    }

    /// Whether an object reports these values now, good or not.
    pub(crate) fn is_reported(&self, template: &Template, object: &Value, inputs: &Taint) -> bool {
        let reported = OutputValues::at(&template.outputs, Some(object), inputs);
        self.values != OutputValues::Nothing && reported.is_ok_and(|it| it == self.values)
    }

    /// Reads the outputs of a template from its object, if that is good. `deployment` is what the step's deployment input
    /// holds, `inputs` what all its inputs taint with, `given` what the rules go by beside the object.
    pub(crate) fn read(
        template: &Template,
        object: Option<&Value>,
        deployment: Option<&Self>,
        inputs: &Taint,
        given: RuleInputs<'_>,
    ) -> Result<Self, ReadError> {
        let is_run = template.is_judged_as_run();
        template.goodness.check(object, inputs, given, is_run)?;
        let values = match &template.outputs {
            OutputPaths::Nothing => return Ok(Self::NOTHING),
            OutputPaths::IncomingDeployment => {
                let deployment = deployment.ok_or(ReadError::NoDeployment)?;
                return Ok(Self {
                    provenance: None,
                    rendering: None,
                    ..deployment.clone()
                });
            }
            paths @ (OutputPaths::Source { .. }
            | OutputPaths::Image(_)
            | OutputPaths::Config(_)) => OutputValues::at(paths, object, inputs)?,
        };
        let mut output = Self::of(values, Taint::NONE);
        let named = output.named().into_iter().map(|(_, value)| value);
        output.taint = if object.is_some_and(redaction::is_secret) {
            Taint::of(named)
        } else {
            inputs.carried_by(named)
        };
        Ok(output)
    }

    /// The output as it follows from what status told of it before, for what cannot be seen in its values.
    ///
    /// An object that lags behind, or that was made from other inputs (`is_of_other_inputs`), may hold a text that the present
    /// inputs have no more. So what was redacted stays redacted while a secret goes into the step, and whenever it is the same
    /// value still; and what was made from other inputs is shown only if it was shown before.
    pub(crate) fn remembered(
        mut self,
        before: &[OutputStatus],
        inputs: &Taint,
        is_of_other_inputs: bool,
        key: &StatusKey,
    ) -> Self {
        let nothing_known = before.is_empty() && inputs.is_none();
        if nothing_known || !self.taint.is_none() {
            return self;
        }
        let is_suspect = |(name, value): (&str, &Value)| {
            let last = before.iter().find(|last| last.name == name);
            match last.filter(|last| last.preview == REDACTED) {
                Some(_) if !inputs.is_none() => true,
                Some(last) => secret_digest(value, key)
                    .is_none_or(|it| it == last.digest || last.digest.is_empty()),
                None if inputs.is_none() || !is_of_other_inputs => false,
                None => last.is_none_or(|last| last.digest != yaml_digest::digest(value)),
            }
        };
        if self.named().into_iter().any(is_suspect) {
            self.taint = Taint::of(self.named().into_iter().map(|(_, value)| value)).and(inputs);
        }
        self
    }

    /// Names and values, in the order of the status. A null image or config is no output
    /// (docs/behaviour/outputs.md#reading).
    pub(crate) fn named(&self) -> Vec<(&'static str, &Value)> {
        match &self.values {
            OutputValues::Source { url, revision } => vec![("url", url), ("revision", revision)],
            OutputValues::Image(value) if !value.is_null() => vec![("image", value)],
            OutputValues::Config(value) if !value.is_null() => vec![("config", value)],
            OutputValues::Image(_) | OutputValues::Config(_) | OutputValues::Nothing => Vec::new(),
        }
    }

    /// What status says of the outputs. Times are kept where the digest is. `key` is for digests of secret values; without
    /// one these are empty.
    pub(crate) fn statuses(
        &self,
        previous: &[OutputStatus],
        key: &StatusKey,
        now: &Time,
    ) -> Vec<OutputStatus> {
        let keeps = self.is_kept();
        self.named()
            .into_iter()
            .map(|(name, value)| {
                let (preview, digest) = self.shown(value, key);
                let before = previous
                    .iter()
                    .find(|output| output.name == name && output.digest == digest);
                let since = match before {
                    Some(output) => output.last_transition_time.clone(),
                    None => api_types::condition::whole_seconds(now),
                };
                let value = value.clone();
                OutputStatus {
                    name: name.to_owned(),
                    preview,
                    digest,
                    last_transition_time: since,
                    current: self.provenance.as_ref().map(|_| true),
                    value: keeps.then_some(value),
                    provenance: self.provenance.as_deref().cloned(),
                }
            })
            .collect()
    }

    /// Whether status keeps the values, to hand them on while there are no new ones.
    fn is_kept(&self) -> bool {
        self.provenance.is_some() && self.taint.is_none() && self.bytes() <= MOST_VALUE_BYTES
    }

    /// How many bytes the values have as JSON.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |(_, value): (&str, &Value)| value.to_string().len();
        self.named().into_iter().map(bytes).sum()
    }

    /// The digests of the values as status shows them.
    pub(crate) fn digests(&self, key: &StatusKey) -> Vec<String> {
        let named = self.named().into_iter();
        named.map(|(_, value)| self.shown(value, key).1).collect()
    }

    fn shown(&self, value: &Value, key: &StatusKey) -> (String, String) {
        if self.taint.is_none() {
            return (yaml_digest::preview(value), yaml_digest::digest(value));
        }
        let digest = secret_digest(value, key).unwrap_or_default();
        (REDACTED.to_owned(), digest)
    }
}

fn secret_digest(value: &Value, key: &StatusKey) -> Option<String> {
    key.digest("output", &yaml_digest::to_yaml(value))
}

/// `what` is the name of the path in messages.
fn read(
    path: &FieldPath,
    object: Option<&Value>,
    inputs: &Taint,
    what: &str,
) -> Result<Value, ReadError> {
    let text = path.text();
    let message = |problem: &str| format!("failed to evaluate {what} [{text}]: {problem}");
    let hopeless = |cause| ReadError::Hopeless {
        path: text.to_owned(),
        cause,
    };
    let not_yet = |cause| ReadError::Path {
        path: text.to_owned(),
        cause,
    };
    if let Some(problem) = path.unparsable() {
        return Err(hopeless(message(problem)));
    }
    let Some(object) = object else {
        let cause = "failed to evaluate path of empty object";
        return Err(not_yet(cause.to_owned()));
    };
    match path.read(object) {
        Ok(value) => Ok(value.into_owned()),
        Err(PathProblem::Absent(problem) | PathProblem::EmptyList(problem)) => {
            Err(not_yet(message(&problem)))
        }
        // The text may quote the data.
        Err(PathProblem::Broken(_)) if Veil::over(object, inputs).hides_all() => {
            Err(hopeless(message(REDACTED)))
        }
        Err(PathProblem::Broken(problem)) => Err(hopeless(message(&problem))),
    }
}

#[cfg(test)]
mod tests;
