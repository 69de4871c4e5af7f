//! Entries of managed fields: which are ours, and which the Go controller left.

use serde_json::Value;

/// Field manager of the Go controller, whose Update entries would co-own the fields it wrote.
const LEGACY_MANAGER: &str = "cartographer";

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
/// the texts of a Secret that we applied as `stringData`, where nothing is ever stored.
pub(crate) fn is_legacy(entry: &Value, field_manager: &str) -> bool {
    let of_go =
        entry["manager"] == LEGACY_MANAGER && entry["operation"] == "Update" && is_main(entry);
    of_go || (is_ours(entry, field_manager) && has_texts(entry))
}

fn has_texts(entry: &Value) -> bool {
    entry["apiVersion"] == "v1" && !entry["fieldsV1"]["f:stringData"].is_null()
}

pub(crate) fn is_main(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}
