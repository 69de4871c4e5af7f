//! Labels of which there may be many.

use std::collections::HashSet;

use parking_lot::RwLock;
/// What a value is counted as that is one too many.
pub(super) const OTHER: &str = "other";

/// The first so many values of a label; all further ones are counted together.
///
/// Whatever sends many kinds of requests must not take the monitoring down.
pub struct Bounded {
    most: usize,
    known: RwLock<HashSet<Box<str>>>,
}

impl Bounded {
    /// So many.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            known: RwLock::default(),
        }
    }

    /// The value itself, or `other`.
    pub fn label<'v>(&self, value: &'v str) -> &'v str {
        {
            let known = self.known.read();
            if known.contains(value) {
                return value;
            }
            if known.len() >= self.most {
                return OTHER;
            }
        }
        let mut known = self.known.write();
        if known.contains(value) {
            return value;
        }
        if known.len() >= self.most {
            return OTHER;
        }
        known.insert(value.into());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_keep_their_names_and_the_rest_share_one() {
        let bounded = Bounded::new(2);
        let labels: Vec<&str> = ["a", "b", "c", "a", "d", "b"]
            .into_iter()
            .map(|value| bounded.label(value))
            .collect();
        assert_eq!(labels, ["a", "b", OTHER, "a", OTHER, "b"]);
    }
}
