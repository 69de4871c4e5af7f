//! How many objects and lists a document has, before it is read.
//!
//! `{},` is three bytes, and a hundred or so in memory.

/// Objects, and lists, in JSON; in anything else, some number.
pub(crate) fn nodes(json: &[u8]) -> usize {
    let mut nodes = 0;
    let mut rest = json;
    while let Some((&next, behind)) = rest.split_first() {
        rest = behind;
        match next {
            b'"' => rest = &rest[text_length(rest)..],
            b'{' | b'[' => nodes += 1,
            _ => {}
        }
    }
    nodes
}

/// Up to the quote that ends the text, and with it.
fn text_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next) = text.get(at) {
        at += match next {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_nodes() {
        let json = br#"{ "a\"{": [1, 22], "b": "[[[" }"#;
        assert_eq!(nodes(json), 2);
    }

    #[test]
    fn what_is_no_json_does_no_harm() {
        for bytes in [&b"\""[..], b"\"\\", b"\\\"", b"{\"a", b"\xff\xff", b""] {
            assert!(nodes(bytes) <= bytes.len());
        }
    }
}
