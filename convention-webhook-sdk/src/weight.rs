//! What bytes of JSON become in memory, before they are read.
//!
//! `{},` is three bytes, and a hundred or so in memory. So of what strangers send it is counted
//! what it would become: a long text stays as long as it is, and a bill of materials is one.

/// Texts up to this length count.
const SHORT: usize = 1024;

/// What a document is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Bytes, without blanks and long texts.
    pub(crate) bytes: usize,
    /// Objects, and lists.
    pub(crate) nodes: usize,
}

impl Weight {
    /// Of JSON; of anything else, something.
    pub(crate) fn of(json: &[u8]) -> Self {
        let mut weight = Self::default();
        let mut rest = json;
        while let Some((&next, behind)) = rest.split_first() {
            rest = behind;
            match next {
                b'"' => {
                    let length = text_length(rest);
                    weight.bytes += if length > SHORT { 0 } else { length };
                    rest = &rest[length..];
                }
                b'{' | b'[' => {
                    weight.nodes += 1;
                    weight.bytes += 1;
                }
                b' ' | b'\n' | b'\r' | b'\t' => {}
                _ => weight.bytes += 1,
            }
        }
        weight
    }
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
    fn blanks_and_long_texts_weigh_nothing() {
        let long = "x".repeat(SHORT + 1);
        let json = format!("{{ \"a\\\"\": [1,\n 22],\t\"b\": \"{long}\"}}");
        let expected = Weight {
            bytes: "{a\\\"\":[1,22],b\":}".len(),
            nodes: 2,
        };
        assert_eq!(Weight::of(json.as_bytes()), expected);
    }

    #[test]
    fn what_is_no_json_weighs_something_and_does_no_harm() {
        for bytes in [&b"\""[..], b"\"\\", b"\\\"", b"{\"a", b"\xff\xff", b""] {
            assert!(Weight::of(bytes).bytes <= bytes.len());
        }
    }
}
