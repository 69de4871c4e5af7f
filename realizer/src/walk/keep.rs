//! Which outputs are kept as Artifacts, and which Artifacts go.
//!
//! The order in which they go is that of status, which tenants cannot write; what an Artifact says of itself decides
//! nothing.

use std::collections::BTreeSet;

use api_types::artifact::{ARTIFACT, artifact_name};
use api_types::{
    API_VERSION, ArtifactOutput, ArtifactOwner, ArtifactReference, ArtifactSpec, OutputStatus,
    ResourceStatus,
};
use serde_json::{Value, json};

use crate::exchange::digest_of;
use crate::step::end::{StepEnd, StepResult};
use crate::template::outputs::Output;
use crate::template::provenance::MOST_VALUE_BYTES;
use crate::values::redaction::REDACTED;
use crate::{ArtifactWrite, Blueprint, KnownArtifacts, Owner, kept_in};

/// The most bytes of values, as JSON, that an Artifact has.
const MOST_ARTIFACT_BYTES: usize = 256 * 1024;
/// The most Artifacts of an owner.
const MOST_ARTIFACTS: usize = 200;
/// The most bytes that they have together.
const MOST_OWNER_BYTES: u64 = 8 * 1024 * 1024;

/// What a walk keeps.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// What is to be written.
    pub(crate) writes: Vec<ArtifactWrite>,
    /// Names of those that are to go once the status is written.
    pub(crate) obsolete: Vec<String>,
}

/// Who keeps, and what there is.
pub(crate) struct Keeping<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) blueprint: &'a Blueprint,
    pub(crate) known: &'a KnownArtifacts,
}

/// An Artifact of a step, before the bounds of the owner are drawn.
struct Candidate<'r> {
    step: usize,
    reference: ArtifactReference,
    /// Whether something would be handed on no more without it.
    is_needed: bool,
    /// The outputs that it is to have, if they are there.
    output: Option<&'r Output>,
}

impl Candidate<'_> {
    /// One that is there, and of which no more is known.
    fn of(step: usize, reference: &ArtifactReference) -> Self {
        Self {
            step,
            reference: reference.clone(),
            is_needed: false,
            output: None,
        }
    }
}

