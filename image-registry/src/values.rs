//! JSON of others, as values. A value takes far more memory than its text.

use serde_json::Value;

/// The most values in a document.
const VALUES: usize = 200_000;

/// The document, if it is one and has no more values than anybody writes.
pub(crate) fn value_in(bytes: &[u8]) -> Option<Value> {
    if more_than(bytes, VALUES) {
        return None;
    }
    serde_json::from_slice(bytes).ok()
}

/// Whether there may be more values. Each but the first stands behind one of these signs.
fn more_than(bytes: &[u8], most: usize) -> bool {
    let (mut count, mut quoted, mut escaped) = (0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' | b':' if !quoted => count += 1,
            _ => {}
        }
    }
    count > most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_unless_it_is_a_flood_of_values() {
        let text = format!(
            r#"{{"a": ["{}", "\\",  "\""], "b": 1}}"#,
            ",".repeat(VALUES)
        );
        assert!(value_in(text.as_bytes()).is_some());
        for flood in ["[", "[0,", "{\"\":"] {
            assert_eq!(value_in(flood.repeat(VALUES + 1).as_bytes()), None);
        }
        let flood = format!("[{}0]", "0,".repeat(VALUES));
        assert_eq!(value_in(flood.as_bytes()), None);
        assert!(value_in(b"{").is_none() && value_in(b"\\\"").is_none());
    }
}
