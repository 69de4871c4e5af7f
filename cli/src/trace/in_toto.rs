//! A trace as in-toto Statements with SLSA provenance, one for each step whose making is known.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Ancestor, Given, Made, Trace};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// What the external parameters and the dependencies below mean.
const BUILD_TYPE: &str = "https://carto.run/provenance/v1alpha1";

/// What identities are called where a digest is asked for.
const IDENTITY: &str = "cartoIdentity";

/// The Statements, the one of the last step first; each step once.
///
/// The digest of a subject is that of the image where the value names one (`…@sha256:…`), else that of the value as YAML.
/// What has neither, a value of a Secret or a step that gives nothing but its object, is told by the identity of what it gave.
/// Where a Secret went in and the installation has no key there is no identity, and such a step has no Statement.
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
    let subjects = subjects(made);
    if subjects.is_empty() {
        return None;
    }
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

/// What a step gave; of one that gives no values, its object.
fn subjects(made: &Made) -> Vec<Value> {
    let identity = made.making.as_ref().map(|making| making.identity.as_str());
    let identity = identity.unwrap_or_default();
    if made.outputs.is_empty() {
        let object = made.object.as_deref().unwrap_or(&made.step);
        return by_identity(object, identity).into_iter().collect();
    }
    let outputs = made.outputs.iter();
    outputs
        .filter_map(|output| descriptor(output, identity))
        .collect()
}

fn dependency(input: &Ancestor) -> Vec<Value> {
    match input {
        Ancestor::Known(made) => subjects(made),
        Ancestor::Gone { step, gone, .. } => by_identity(step, gone).into_iter().collect(),
    }
}

fn by_identity(name: &str, identity: &str) -> Option<Value> {
    (!identity.is_empty()).then(|| json!({"name": name, "digest": {IDENTITY: identity}}))
}

fn descriptor(output: &Given, identity: &str) -> Option<Value> {
    // One that is keyed, because the value comes from a Secret, is none that others could compare.
    if output.value == "<redacted>" {
        return by_identity(&output.name, identity);
    }
    let of_image = output.value.rsplit_once("@sha256:").map(|(_, hex)| hex);
    let digest =
        of_image.filter(|hex| hex.len() == 64 && hex.chars().all(|c| c.is_ascii_hexdigit()));
    let digest = digest.or_else(|| output.digest.strip_prefix("sha256:"))?;
    Some(json!({
        "name": output.name, "digest": {"sha256": digest}, "annotations": {"value": output.value},
    }))
}
