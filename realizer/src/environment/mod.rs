//! An environment: the object of a ClusterDeploymentTemplate step with validations behind it, and its lock.
//!
//! From before the object is written with a revision until every validation behind it has a verdict for that arrival, or
//! has timed out, the object is not written with anything else. All of that is decided by the owner's status, which tenants
//! cannot write: a revision is *announced* there before the object is written with it, and no validation of it begins
//! before status says that it is *deployed*. So whatever was announced and not deployed may be replaced, whether it reached
//! the object or not, and a process that dies at any point finds the environment locked, never wrongly free.
//!
//! ```text
//!  status      deployed r1 ─▶ all verdicts, r2 announced ──────────────────▶ r2 deployed ─▶ validations of r2 begin
//!  object      r1 ─────────────────────────────────────────▶ r2 is written
//! ```
//!
//! What the object says of itself, in an annotation, decides nothing. What status does not know of in it means that status
//! is old, or that somebody else wrote it: it is first written down, which a process with an old status cannot do, and
//! disregarded from then on.

mod decide;
mod known;
mod sealed;
pub(crate) mod state;

use api_types::{EnvironmentStatus, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use template_language::go_format;

use crate::template::outputs::{Output, OutputValues};
use crate::values::redaction::{REDACTED, Taint};
use crate::{StatusKey, Submission};

pub(crate) use decide::{Decision, Live, decide};
pub(crate) use known::{Known, Present};

/// A greater number is not taken from an annotation: all that come after it must be numbers, too.
const HIGHEST_READ: u64 = 1 << 53;

/// An arrival as the object tells of it: annotation `carto.run/environment`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arrival {
    /// Position in the order in which the environment received revisions; from 1 on.
    #[serde(rename = "arrival")]
    pub(crate) number: u64,
    pub(crate) revision: Value,
    pub(crate) url: Value,
    /// Digest of the rendering without this annotation.
    pub(crate) rendered: String,
    /// When it was announced; whole seconds.
    pub(crate) started: Time,
    /// Whether revision and url come from a Secret and must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) secret: bool,
}

/// An arrival, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) arrival: Arrival,
    /// The text that it has on the object, rendered again as it stands so that nothing is written for it. Empty when it
    /// cannot be had.
    pub(crate) text: String,
    /// Since when it is in the environment, by status. Time limits count from here.
    pub(crate) since: Time,
    /// Its text as status has it; none when status has nothing to compare with.
    pub(crate) in_status: Option<String>,
    /// Whether this is what we wrote. Otherwise it is not handed on, and no validation of it begins.
    pub(crate) proven: bool,
    /// What of it came from Secrets. Kept, because to search for it takes preparation.
    taint: Taint,
}

/// Where the annotation is, for what is kept of watched objects.
pub(crate) fn annotation_path() -> Vec<String> {
    ["metadata", "annotations", labels::ENVIRONMENT]
        .map(str::to_owned)
        .to_vec()
}

/// What an object says of itself; nothing if it was written before there were validations, or by the Go controller.
pub(crate) fn annotation_of(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][labels::ENVIRONMENT].as_str()
}

impl Arrival {
    /// None if it is no arrival, or one that was sealed with another key.
    fn read(text: &str, key: &StatusKey) -> Option<Self> {
        sealed::read(text, key)
    }

    fn is_of(&self, rendered: &str, incoming: &Incoming) -> bool {
        self.rendered == rendered && self.has_values_of(incoming)
    }

    fn taint(&self) -> Taint {
        if self.secret {
            Taint::of([&self.url, &self.revision])
        } else {
            Taint::NONE
        }
    }

    fn has_values_of(&self, incoming: &Incoming) -> bool {
        self.revision == incoming.revision && self.url == incoming.url
    }
}

impl Record {
    /// One that we write, or have verified.
    fn proven(arrival: Arrival, text: String, since: Time) -> Self {
        Self {
            in_status: Some(text.clone()),
            taint: arrival.taint(),
            arrival,
            text,
            since,
            proven: true,
        }
    }

    /// None if it has to be sealed and there is no key.
    fn new(arrival: Arrival, since: Time, key: &StatusKey) -> Option<Self> {
        let text = sealed::write(&arrival, key)?;
        Some(Self::proven(arrival, text, since))
    }

    /// What is in the environment, never what waits for it; as far as that is known.
    pub(crate) fn output(&self) -> Option<Output> {
        let Arrival { url, revision, .. } = &self.arrival;
        let output = || {
            let values = OutputValues::Source {
                url: url.clone(),
                revision: revision.clone(),
            };
            Output::of(values, self.taint.clone())
        };
        (!self.text.is_empty()).then(output)
    }

    pub(crate) fn revision(&self) -> String {
        shown(&self.arrival.revision, self.arrival.secret)
    }

    pub(crate) fn url(&self) -> String {
        shown(&self.arrival.url, self.arrival.secret)
    }

    /// Whether status calls it deployed, with nothing announced that may have taken its place.
    pub(crate) fn is_settled(&self, status: &EnvironmentStatus) -> bool {
        let deployed = status.deployed.as_ref();
        status.arriving.is_none()
            && deployed.is_some_and(|recorded| recorded.arrival == self.arrival.number)
    }

    /// This record, if it is that of the rendering, which makes it known for sure: submitting it compares the values.
    /// What stands in clear and must not, is sealed when it is written again.
    fn verified(&self, rendered: &str, incoming: &Incoming, key: &StatusKey) -> Option<Self> {
        let is_this = !self.text.is_empty() && self.arrival.is_of(rendered, incoming);
        let arrival = Arrival {
            secret: self.arrival.secret || incoming.secret,
            ..is_this.then(|| self.arrival.clone())?
        };
        if arrival.secret && sealed::is_clear(&self.text) {
            return Self::new(arrival, self.since.clone(), key);
        }
        Some(Self::proven(arrival, self.text.clone(), self.since.clone()))
    }
}

/// A revision or url for people.
pub(crate) fn shown(value: &Value, secret: bool) -> String {
    if secret {
        REDACTED.to_owned()
    } else {
        go_format::display(value)
    }
}

/// The revision that goes into a deployment step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Incoming {
    pub(crate) revision: Value,
    pub(crate) url: Value,
    pub(crate) secret: bool,
}

impl Incoming {
    pub(crate) fn of(output: Option<&Output>) -> Self {
        match output.map(|output| (&output.values, !output.taint.is_none())) {
            Some((OutputValues::Source { url, revision }, secret)) => Self {
                revision: revision.clone(),
                url: url.clone(),
                secret,
            },
            _ => Self {
                revision: Value::Null,
                url: Value::Null,
                secret: false,
            },
        }
    }

    fn arrival(&self, number: u64, rendered: &str, started: &Time) -> Arrival {
        Arrival {
            number,
            revision: self.revision.clone(),
            url: self.url.clone(),
            rendered: rendered.to_owned(),
            started: started.clone(),
            secret: self.secret,
        }
    }
}

/// Puts an annotation on a rendering.
pub(crate) fn annotate(submission: &mut Submission, key: &str, text: &str) {
    let Some(metadata) = submission
        .object
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if !annotations.is_object() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), json!(text));
    }
}

#[cfg(test)]
mod tests;
