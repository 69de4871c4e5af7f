//! Outputs that no step has any more, from the Artifacts that keep them. An Artifact counts only if the identity that is asked
//! for is the digest of all that it says: who wrote it does not matter then.

use std::collections::BTreeMap;

use api_types::artifact::artifact_name;
use api_types::{Artifact, ArtifactSpec, Provenance};
use serde::Deserialize;
use serde_json::Value;

use super::{Ancestor, Given, Made, Making, Trace};
use crate::tree::{Output, Tree};

/// Digits of an identity.
const DIGITS: usize = 32;

/// What is known of outputs of the past, by identity.
#[derive(Clone, Debug, Default)]
pub struct Past(BTreeMap<String, Kept>);

/// What was found in the place of an Artifact.
#[derive(Clone, Debug)]
enum Kept {
    /// Nothing.
    Nothing,
    /// One that has this identity.
    Fits(Box<ArtifactSpec>),
    /// Why one is not believed.
    Doubtful(&'static str),
}

impl Trace {
    /// The outputs that no step has any more, and of which nobody has looked for an Artifact: step and identity.
    pub fn gone(&self, past: &Past) -> Vec<(String, String)> {
        let mut gone = Vec::new();
        let mut left: Vec<&Made> = self.ends.iter().collect();
        while let Some(made) = left.pop() {
            for input in &made.inputs {
                match input {
                    Ancestor::Known(made) => left.push(made),
                    Ancestor::Gone {
                        step,
                        gone: identity,
                        ..
                    } => {
                        let is_identity = identity.len() == DIGITS;
                        let wanted = (step.clone(), identity.clone());
                        if is_identity && !past.0.contains_key(identity) && !gone.contains(&wanted)
                        {
                            gone.push(wanted);
                        }
                    }
                }
            }
        }
        gone
    }

    /// The name of the Artifact that keeps such outputs, if one does.
    pub fn artifact_of(&self, step: &str, identity: &str) -> String {
        artifact_name(self.kind, &self.name, step, identity)
    }
}

impl Past {
    /// Takes what was found of outputs of a step: an Artifact, or none.
    pub fn put(&mut self, step: &str, identity: &str, found: Option<&Value>) {
        let kept = found.map_or(Kept::Nothing, |found| Kept::of(found, step, identity));
        self.0.insert(identity.to_owned(), kept);
    }

    /// The making of the outputs with this identity, with its inputs as they are found by `ancestor`.
    pub(super) fn made(
        &self,
        tree: &Tree,
        identity: &str,
        ancestor: impl Fn(&Provenance) -> Vec<Ancestor>,
    ) -> Option<Made> {
        let Some(Kept::Fits(spec)) = self.0.get(identity) else {
            return None;
        };
        let provenance = spec.provenance.as_ref()?;
        let outputs = realizer::previews(spec).into_iter();
        let outputs = outputs.map(|(name, preview, digest)| Given {
            value: Output::line_of(&preview),
            name,
            digest,
        });
        Some(Made {
            step: spec.step.clone(),
            template: None,
            object: None,
            artifact: Some(artifact_name(tree.kind, &tree.name, &spec.step, identity)),
            outputs: outputs.collect(),
            making: Some(Making::of(provenance, false)),
            inputs: ancestor(provenance),
        })
    }

    /// Why what was found for this identity is not believed.
    pub(super) fn doubt(&self, identity: &str) -> Option<&'static str> {
        match self.0.get(identity)? {
            Kept::Doubtful(why) => Some(why),
            Kept::Nothing | Kept::Fits(_) => None,
        }
    }
}

impl Kept {
    fn of(found: &Value, step: &str, identity: &str) -> Self {
        let tampered = "its Artifact was tampered with";
        let Ok(Artifact { spec, .. }) = Artifact::deserialize(found) else {
            return Self::Doubtful(tampered);
        };
        let said = spec.provenance.as_ref().map(|it| it.identity.as_str());
        match realizer::identity_of(&spec) {
            None if said == Some(identity) => Self::Doubtful(
                "its Artifact cannot be checked: the identity is one under the key of the installation",
            ),
            Some(computed) if computed == identity && spec.step == step => {
                Self::Fits(Box::new(spec))
            }
            _ => Self::Doubtful(tampered),
        }
    }
}
