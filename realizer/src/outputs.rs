//! Outputs of a step: reading them from the stamped object, and reporting them (spec 3.10, 4.6).

use api_types::OutputStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::deployment::NotDone;
use crate::field_path::FieldPath;
use crate::redaction::{self, REDACTED};
use crate::template::{OutputPaths, Template};
use crate::{canonical, yaml_digest};

/// What a step hands on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) values: OutputValues,
    /// Whether a value came from a core/v1 Secret and must not be shown.
    pub(crate) secret: bool,
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
pub(crate) enum ReadError {
    /// A path yields no value, or there is no object to read it from.
    #[error("failed to evaluate json path '{path}': {cause}")]
    Path { path: String, cause: String },
    /// The deployment is not done.
    #[error(transparent)]
    NotDone(#[from] NotDone),
    /// No healthy object of the family is there to judge.
    #[error("failed to evaluate path of empty object")]
    NoObject,
    /// The step declares no deployment, or it is not there.
    #[error("deployment not found in upstream template")]
    NoDeployment,
}

impl Output {
    pub(crate) const NOTHING: Self = Self {
        values: OutputValues::Nothing,
        secret: false,
    };

    /// Reads the outputs of a template from its object. `deployment` is what the step's deployment input holds.
    pub(crate) fn read(
        template: &Template,
        object: Option<&Value>,
        deployment: Option<&Self>,
    ) -> Result<Self, ReadError> {
        let values = match &template.outputs {
            OutputPaths::Plain => return Ok(Self::NOTHING),
            OutputPaths::Deployment(readiness) => {
                let object = object.ok_or(ReadError::NoObject)?;
                readiness.check(object, redaction::is_secret(object))?;
                return deployment.cloned().ok_or(ReadError::NoDeployment);
            }
            // Judged by arrival, not read: see `Judgement`.
            OutputPaths::Validation(_) => {
                return deployment.cloned().ok_or(ReadError::NoDeployment);
            }
            OutputPaths::Source { url, revision } => OutputValues::Source {
                url: read(url, object, &|path| format!("the url path [{path}]"))?,
                revision: read(revision, object, &|path| {
                    format!("the revision path [{path}]")
                })?,
            },
            // "url" is what upstream says here.
            OutputPaths::Image(path) => OutputValues::Image(read(path, object, &|path| {
                format!("the url path [{path}]")
            })?),
            OutputPaths::Config(path) => OutputValues::Config(read(path, object, &|path| {
                format!("spec.configPath [{path}]")
            })?),
        };
        Ok(Self {
            values,
            secret: object.is_some_and(redaction::is_secret),
        })
    }

    /// Names and values, in the order of the status. A null image or config is no output (spec 3.10).
    pub(crate) fn named(&self) -> Vec<(&'static str, &Value)> {
        match &self.values {
            OutputValues::Source { url, revision } => vec![("url", url), ("revision", revision)],
            OutputValues::Image(value) if !value.is_null() => vec![("image", value)],
            OutputValues::Config(value) if !value.is_null() => vec![("config", value)],
            OutputValues::Image(_) | OutputValues::Config(_) | OutputValues::Nothing => Vec::new(),
        }
    }

    /// What status says of the outputs. Times are kept where the digest is. `key` is for digests of secret values.
    pub(crate) fn statuses(
        &self,
        previous: &[OutputStatus],
        key: &str,
        now: &Time,
    ) -> Vec<OutputStatus> {
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
                OutputStatus {
                    name: name.to_owned(),
                    preview,
                    digest,
                    last_transition_time: since,
                }
            })
            .collect()
    }

    fn shown(&self, value: &Value, key: &str) -> (String, String) {
        if self.secret {
            let yaml = yaml_digest::to_yaml(value);
            (
                REDACTED.to_owned(),
                canonical::keyed_digest(key.as_bytes(), yaml.as_bytes()),
            )
        } else {
            (yaml_digest::preview(value), yaml_digest::digest(value))
        }
    }
}

fn read(
    path: &FieldPath,
    object: Option<&Value>,
    what: &dyn Fn(&str) -> String,
) -> Result<Value, ReadError> {
    let text = path.text();
    let error = |cause: String| ReadError::Path {
        path: text.to_owned(),
        cause,
    };
    let object =
        object.ok_or_else(|| error("failed to evaluate path of empty object".to_owned()))?;
    match path.read(object) {
        Ok(value) => Ok(value.into_owned()),
        Err(problem) => Err(error(format!(
            "failed to evaluate {}: {problem}",
            what(text)
        ))),
    }
}

#[cfg(test)]
mod tests;
