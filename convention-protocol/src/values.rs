//! How many values a text of JSON has, before it is read: in memory each takes far more than its
//! text. `{"":0},` is seven bytes, and becomes hundreds.

/// Whether there may be more values than `most` in what others sent; keys count as well. Of what is
/// no JSON it counts what a reader sees before it gives up.
///
/// ```
/// use convention_protocol::has_more_values;
///
/// let text = br#"{"a": [1, 2], "b": "no , value [ of { its : own"}"#;
/// assert!(has_more_values(text, 5) && !has_more_values(text, 6));
/// ```
pub fn has_more_values(json: &[u8], most: usize) -> bool {
    count_values(json, most).is_none()
}

/// How many values there may be in what others sent, if no more than `most`; as in [`has_more_values`].
pub fn count_values(json: &[u8], most: usize) -> Option<usize> {
    let mut count = 0;
    let mut rest = json;
    while let Some((next, behind)) = rest.split_first() {
        rest = behind;
        match next {
            b'"' => rest = behind_text(rest),
            // Each value but the first, and each key, stands behind one of these.
            b',' | b'[' | b'{' | b':' if count == most => return None,
            b',' | b'[' | b'{' | b':' => count += 1,
            _ => {}
        }
    }
    Some(count)
}

/// What stands behind the quote that ends the text.
fn behind_text(mut text: &[u8]) -> &[u8] {
    while let Some(at) = text.iter().position(|next| matches!(next, b'"' | b'\\')) {
        let is_end = text[at] == b'"';
        text = text
            .get(at + if is_end { 1 } else { 2 }..)
            .unwrap_or_default();
        if is_end {
            return text;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_in_texts_are_no_values() {
        let text = format!(
            r#"{{"a": ["{}", "\\",  "\"[[["], "b": 1}}"#,
            ",".repeat(100)
        );
        assert!(!has_more_values(text.as_bytes(), 7));
        assert!(has_more_values(text.as_bytes(), 6));
    }

    #[test]
    fn whatever_the_values_are_they_count() {
        for flood in ["[", "[0,", "{\"\":", "\"\\\"\",", "{},"] {
            assert!(
                has_more_values(flood.repeat(101).as_bytes(), 100),
                "{flood}"
            );
        }
        assert!(!has_more_values(b"0", 0));
    }

    #[test]
    fn what_is_no_json_does_no_harm() {
        for bytes in [&b"\""[..], b"\"\\", b"\\\"", b"{\"a", b"\xff\xff", b""] {
            assert!(!has_more_values(bytes, 1));
        }
    }
}
