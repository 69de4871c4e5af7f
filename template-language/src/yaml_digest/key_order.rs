//! The order of keys: letters by code point, numbers within keys by value, so that `a2` comes before `a10`.
//!
//! The order of `yaml.v3` contradicts itself for some keys (of three, each may come before the next).
//! What comes out then depends on the algorithm, so Go's is repeated as far as keys of real documents
//! tell: insertion for short lists. The sort of Rust's standard library panics on such an order.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::go_format::{is_digit, is_letter};

/// Go sorts short lists by insertion, and this order is not one in the strict sense for all keys.
const INSERTION: usize = 12;

/// The keys of a map in the order in which they are written.
pub(super) fn sorted_keys(fields: &Map<String, Value>) -> Vec<&str> {
    let mut keys: Vec<&str> = fields.keys().map(String::as_str).collect();
    keys.sort_unstable();
    sort(&mut keys);
    keys
}

/// Merges runs that are sorted by insertion. The sort of the standard library panics when an order contradicts itself.
fn sort(keys: &mut [&str]) {
    if keys.len() > INSERTION {
        let mut halves = keys.to_vec();
        let (left, right) = halves.split_at_mut(keys.len() / 2);
        sort(left);
        sort(right);
        merge(left, right, keys);
        return;
    }
    for end in 1..keys.len() {
        let mut at = end;
        while at > 0 && compare(keys[at], keys[at - 1]).is_lt() {
            keys.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Two sorted runs become one; of equal keys the left one comes first.
fn merge<'k>(left: &[&'k str], right: &[&'k str], merged: &mut [&'k str]) {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    for slot in merged {
        let from_right = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => compare(other, one).is_lt(),
            (one, _) => one.is_none(),
        };
        let next = if from_right {
            right.next()
        } else {
            left.next()
        };
        if let Some(next) = next {
            *slot = next;
        }
    }
}

/// The order of two keys, by the first characters in which they differ.
fn compare(left: &str, right: &str) -> Ordering {
    let mut after_digit = false;
    let mut pairs = left.char_indices().zip(right.chars());
    let differing = pairs.find(|((_, one), other)| {
        if one == other {
            after_digit = is_digit(*one);
        }
        one != other
    });
    let Some(((at, one), other)) = differing else {
        return left.len().cmp(&right.len());
    };
    match (is_letter(one), is_letter(other)) {
        (true, true) => one.cmp(&other),
        // Behind a digit a letter comes first, elsewhere last.
        (true, false) if after_digit => Ordering::Less,
        (false, true) if !after_digit => Ordering::Less,
        (true, false) | (false, true) => Ordering::Greater,
        (false, false) => {
            // A zero behind other digits of a number belongs to it; at its start it does not.
            let within = (one == '0' || other == '0') && ends_in_number(&left[..at]);
            let number = |text: &str| leading_number(text, i64::from(within));
            let by_number = number(&left[at..]).cmp(&number(&right[at..]));
            by_number.then_with(|| one.cmp(&other))
        }
    }
}

/// Whether a number that is not zero stands at the end of a text.
fn ends_in_number(text: &str) -> bool {
    let mut digits = text.chars().rev().take_while(|digit| is_digit(*digit));
    digits.any(|digit| digit != '0')
}

/// The number at the start of a text, and of how many digits. It overflows, and counts digits of other scripts by their
/// code point, as Go's does.
fn leading_number(text: &str, start: i64) -> (i64, usize) {
    let digits = text.chars().take_while(|digit| is_digit(*digit));
    digits.fold((start, 0), |(number, length), digit| {
        let value = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}
