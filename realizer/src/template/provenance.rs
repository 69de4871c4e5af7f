//! What made an output, and what goes on downstream while there is no new one
//! (docs/behaviour/attribution.md).
//!
//! An output is accepted from an object that holds our rendering and says that it is good. It gets an identity, which covers
//! its values and all that they were made from, the identities of the inputs of the step included. The identity and the
//! values are kept in the owner's status, which tenants of the default roles cannot write; while the object is not good, the
//! kept values are handed on.
//!
//! ```text
//!  inputs ─▶ Basis ─▶ read, good ─▶ accept ─▶ Output with provenance ─▶ status ─┐
//!                  └▶ not good ◀─────────────── last_good ◀─────────────────────┘
//! ```

use std::sync::Arc;

use api_types::{OutputStatus, Provenance, ProvenanceInput, ProvenanceObject, ResourceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::template::goodness::RuleInputs;
use crate::template::others::Others;
use crate::template::outputs::Output;
use crate::template::{Attribution, Template};
use crate::values::canonical;
use crate::values::redaction::{self, Taint};
use crate::{KnownArtifacts, StatusKey};

/// The most bytes of values, as JSON, that status keeps of a step.
pub(crate) const MOST_VALUE_BYTES: usize = 8 * 1024;

/// What the outputs of a step are made from, as known before they are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Basis {
    /// Digest of the template's spec.
    pub(crate) template: String,
    /// Digest of the parameters.
    pub(crate) params: String,
    /// The outputs that go in.
    pub(crate) inputs: Vec<ProvenanceInput>,
    /// What the context holds at the paths of `inputsOnStatus`.
    pub(crate) wanted: Vec<Option<Value>>,
    /// The objects that the rules read beside the stamped one, as far as they were asked for. They make no output.
    pub(crate) others: Others,
}

impl Basis {
    /// What the rules go by beside the stamped object.
    pub(crate) fn rule_inputs(&self) -> RuleInputs<'_> {
        RuleInputs {
            wanted: &self.wanted,
            others: &self.others.read,
            are_as_when_good: self.others.are_as_when_good,
        }
    }
}

/// An output that is about to be accepted.
pub(crate) struct Acceptance<'a> {
    pub(crate) step: &'a str,
    pub(crate) attribution: &'a Attribution,
    pub(crate) basis: &'a Basis,
    /// What of the inputs came from Secrets.
    pub(crate) taint: &'a Taint,
    /// The object that holds the output.
    pub(crate) object: &'a Value,
    /// The fields of the object that others have set.
    pub(crate) foreign: &'a [String],
    /// Digest of what was rendered.
    pub(crate) rendering: &'a str,
    /// The outputs of the step in the present status.
    pub(crate) previous: &'a [OutputStatus],
    pub(crate) key: &'a StatusKey,
    pub(crate) now: &'a Time,
}

impl Acceptance<'_> {
    /// The output with what made it. The same values from the same object under the same inputs are the output that was
    /// accepted before.
    pub(crate) fn accept(&self, output: Output) -> Output {
        let is_secret = self.is_secret(&output);
        let identity = self.identity(&output, is_secret);
        let before = self
            .previous
            .iter()
            .find_map(|output| output.provenance.as_ref());
        let same = before.filter(|before| before.identity == identity && self.made(before));
        let provenance = same.cloned().unwrap_or_else(|| self.provenance(identity));
        Output {
            provenance: Some(Arc::new(provenance)),
            rendering: (!is_secret).then(|| self.rendering.into()),
            ..output
        }
    }

    fn is_secret(&self, output: &Output) -> bool {
        !self.taint.is_none() || !output.taint.is_none() || redaction::is_secret(self.object)
    }

    /// Whether an output with this provenance may be the same, if there is no identity to tell: without the key of the
    /// installation nothing is told of secret values.
    fn made(&self, before: &Provenance) -> bool {
        let now = self.provenance(String::new());
        !before.identity.is_empty()
            || Provenance {
                accepted: now.accepted.clone(),
                foreign_fields: now.foreign_fields.clone(),
                ..before.clone()
            } == now
    }

    fn provenance(&self, identity: String) -> Provenance {
        let metadata = &self.object["metadata"];
        Provenance {
            identity,
            accepted: api_types::condition::whole_seconds(self.now),
            object: ProvenanceObject {
                uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
                generation: metadata["generation"].as_i64(),
            },
            template: self.basis.template.clone(),
            read_from: self.attribution.read_from.clone(),
            params: self.basis.params.clone(),
            inputs: self.basis.inputs.clone(),
            foreign_fields: self.foreign.to_vec(),
        }
    }

    /// Not by generation: somebody who changes a field and changes it back makes no other output.
    fn identity(&self, output: &Output, is_secret: bool) -> String {
        let digest = canonical::digest(&json!({
            "step": self.step,
            "template": self.basis.template,
            "object": self.object["metadata"]["uid"],
            "rendering": self.rendering,
            "params": self.basis.params,
            "inputs": self.basis.inputs,
            "values": output.named(),
        }));
        if is_secret {
            let keyed = self.key.digest("provenance", &digest);
            return keyed.map_or_else(String::new, |keyed| canonical::short(&keyed));
        }
        canonical::short(&digest)
    }
}

/// A digest as a provenance has them.
pub(crate) fn digest(value: &Value) -> String {
    canonical::short(&canonical::digest(value))
}

/// What an output is known by to the steps that take it: its identity, or the digest of its values where nothing says what
/// made them.
pub(crate) fn known_as(output: &Output, key: &StatusKey) -> String {
    if let Some(provenance) = &output.provenance {
        return provenance.identity.clone();
    }
    match &output.digests(key)[..] {
        [digest] => digest.clone(),
        several => canonical::digest(&json!(several)),
    }
}

/// The outputs that status tells of a step, as long as they mean what the template's outputs mean.
pub(crate) fn former<'s>(entry: &'s ResourceStatus, template: &Template) -> &'s [OutputStatus] {
    let read_from = template.attribution.as_ref().map(|it| &it.read_from);
    let is_of_template = |output: &OutputStatus| {
        let provenance = output.provenance.as_ref();
        provenance.map(|provenance| &provenance.read_from) == read_from
    };
    if read_from.is_some() && entry.outputs.iter().all(is_of_template) {
        &entry.outputs
    } else {
        &[]
    }
}

/// The last good outputs of a step, from its status, or from the Artifact that holds what its status says. None of a Secret is
/// kept, and nothing very large.
pub(crate) fn last_good(
    entry: &ResourceStatus,
    template: &Template,
    inputs: &Taint,
    artifacts: &KnownArtifacts,
) -> Option<Output> {
    let former = former(entry, template);
    let elsewhere = artifacts.last_good(entry, former).unwrap_or_default();
    let value = |name: &str| {
        let output = former.iter().find(|output| output.name == name)?;
        let elsewhere = elsewhere.iter().find(|output| output.name == name);
        let value = elsewhere.map(|output| output.value.clone());
        output.value.clone().or(value)
    };
    let values = template.outputs.kept(value)?;
    let output = Output {
        values,
        taint: Taint::NONE,
        provenance: former.first()?.provenance.clone().map(Arc::new),
        rendering: None,
    };
    // A text that has come to be secret since is followed from now on.
    let named = output.named().into_iter().map(|(_, value)| value);
    let taint = inputs.carried_by(named);
    Some(Output { taint, ..output })
}
