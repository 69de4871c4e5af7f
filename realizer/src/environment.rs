//! An environment: the object of a ClusterDeploymentTemplate step with validations behind it, and its lock.
//!
//! From before the object is written with a revision until every validation behind it has a verdict for that arrival, or
//! has timed out, the object is not written with anything else. What is in the environment stands in an annotation of the
//! object itself, so that both change in one apply; that it is free stands in the owner's status, which may be older than
//! the truth but never newer. A process that dies in between therefore finds the environment locked, never wrongly free.

use api_types::{EnvironmentStatus, labels};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::outputs::{Output, OutputValues};
use crate::redaction::REDACTED;
use crate::{Observed, Precondition, Submission, go_format};

/// What is in an environment: annotation `carto.run/environment`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arrival {
    /// Position in the order in which the environment received revisions; from 1 on.
    #[serde(rename = "arrival")]
    pub(crate) number: u64,
    pub(crate) revision: Value,
    pub(crate) url: Value,
    /// Digest of the rendering without this annotation.
    pub(crate) rendered: String,
    /// When it was written; whole seconds.
    pub(crate) started: Time,
    /// Whether revision and url come from a Secret and must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) secret: bool,
}

/// An arrival, and the text that it has on the object. Rendered again as it stands, so that nothing is written for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) arrival: Arrival,
    pub(crate) text: String,
}

/// Where the annotation is, for what is kept of watched objects.
pub(crate) fn annotation_path() -> Vec<String> {
    ["metadata", "annotations", labels::ENVIRONMENT]
        .map(str::to_owned)
        .to_vec()
}

impl Record {
    fn new(arrival: Arrival) -> Self {
        // Nothing in it can fail to serialise; the fallback keeps the function total.
        let text = serde_json::to_string(&arrival).unwrap_or_default();
        Self { arrival, text }
    }

    /// What an object says of itself; none if it was written before there were validations, or by the Go controller.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let text = object
            .get("metadata")?
            .get("annotations")?
            .get(labels::ENVIRONMENT)?
            .as_str()?;
        Some(Self {
            arrival: serde_json::from_str(text).ok()?,
            text: text.to_owned(),
        })
    }

    /// What the environment hands on once it is done: what is in it, never what waits for it.
    pub(crate) fn output(&self) -> Output {
        Output {
            values: OutputValues::Source {
                url: self.arrival.url.clone(),
                revision: self.arrival.revision.clone(),
            },
            secret: self.arrival.secret,
        }
    }

    pub(crate) fn revision(&self) -> String {
        shown(&self.arrival.revision, self.arrival.secret)
    }

    pub(crate) fn url(&self) -> String {
        shown(&self.arrival.url, self.arrival.secret)
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
        match output.map(|output| (&output.values, output.secret)) {
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
}

/// What status says of an environment.
#[derive(Clone, Copy)]
pub(crate) struct Known<'s> {
    pub(crate) status: Option<&'s EnvironmentStatus>,
    /// The validations behind it.
    pub(crate) validations: &'s [&'s str],
}

impl Known<'_> {
    /// Whether status says of every validation that the environment need not be kept for this arrival.
    fn is_free(&self, arrival: u64) -> bool {
        let told = self.status.map_or(&[][..], |status| &status.validations);
        self.validations.iter().all(|name| {
            told.iter().any(|told| {
                told.resource == *name && told.arrival == arrival && told.verdict.releases()
            })
        })
    }

    /// The highest arrival number that status knows of.
    fn highest(&self) -> u64 {
        let Some(status) = self.status else {
            return 0;
        };
        let deployed = status.deployed.iter().map(|deployed| deployed.arrival);
        let validated = status.validations.iter().map(|told| told.arrival);
        deployed.chain(validated).max().unwrap_or(0)
    }
}

/// The object that is the environment now.
pub(crate) struct Live<'o> {
    pub(crate) observed: &'o Observed,
    /// Whether it is the object that the rendering is written to, not one that the step used to write to.
    pub(crate) in_place: bool,
}

/// What becomes of a rendering.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It is submitted, with this record in it.
    Submit {
        record: Record,
        precondition: Precondition,
    },
    /// The environment is kept as it is.
    Hold(Record),
}

/// Decides whether the environment may be changed. `rendered` is the digest of the rendering without the record.
pub(crate) fn decide(
    rendered: &str,
    incoming: &Incoming,
    live: Option<&Live<'_>>,
    known: Known<'_>,
    now: Timestamp,
) -> Decision {
    let record = live.and_then(|live| Record::of(&live.observed.object));
    let precondition = match live.filter(|live| live.in_place) {
        None => Precondition::Absent,
        Some(live) if live.observed.version == 0 => Precondition::None,
        Some(live) => Precondition::Version(live.observed.version),
    };
    if let Some(record) = &record {
        let same = record.arrival.rendered == rendered
            && record.arrival.revision == incoming.revision
            && record.arrival.url == incoming.url;
        if same {
            return Decision::Submit {
                record: record.clone(),
                precondition,
            };
        }
        if !known.is_free(record.arrival.number) {
            return Decision::Hold(record.clone());
        }
    }
    let before = record.map_or(0, |record| record.arrival.number);
    Decision::Submit {
        record: Record::new(Arrival {
            number: before.max(known.highest()) + 1,
            revision: incoming.revision.clone(),
            url: incoming.url.clone(),
            rendered: rendered.to_owned(),
            started: api_types::condition::whole_seconds(&Time(now)),
            secret: incoming.secret,
        }),
        precondition,
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
