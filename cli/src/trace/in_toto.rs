//! A trace as in-toto Statements with SLSA provenance, one for each step whose making is known.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Ancestor, Given, Made, Trace};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// What the external parameters and the dependencies below mean.
const BUILD_TYPE: &str = "https://carto.run/provenance/v1alpha1";

/// The Statements, the one of the last step first; each step once.
///
/// The digest of a subject is that of the image where the value names one (`…@sha256:…`), else that of the value as YAML.
pub fn in_toto(trace: &Trace) -> Vec<Value> {
    let mut statements: Vec<Value> = Vec::new();
    let mut told = BTreeSet::new();
    let mut left: Vec<&Made> = trace.ends.iter().rev().collect();
    while let Some(made) = left.pop() {
        let inputs = made.inputs.iter().rev().filter_map(|input| match input {
            Ancestor::Known(made) => Some(&**made),
            Ancestor::Gone { .. } => None,
        });
        left.extend(inputs);
        let identity = made.making.as_ref().map(|making| &making.identity);
        if told.insert((&made.step, identity)) {
            statements.extend(statement(trace, made));
        }
    }
    statements
}

fn statement(trace: &Trace, made: &Made) -> Option<Value> {
    let making = made.making.as_ref()?;
    let subjects: Vec<Value> = made.outputs.iter().map(descriptor).collect();
    let dependencies: Vec<Value> = made.inputs.iter().flat_map(dependency).collect();
    let mut internal =
        json!({"object": made.object, "uid": making.uid, "generation": making.generation});
    if let Some(artifact) = &made.artifact {
        internal["artifact"] = json!(artifact);
    }
    Some(json!({
        "_type": STATEMENT,
        "subject": subjects,
        "predicateType": PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "owner": format!("{}/{}/{}", trace.kind, trace.namespace, trace.name),
                    "step": made.step,
                    "template": made.template,
                    "templateDigest": making.template_digest,
                    "paramsDigest": making.params_digest,
                },
                "internalParameters": internal,
                "resolvedDependencies": dependencies,
            },
            "runDetails": {
                "builder": {"id": "https://carto.run"},
                "metadata": {"invocationId": making.identity, "finishedOn": making.accepted},
            },
        },
    }))
}

fn dependency(input: &Ancestor) -> Vec<Value> {
    match input {
        Ancestor::Known(made) => made.outputs.iter().map(descriptor).collect(),
        Ancestor::Gone { step, gone, .. } => vec![json!({
            "name": step, "annotations": {"identity": gone},
        })],
    }
}

fn descriptor(output: &Given) -> Value {
    let of_image = output.value.rsplit_once("@sha256:").map(|(_, hex)| hex);
    let digest =
        of_image.filter(|hex| hex.len() == 64 && hex.chars().all(|c| c.is_ascii_hexdigit()));
    let digest = digest.or_else(|| output.digest.strip_prefix("sha256:"));
    let mut descriptor = json!({"name": output.name, "annotations": {"value": output.value}});
    // One that is keyed, because the value comes from a Secret, is none that others could compare.
    if let Some(digest) = digest.filter(|_| output.value != "<redacted>") {
        descriptor["digest"] = json!({"sha256": digest});
    }
    descriptor
}
