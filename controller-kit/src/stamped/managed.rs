//! Entries of managed fields: which are ours, and which the Go controller left.

use serde_json::Value;

/// Field manager of the Go controller, whose Update entries would co-own the fields it wrote.
const LEGACY_MANAGER: &str = "cartographer";

/// Whether an entry records what we applied to the object itself.
pub(crate) fn is_ours(entry: &Value, field_manager: &str) -> bool {
    entry["manager"] == field_manager && entry["operation"] == "Apply" && is_main(entry)
}

/// Whether an entry records what the Go controller wrote to the object itself.
pub(crate) fn is_legacy(entry: &Value) -> bool {
    entry["manager"] == LEGACY_MANAGER && entry["operation"] == "Update" && is_main(entry)
}

fn is_main(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}