impl Keeping<'_> {
    /// Says in the entries of the steps which Artifacts there are to be.
    pub(crate) fn keep<'e>(
        &self,
        entries: impl Iterator<Item = &'e mut ResourceStatus>,
        results: &[StepResult],
    ) -> Kept {
        let mut entries: Vec<&mut ResourceStatus> = entries.collect();
        let steps = entries.iter().zip(results).enumerate();
        let candidates =
            steps.flat_map(|(step, (entry, result))| self.of_step(step, entry, result));
        let mut candidates: Vec<Candidate<'_>> = candidates.collect();
        bound(&mut candidates);
        let writes = candidates
            .iter()
            .filter_map(|candidate| self.write(candidate, &entries.get(candidate.step)?.name));
        let writes = writes.collect();
        let names: BTreeSet<&str> = candidates
            .iter()
            .map(|it| it.reference.name.as_str())
            .collect();
        let found = self.known.found.keys();
        let obsolete = found.filter(|name| !names.contains(name.as_str()));
        let obsolete = obsolete.cloned().collect();
        for entry in &mut entries {
            entry.artifacts.clear();
        }
        for candidate in candidates {
            if let Some(entry) = entries.get_mut(candidate.step) {
                entry.artifacts.push(candidate.reference);
            }
        }
        Kept { writes, obsolete }
    }

    /// Those of a step, newest first.
    fn of_step<'r>(
        &self,
        step: usize,
        entry: &ResourceStatus,
        result: &'r StepResult,
    ) -> Vec<Candidate<'r>> {
        let before = self.before(step);
        let candidate = |reference: &ArtifactReference| Candidate::of(step, reference);
        let is_attributed = match &result.template {
            Some(template) => template.is_attributed(),
            // It is not known what the step is.
            None if !matches!(result.end, StepEnd::PassedThrough(_)) => {
                return before.iter().map(candidate).collect();
            }
            None => false,
        };
        let is_secret = |output: &OutputStatus| output.preview == REDACTED;
        if !is_attributed || entry.outputs.iter().any(is_secret) {
            return Vec::new();
        }
        let newest = self.newest(step, result).or_else(|| {
            let needed = kept_in(before, &entry.outputs)?;
            Some(Candidate {
                is_needed: true,
                ..candidate(needed)
            })
        });
        let older = before.iter().filter(|it| {
            let newest = newest.as_ref().map(|newest| &newest.reference.identity);
            newest != Some(&it.identity) && self.is_there(it)
        });
        let older: Vec<Candidate<'_>> = older.map(candidate).collect();
        let most = self.blueprint.retain.max(usize::from(newest.is_some()));
        newest.into_iter().chain(older).take(most).collect()
    }

    /// What the present status names of a step.
    fn before(&self, step: usize) -> &[ArtifactReference] {
        let status = &self.owner.status;
        let is_of_blueprint = status.is_of(&self.blueprint.name);
        let entry = status.resource(&self.blueprint.steps[step].name);
        let entry = entry.filter(|_| is_of_blueprint);
        entry.map_or(&[], |entry| &entry.artifacts)
    }

    /// Whether it is there as it was written, or nobody knows.
    fn is_there(&self, reference: &ArtifactReference) -> bool {
        let found = self.known.found.get(&reference.name);
        // What is known by a key only cannot be checked once status tells its values no more.
        let is_ours =
            found.is_some_and(|it| it.is_whole && !it.is_keyed && it.owner.uid == self.owner.uid);
        is_ours || self.known.is_unlisted
    }

    /// The outputs that were good in this walk, if they are to be kept.
    fn newest<'r>(&self, step: usize, result: &'r StepResult) -> Option<Candidate<'r>> {
        let output = result.end.output().or_else(|| result.end.earlier())?;
        let provenance = output.provenance.as_ref()?;
        let bytes = output.bytes();
        let is_needed = bytes > MOST_VALUE_BYTES;
        // Nobody could tell in the future whether one under a key is what it says.
        let is_history = self.blueprint.retain > 0 && output.rendering.is_some();
        let may = output.taint.is_none()
            && !provenance.identity.is_empty()
            && (1..=MOST_ARTIFACT_BYTES).contains(&bytes);
        if !may || !(is_needed || is_history) {
            return None;
        }
        let name = &self.blueprint.steps[step].name;
        let kind = self.owner.family.owner_kind();
        let (owner, identity) = (self.owner.name.as_str(), &provenance.identity);
        let name = artifact_name(kind, owner, name.as_str(), identity);
        let is_new = || !self.before(step).iter().any(|it| it.name == name);
        if self.known.is_unwritable && is_new() {
            return None;
        }
        Some(Candidate {
            step,
            reference: ArtifactReference {
                name,
                identity: identity.clone(),
                accepted: provenance.accepted.clone(),
                bytes: bytes as u64,
                digest: digest_of(&values_of(output)),
            },
            is_needed,
            output: Some(output),
        })
    }

    /// What is to be written, unless it is there.
    fn write(&self, candidate: &Candidate<'_>, step: &str) -> Option<ArtifactWrite> {
        let output = candidate.output?;
        let reference = &candidate.reference;
        let name = &reference.name;
        let is_there = self.known.found.get(name).is_some_and(|found| {
            found.is_whole
                && found.is_keyed == output.rendering.is_none()
                && found.owner.uid == self.owner.uid
                && found.has(reference)
        });
        if is_there || self.known.is_unwritable {
            return None;
        }
        let name = name.clone();
        let object = self.object(&name, step, output);
        Some(ArtifactWrite { name, object })
    }

    fn object(&self, name: &str, step: &str, output: &Output) -> Value {
        let owner = ArtifactOwner {
            kind: self.owner.family.owner_kind().to_owned(),
            name: self.owner.name.to_string(),
            uid: self.owner.uid.clone(),
        };
        let reference = json!({
            "apiVersion": API_VERSION, "kind": owner.kind, "name": owner.name, "uid": owner.uid, "controller": true,
        });
        let spec = ArtifactSpec {
            owner,
            step: step.to_owned(),
            outputs: values_of(output),
            provenance: output.provenance.as_deref().cloned(),
            rendering: output.rendering.as_deref().map(str::to_owned),
        };
        json!({
            "apiVersion": API_VERSION,
            "kind": ARTIFACT,
            "metadata": {
                "namespace": self.owner.namespace.as_str(), "name": name, "ownerReferences": [reference],
            },
            "spec": spec,
        })
    }
}

fn values_of(output: &Output) -> Vec<ArtifactOutput> {
    let values = output.named().into_iter();
    let values = values.map(|(name, value)| ArtifactOutput {
        name: name.to_owned(),
        value: value.clone(),
    });
    values.collect()
}

/// Drops the oldest until the rest is within the bounds of an owner, those that are needed last.
fn bound(candidates: &mut Vec<Candidate<'_>>) {
    let mut bytes: u64 = candidates.iter().map(|it| it.reference.bytes).sum();
    while candidates.len() > MOST_ARTIFACTS || bytes > MOST_OWNER_BYTES {
        let oldest = candidates.iter().enumerate().min_by_key(|(_, it)| {
            let reference = &it.reference;
            (it.is_needed, reference.accepted.0, &reference.identity)
        });
        let Some((oldest, _)) = oldest else { return };
        bytes -= candidates.remove(oldest).reference.bytes;
    }
}

#[cfg(test)]
mod tests;
