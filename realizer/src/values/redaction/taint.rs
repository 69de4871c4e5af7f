//! The texts that came from Secrets, as they go from step to step.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::REDACTED;
use super::spellings::{SHORTEST, for_each_text};
use super::texts::{MOST_SPELLED, PIECE, Search, Texts, search_of};

/// A part of a secret text that is longer than this has a whole piece in it.
const LONGEST_PART: usize = 2 * PIECE + 8;

/// The texts that came from Secrets; none when nothing did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Taint(Vec<Arc<Texts>>);

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
        Self(vec![Arc::new(Texts::new(texts))])
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
        parts.retain(|part| !self.0.iter().any(|texts| texts.has(part)));
        Some(parts)
    }
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

#[cfg(test)]
mod tests;
