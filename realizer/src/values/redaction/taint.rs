//! The texts that came from Secrets, as they go from step to step.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde_json::Value;

use super::REDACTED;
use super::spellings::{SHORTEST, for_each_text, meanings, spellings};

/// With more bytes than this in secret texts they are not searched for: all that may hold them counts as secret.
const MOST_BYTES: usize = 128 * 1024;

/// The same for all their spellings.
const MOST_SPELLED: usize = 512 * 1024;

/// The same for the number of texts that are too short to be searched for in one go.
const MOST_SHORT: usize = 256;

/// Longer spellings are searched for in pieces of this length, so that the search stays small.
const PIECE: usize = 64;

/// A part of a secret text that is longer than this has a whole piece in it.
const LONGEST_PART: usize = 2 * PIECE + 8;

/// Between two spellings.
const BETWEEN: &str = "\0\0\0";

/// The texts that came from Secrets; none when nothing did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Taint(Vec<Arc<Texts>>);

/// Texts that came from one place.
struct Texts {
    texts: BTreeSet<String>,
    search: OnceLock<Search>,
}

/// How texts are found.
enum Search {
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

impl Taint {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// What values of a Secret taint with: even without a text, something.
    pub(crate) fn of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut texts = BTreeSet::new();
        for value in values {
            for_each_text(value, &mut |text| {
                texts.insert(text.to_owned());
            });
        }
        Self::of_texts(texts)
    }

    fn of_texts(texts: BTreeSet<String>) -> Self {
        Self(vec![Arc::new(Texts {
            texts,
            search: OnceLock::new(),
        })])
    }

    /// All that the one or the other taints with.
    #[must_use]
    pub(crate) fn and(mut self, other: &Self) -> Self {
        for texts in &other.0 {
            // A search that was made for the same texts is not made again.
            let is_known = |known: &Arc<Texts>| Arc::ptr_eq(known, texts) || known == texts;
            if !self.0.iter().any(is_known) {
                self.0.push(Arc::clone(texts));
            }
        }
        self
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// A text without what came from Secrets.
    pub(crate) fn scrub(&self, text: impl Into<String>) -> String {
        let text = text.into();
        let mut found: Vec<Range<usize>> = Vec::new();
        for texts in &self.0 {
            match texts.search() {
                Search::Everything if text.is_empty() => {}
                Search::Everything => return REDACTED.to_owned(),
                Search::Spelled { pieces, .. } => {
                    let pieces = pieces.iter();
                    let matches = pieces.flat_map(|pieces| pieces.find_overlapping_iter(&text));
                    found.extend(matches.map(|found| found.range()));
                }
            }
        }
        cut_out(text, found)
    }

    /// What a value taints with that was made from inputs which taint with this; none if nothing of theirs is in it.
    ///
    /// A value is tainted if it holds a text of theirs in any spelling, or is a part of one.
    pub(crate) fn carried_by<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Self {
        if self.is_none() {
            return Self::NONE;
        }
        let (mut keys, mut leaves) = (BTreeSet::new(), BTreeSet::new());
        for value in values {
            collect(value, &mut keys, &mut leaves);
        }
        let keys = keys.into_iter();
        let holds_one = keys
            .chain(leaves.iter().map(|leaf| &**leaf))
            .any(|text| self.0.iter().any(|texts| texts.is_in(text)));
        match self.parts_among(&leaves) {
            Some(parts) if parts.is_empty() && !holds_one => Self::NONE,
            Some(parts) if !parts.is_empty() => self.clone().and(&Self::of_texts(parts)),
            Some(_) | None => self.clone(),
        }
    }

    /// The leaves that are parts of secret texts; nothing if there are too many to tell.
    fn parts_among(&self, leaves: &BTreeSet<Cow<'_, str>>) -> Option<BTreeSet<String>> {
        let fits = SHORTEST..=LONGEST_PART;
        let leaves: Vec<&str> = leaves
            .iter()
            .map(|leaf| &**leaf)
            .filter(|leaf| fits.contains(&leaf.len()))
            .collect();
        if leaves.is_empty() {
            return Some(BTreeSet::new());
        }
        let bytes: usize = leaves.iter().map(|leaf| leaf.len()).sum();
        let search = search_of(&leaves).ok().filter(|_| bytes <= MOST_SPELLED)?;
        let mut parts = BTreeSet::new();
        for texts in &self.0 {
            let found = search.find_overlapping_iter(texts.spelled());
            parts.extend(found.map(|found| leaves[found.pattern().as_usize()].to_owned()));
        }
        // What is a text of its own is known already.
        parts.retain(|part| !self.0.iter().any(|texts| texts.texts.contains(part)));
        Some(parts)
    }
}

impl Texts {
    fn search(&self) -> &Search {
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
    fn is_in(&self, leaf: &str) -> bool {
        match self.search() {
            Search::Everything => true,
            Search::Spelled { pieces, short, .. } => {
                pieces.as_ref().is_some_and(|pieces| pieces.is_match(leaf))
                    || short.iter().any(|short| is_word_of(short, leaf))
            }
        }
    }

    /// All spellings, one after the other.
    fn spelled(&self) -> &str {
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

fn search_of(texts: &[&str]) -> Result<AhoCorasick, aho_corasick::BuildError> {
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

/// Cuts ranges out; those that touch are one.
fn cut_out(text: String, mut found: Vec<Range<usize>>) -> String {
    if found.is_empty() {
        return text;
    }
    found.sort_unstable_by_key(|range| (range.start, range.end));
    let mut kept = String::with_capacity(text.len());
    let mut shown = 0;
    let mut ranges = found.into_iter().peekable();
    while let Some(mut range) = ranges.next() {
        while let Some(next) = ranges.next_if(|next| next.start <= range.end) {
            range.end = range.end.max(next.end);
        }
        // Texts begin and end with characters, so this never fails.
        kept.push_str(text.get(shown..range.start).unwrap_or_default());
        kept.push_str(REDACTED);
        shown = range.end;
    }
    kept.push_str(text.get(shown..).unwrap_or_default());
    kept
}

/// Whatever may hold a secret text: the keys of a value, and its texts and numbers.
fn collect<'v>(
    value: &'v Value,
    keys: &mut BTreeSet<&'v str>,
    leaves: &mut BTreeSet<Cow<'v, str>>,
) {
    match value {
        Value::String(text) => {
            leaves.insert(Cow::Borrowed(text));
        }
        Value::Number(number) => {
            leaves.insert(Cow::Owned(number.to_string()));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, keys, leaves)),
        Value::Object(fields) => {
            for (key, item) in fields {
                keys.insert(key);
                collect(item, keys, leaves);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
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

#[cfg(test)]
mod tests;
