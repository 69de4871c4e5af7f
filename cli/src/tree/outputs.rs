//! Outputs without Secret values.

use std::collections::BTreeSet;

use api_types::{OutputStatus, ResourceStatus};

use super::step::Output;

/// What stands in place of a value that was read from a Secret.
const REDACTED: &str = "<redacted>";

/// The outputs of every entry, in order of the entries.
///
/// Our controllers write no Secret value into a status, the Go controller did. So a preview that came from a Secret is
/// not shown, nor is that of any step that hands the same value through: it has the same digest.
pub(super) fn shown(entries: &[&ResourceStatus]) -> Vec<Vec<Output>> {
    let secret: BTreeSet<&str> = entries
        .iter()
        .filter(|entry| is_secret(entry))
        .flat_map(|entry| &entry.outputs)
        .map(|output| output.digest.as_str())
        .collect();
    let show = |output: &OutputStatus| Output {
        name: output.name.clone(),
        preview: if secret.contains(output.digest.as_str()) {
            REDACTED.to_owned()
        } else {
            output.preview.clone()
        },
        digest: output.digest.clone(),
        last_transition_time: output.last_transition_time.clone(),
        current: output.current,
        provenance: output.provenance.clone(),
    };
    entries
        .iter()
        .map(|entry| entry.outputs.iter().map(show).collect())
        .collect()
}

fn is_secret(entry: &ResourceStatus) -> bool {
    entry.stamped_ref.as_ref().is_some_and(|object| {
        object.kind.as_deref() == Some("Secret") && object.api_version.as_deref() == Some("v1")
    })
}
