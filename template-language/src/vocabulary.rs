//! The names that stand in the context of every template of a kind, whatever it is rendered for.
//!
//! A context is a JSON object with a fixed set of names at its top and below some of them, such as
//! `params`, `source` and `workload.metadata`. What depends on the owner, on the blueprint or on the
//! cluster is open: any name may be there.
//!
//! A vocabulary is written once as a constant, and asked two questions: whether a place can be there at
//! all ([`Vocabulary::unknown`]), and whether a text means this context ([`Vocabulary::names`]). A third
//! one is for tests: whether it still says the truth of a context ([`Vocabulary::covers`]).
//!
//! ```
//! use template_language::vocabulary::Vocabulary::{self, Each, Names, Open};
//!
//! static CONTEXT: Vocabulary = Names(&[
//!     ("params", Open),
//!     ("sources", Each(&Names(&[("url", Open), ("revision", Open)]))),
//! ]);
//!
//! let place = ["sources", "app", "uri"].map(str::to_owned);
//! let unknown = CONTEXT.unknown(&place).unwrap();
//! assert_eq!(unknown.word, "uri");
//! assert_eq!(unknown.inside, ["sources", "app"]);
//! assert_eq!(unknown.known, ["url", "revision"]);
//! ```

/// What can stand at a place of a context.
#[derive(Debug)]
pub enum Vocabulary {
    /// Anything: it depends on the owner, the blueprint or the cluster.
    Open,
    /// These names, and no other ones.
    Names(&'static [(&'static str, Self)]),
    /// Any name; below each of them there is the same.
    Each(&'static Self),
}

use Vocabulary::{Each, Names, Open};

/// A name that no context has.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown<'p> {
    /// The names before it, all of them known.
    pub inside: &'p [String],
    /// The name.
    pub word: &'p str,
    /// What could stand in its place.
    pub known: Vec<&'static str>,
}

impl Vocabulary {
    /// The first name of a place that can never be there.
    ///
    /// A place is the leading plain names of a path ([`Path::static_prefix`]). `None` says only that
    /// nothing is known to be wrong: below an open name anything may stand.
    ///
    /// [`Path::static_prefix`]: crate::jsonpath::Path::static_prefix
    pub fn unknown<'p>(&'static self, place: &'p [String]) -> Option<Unknown<'p>> {
        let mut here = self;
        for (depth, word) in place.iter().enumerate() {
            here = match here {
                Open => return None,
                Each(below) => below,
                Names(names) => {
                    let Some((_, below)) = names.iter().find(|(name, _)| name == word) else {
                        return Some(Unknown {
                            inside: &place[..depth],
                            word,
                            known: names.iter().map(|(name, _)| *name).collect(),
                        });
                    };
                    below
                }
            };
        }
        None
    }

    /// Whether a place is named here to its end, or to where anything may follow, and behind its first
    /// name: such a text means this context, and nothing else that happens to begin with the same word.
    ///
    /// ```
    /// # use template_language::vocabulary::Vocabulary::{self, Names, Open};
    /// static CONTEXT: Vocabulary =
    ///     Names(&[("params", Open), ("workload", Names(&[("metadata", Open)]))]);
    /// assert!(CONTEXT.names(&["workload", "metadata", "name"]));
    /// // A shell variable may be called so, and Tekton writes its own parameters like this.
    /// assert!(!CONTEXT.names(&["workload"]));
    /// assert!(!CONTEXT.names(&["params", "port"]));
    /// ```
    pub fn names(&'static self, place: &[&str]) -> bool {
        let mut here = self;
        for (depth, word) in place.iter().enumerate() {
            here = match here {
                Open => return depth > 1,
                Each(below) => below,
                Names(names) => match names.iter().find(|(name, _)| name == word) {
                    Some((_, below)) => below,
                    None => return false,
                },
            };
        }
        place.len() > 1 && matches!(here, Open)
    }
}

impl Vocabulary {
    /// Whether nothing stands in a context but what is named here.
    ///
    /// For tests of who builds contexts: a name that is in a context but not here would be warned of,
    /// although it works.
    ///
    /// ```
    /// # use serde_json::json;
    /// # use template_language::vocabulary::Vocabulary::{self, Names, Open};
    /// static CONTEXT: Vocabulary = Names(&[("params", Open)]);
    /// assert!(CONTEXT.covers(&json!({"params": {"a": [1]}})));
    /// assert!(!CONTEXT.covers(&json!({"params": {}, "images": {}})));
    /// ```
    pub fn covers(&self, value: &serde_json::Value) -> bool {
        match (self, value) {
            (Open, _) | (_, serde_json::Value::Null) => true,
            (Each(below), value) => value
                .as_object()
                .is_some_and(|entries| entries.values().all(|entry| below.covers(entry))),
            (Names(names), value) => value.as_object().is_some_and(|entries| {
                entries.iter().all(|(key, entry)| {
                    let mut names = names.iter();
                    names.any(|(name, below)| name == key && below.covers(entry))
                })
            }),
        }
    }
}
