//! What an entry of the status would say twice. It is written once, because the API server decodes and validates all of a
//! status with each write of it, and each walk begins with the whole again.

use std::borrow::Cow;

use api_types::{Provenance, ResourceStatus, UpdateBasis, UpdateStack};

/// As it is written.
pub(crate) fn said_once(entry: &ResourceStatus) -> Cow<'_, ResourceStatus> {
    if entry.updates.is_none() {
        return Cow::Borrowed(entry);
    }
    let mut entry = entry.clone();
    leave_out(&mut entry);
    Cow::Owned(entry)
}

/// Leaves out of the update that is applied what the outputs say of it, as they do once the object is good.
fn leave_out(entry: &mut ResourceStatus) {
    let Some((updates, outputs)) = both(entry) else {
        return;
    };
    if updates.newest_digest.as_ref() == Some(&updates.applied.digest) {
        updates.newest_digest = None;
    }
    let made_from = &mut updates.applied.made_from;
    if outputs.is_some_and(|outputs| *made_from == with(made_from, outputs)) {
        *made_from = UpdateBasis {
            context: std::mem::take(&mut made_from.context),
            deployment: made_from.deployment.take(),
            ..UpdateBasis::default()
        };
    }
}

/// Puts it back.
pub(crate) fn put_back(entry: &mut ResourceStatus) {
    let Some((updates, outputs)) = both(entry) else {
        return;
    };
    let digest = &updates.applied.digest;
    updates.newest_digest.get_or_insert_with(|| digest.clone());
    let made_from = &mut updates.applied.made_from;
    if made_from.template.is_empty()
        && let Some(outputs) = outputs
    {
        *made_from = with(made_from, outputs);
    }
}

fn both(entry: &mut ResourceStatus) -> Option<(&mut UpdateStack, Option<&Provenance>)> {
    let outputs = entry
        .outputs
        .first()
        .and_then(|output| output.provenance.as_ref());
    entry.updates.as_mut().map(|updates| (updates, outputs))
}

/// The same, made of what these outputs were made from.
fn with(made_from: &UpdateBasis, outputs: &Provenance) -> UpdateBasis {
    UpdateBasis {
        template: outputs.template.clone(),
        params: outputs.params.clone(),
        inputs: outputs.inputs.clone(),
        ..made_from.clone()
    }
}

#[cfg(test)]
mod tests {
    use api_types::ResourceStatus;
    use serde_json::{Value, json};

    use super::*;

    fn entry(params: &str, newest: &str) -> ResourceStatus {
        let inputs = json!([{"name": "fetch", "identity": "i"}]);
        let entry = json!({
            "name": "build",
            "outputs": [{"name": "image", "preview": "x\n", "digest": "sha256:0",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
                "provenance": {"identity": "a", "accepted": "2026-01-02T03:04:05Z", "object": {"uid": "u"},
                    "template": "t", "readFrom": "r", "params": "p", "inputs": inputs}}],
            "updates": {"newest": 2, "newestDigest": newest, "readFrom": "r",
                "applied": {"number": 2, "since": "2026-01-02T03:04:05Z", "digest": "d", "madeFrom":
                    {"template": "t", "params": params, "inputs": inputs, "context": {"source.revision": "v1"}}}},
        });
        serde_json::from_value(entry).unwrap()
    }

    fn written(entry: &ResourceStatus) -> Value {
        serde_json::to_value(said_once(entry)).unwrap()["updates"].clone()
    }

    #[test]
    fn what_the_outputs_say_of_the_applied_update_is_not_said_again() {
        let updates = written(&entry("p", "d"));
        assert_eq!(
            updates,
            json!({"newest": 2, "readFrom": "r", "applied": {"number": 2, "since": "2026-01-02T03:04:05Z",
                "digest": "d", "madeFrom": {"context": {"source.revision": "v1"}}}})
        );
    }

    #[test]
    fn what_differs_is_written() {
        let updates = written(&entry("q", "e"));
        assert_eq!(updates["newestDigest"], "e");
        assert_eq!(updates["applied"]["madeFrom"]["params"], "q");
        assert_eq!(updates["applied"]["madeFrom"]["template"], "t");
    }

    #[test]
    fn what_was_left_out_is_put_back() {
        for (params, newest) in [("p", "d"), ("q", "d"), ("p", "e"), ("q", "e")] {
            for has_outputs in [true, false] {
                let mut whole = entry(params, newest);
                if !has_outputs {
                    whole.outputs.clear();
                }
                let mut read = said_once(&whole).into_owned();
                put_back(&mut read);
                assert_eq!(read, whole, "{params} {newest} {has_outputs}");
            }
        }
    }
}
