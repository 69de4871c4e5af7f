//! Texts of Secrets that came from one place, and how they are found.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::spellings::{SHORTEST, meanings, spellings};

/// With more bytes than this in secret texts they are not searched for: all that may hold them counts as secret.
const MOST_BYTES: usize = 128 * 1024;

/// The same for all their spellings.
pub(super) const MOST_SPELLED: usize = 512 * 1024;

/// The same for the number of texts that are too short to be searched for in one go.
const MOST_SHORT: usize = 256;

/// Longer spellings are searched for in pieces of this length, so that the search stays small.
pub(super) const PIECE: usize = 64;

/// Between two spellings.
const BETWEEN: &str = "\0\0\0";

/// Texts that came from one place.
pub(super) struct Texts {
    texts: BTreeSet<String>,
    search: OnceLock<Search>,
}

/// How texts are found.
pub(super) enum Search {
    /// There are too many.
    Everything,
    Spelled {
        /// Finds pieces of the spellings.
        pieces: Option<AhoCorasick>,
        /// All that is searched for, with something in between that is in no text.
        spelled: String,
        /// Texts too short to be searched for within a word.
        short: BTreeSet<String>,
    },
}

impl Texts {
    pub(super) fn new(texts: BTreeSet<String>) -> Self {
        Self {
            texts,
            search: OnceLock::new(),
        }
    }

    /// Whether this is one of them.
    pub(super) fn has(&self, text: &str) -> bool {
        self.texts.contains(text)
    }

    pub(super) fn search(&self) -> &Search {
        self.search.get_or_init(|| self.searched_for())
    }

    fn searched_for(&self) -> Search {
        if self.texts.iter().map(String::len).sum::<usize>() > MOST_BYTES {
            return Search::Everything;
        }
        let meanings: BTreeSet<String> = self.texts.iter().flat_map(|it| meanings(it)).collect();
        let (mut spelled, mut bytes) = (BTreeSet::new(), 0);
        for meaning in &meanings {
            let mut own = BTreeSet::new();
            spellings(meaning, &mut own);
            // What two meanings have in common counts twice, which is no harm.
            bytes += own.iter().map(String::len).sum::<usize>();
            if bytes > MOST_SPELLED {
                return Search::Everything;
            }
            spelled.extend(own);
        }
        let short: BTreeSet<String> = meanings
            .into_iter()
            .filter(|meaning| meaning.len() < SHORTEST)
            .collect();
        if short.len() > MOST_SHORT {
            return Search::Everything;
        }
        let pieces: BTreeSet<&str> = spelled.iter().flat_map(|text| pieces(text)).collect();
        let pieces: Vec<&str> = pieces.into_iter().collect();
        let search = if pieces.is_empty() {
            Ok(None)
        } else {
            search_of(&pieces).map(Some)
        };
        match search {
            Ok(pieces) => Search::Spelled {
                pieces,
                spelled: spelled.into_iter().collect::<Vec<_>>().join(BETWEEN),
                short,
            },
            Err(_) => Search::Everything,
        }
    }

    /// Whether one of the texts is in a leaf of a value.
    pub(super) fn is_in(&self, leaf: &str) -> bool {
        match self.search() {
            Search::Everything => true,
            Search::Spelled { pieces, short, .. } => {
                pieces.as_ref().is_some_and(|pieces| pieces.is_match(leaf))
                    || short.iter().any(|short| is_word_of(short, leaf))
            }
        }
    }

    /// All spellings, one after the other.
    pub(super) fn spelled(&self) -> &str {
        match self.search() {
            Search::Everything => "",
            Search::Spelled { spelled, .. } => spelled,
        }
    }
}

impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

/// Without the texts: whatever prints this must not tell them.
impl std::fmt::Debug for Texts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} texts of Secrets", self.texts.len())
    }
}

pub(super) fn search_of(texts: &[&str]) -> Result<AhoCorasick, aho_corasick::BuildError> {
    // The kind that is built fastest: a search is built for a handful of texts that are looked at.
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::NoncontiguousNFA))
        .build(texts)
}

/// A spelling in pieces that cover all of it.
fn pieces(text: &str) -> Vec<&str> {
    if text.len() <= 2 * PIECE {
        return vec![text];
    }
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let starts = (0..text.len() - PIECE).step_by(PIECE);
    let last = boundary(text.len() - PIECE)..text.len();
    starts
        .map(|start| boundary(start)..boundary(start + PIECE))
        .chain([last])
        .filter_map(|range| text.get(range))
        .collect()
}

/// Whether a text stands by itself in another one, not within a word.
fn is_word_of(word: &str, text: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        ![before, after]
            .into_iter()
            .flatten()
            .any(char::is_alphanumeric)
    })
}
