//! Entries of managed fields: which are ours, and which the Go controller left.

use api_types::labels;
use serde_json::{Value, json};

/// Field manager of the Go controller as it is released. It is the name of its binary, so that other builds have others.
const LEGACY_MANAGER: &str = "cartographer";

/// Where an object has no managed fields, the API server makes an entry of this name before an apply. It has all that is
/// there, whoever set it: somebody has taken the entries away.
const OF_ANYBODY: &str = "before-first-apply";

/// Labels of every object that was stamped for a step. Whoever writes one by hand does not write all of them.
const OF_A_STEP: [&str; 3] = [
    labels::RESOURCE_NAME,
    labels::TEMPLATE_KIND,
    labels::TEMPLATE_LIFECYCLE,
];

/// Whether an entry records what we applied to the object itself.
pub(crate) fn is_ours(entry: &Value, field_manager: &str) -> bool {
    entry["manager"] == field_manager && entry["operation"] == "Apply" && is_main(entry)
}

/// Whether an entry records what we created.
pub(crate) fn is_created(entry: &Value, field_manager: &str) -> bool {
    entry["manager"] == field_manager && entry["operation"] == "Update" && is_main(entry)
}

/// The entry that says what of an object is ours: what we applied or else, of an object that we only created, what we created.
pub(crate) fn own_entry<'o>(object: &'o Value, field_manager: &str) -> Option<&'o Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let applied = entries.iter().find(|entry| is_ours(entry, field_manager));
    applied.or_else(|| {
        entries
            .iter()
            .find(|entry| is_created(entry, field_manager))
    })
}

/// Whether an entry is to become ours as we would write it now: what the Go controller wrote to the object itself, and
/// the texts of a Secret that we applied as `stringData`, where nothing is ever stored. `controller` is the uid of the
/// owner that the object is made for, as it says.
pub(crate) fn is_legacy(entry: &Value, field_manager: &str, controller: Option<&str>) -> bool {
    let is_of_another = entry["operation"] == "Update"
        && is_main(entry)
        && entry["manager"] != field_manager
        && entry["manager"] != OF_ANYBODY
        && (entry["manager"] == LEGACY_MANAGER || has_stamped(entry, controller));
    is_of_another || (is_ours(entry, field_manager) && has_texts(entry))
}

/// Whether an entry has all that marks an object as stamped: the labels of a step, and the reference to the owner. So it is
/// that of a Go controller, whatever its binary is called. What was restored from a backup refers to an owner that is no
/// more, and once we have written it, the entry does not have the reference.
fn has_stamped(entry: &Value, controller: Option<&str>) -> bool {
    let metadata = &entry["fieldsV1"]["f:metadata"];
    let is_labelled = |label: &&str| !metadata["f:labels"][format!("f:{label}")].is_null();
    let refers = |uid: &str| {
        let reference = json!({ "uid": uid });
        !metadata["f:ownerReferences"][format!("k:{reference}")].is_null()
    };
    OF_A_STEP.iter().all(is_labelled) && controller.is_some_and(refers)
}

fn has_texts(entry: &Value) -> bool {
    entry["apiVersion"] == "v1" && !entry["fieldsV1"]["f:stringData"].is_null()
}

pub(crate) fn is_main(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}
