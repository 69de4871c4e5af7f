//! What status says of each convention that was considered: bounded, and compared with what it said
//! before.

use crate::intent::{ConsideredConvention, ResolvedImage};
use crate::select::{MatchedBy, Selectable, Selection, SelectionError};
use api_types::condition::cut;

/// So many passes in a row that make another template of the same inputs: the convention never
/// settles.
pub const UNSETTLED: i64 = 3;

/// The most bytes of JSON that the conventions and the images in a status may have, each.
const MOST_BYTES: usize = 64 * 1024;
/// The most conventions that are told of though they are for others.
const MOST_OTHERS: usize = 50;
/// The most receipts that are told of one convention; its annotation has them all.
const MOST_RECEIPTS: usize = 20;
/// The most characters of a receipt or a name.
const MOST_CHARS: usize = 256;
/// The most characters of an error; the condition has more of it.
const MOST_ERROR_CHARS: usize = 1024;

/// Those that are for others, by name.
pub fn others<'c>(
    conventions: impl IntoIterator<Item = &'c Result<Selection, SelectionError>>,
    labels: Selectable<'_>,
) -> Vec<ConsideredConvention> {
    let readable = conventions.into_iter().flatten();
    let others = readable.filter(|it| it.matched_by(labels).is_none());
    let mut others: Vec<ConsideredConvention> = others
        .map(|it| ConsideredConvention {
            name: it.name().to_owned(),
            ..ConsideredConvention::default()
        })
        .collect();
    others.sort_by(|left, right| left.name.cmp(&right.name));
    others.truncate(MOST_OTHERS);
    others
}

impl ConsideredConvention {
    /// One that matches, before it is called.
    pub fn matching(selection: &Selection, by: MatchedBy) -> Self {
        let selector = match by {
            MatchedBy::Everything => None,
            MatchedBy::Selector(index) => i64::try_from(index).ok(),
        };
        Self {
            name: selection.name().to_owned(),
            matched: true,
            selector,
            ..Self::default()
        }
    }

    /// What is told of one whose webhook failed where the template that it made before stays.
    #[must_use]
    pub fn of_standing(self, before: Option<&Self>) -> Self {
        match before {
            Some(before) => Self {
                error: self.error,
                ..before.clone()
            },
            None => self,
        }
    }

    /// Counts a template that differs from the one that was made of the same inputs before.
    pub fn count_changes(&mut self, before: Option<&Self>, same_inputs: bool) {
        let before = before.filter(|before| same_inputs && !before.output_digest.is_empty());
        self.changes = match before {
            Some(before) if before.output_digest == self.output_digest => 0,
            Some(before) => before.changes.saturating_add(1),
            None => 0,
        };
    }
}

/// The names of those that never settle.
pub fn unsettled(conventions: &[ConsideredConvention]) -> impl Iterator<Item = &str> {
    let unsettled = conventions.iter().filter(|it| it.changes >= UNSETTLED);
    unsettled.map(|it| it.name.as_str())
}

/// The same in a bounded number of bytes: what is least needed goes first.
pub fn bounded(mut conventions: Vec<ConsideredConvention>) -> Vec<ConsideredConvention> {
    for convention in &mut conventions {
        convention.receipts.truncate(MOST_RECEIPTS);
        convention.boms_left_out.truncate(MOST_RECEIPTS);
        let receipts = convention.receipts.iter_mut();
        for text in receipts.chain(&mut convention.boms_left_out) {
            *text = cut(std::mem::take(text), MOST_CHARS);
        }
        convention.error = cut(std::mem::take(&mut convention.error), MOST_ERROR_CHARS);
    }
    if size(&conventions) > MOST_BYTES {
        conventions.retain(|it| it.matched);
    }
    for convention in conventions.iter_mut().rev() {
        if size_of(convention) > MOST_BYTES / 64 {
            convention.receipts.clear();
            convention.boms_left_out.clear();
            convention.error = cut(std::mem::take(&mut convention.error), MOST_CHARS);
        }
    }
    keep_first(conventions)
}

/// The same for images.
pub fn bounded_images(mut images: Vec<ResolvedImage>) -> Vec<ResolvedImage> {
    for image in &mut images {
        image.boms.truncate(MOST_RECEIPTS);
        for bom in &mut image.boms {
            *bom = cut(std::mem::take(bom), MOST_CHARS);
        }
    }
    keep_first(images)
}

/// Whether these images are those that a status tells of, which may have had no room for all.
pub fn are_told(images: &[ResolvedImage], told: &[ResolvedImage]) -> bool {
    bounded_images(images.to_vec()) == told
}

/// Whether an image that a status tells of is another one now, of the same text.
pub fn has_moved(image: &ResolvedImage, told: &[ResolvedImage]) -> bool {
    let told = told.iter().find(|told| told.image == image.image);
    told.is_some_and(|told| told.reference != image.reference || told.digest != image.digest)
}

/// As many as there is room for.
fn keep_first<T: serde::Serialize>(items: Vec<T>) -> Vec<T> {
    let mut taken = 0;
    let fits = |item: &T| {
        taken += size_of(item);
        taken <= MOST_BYTES
    };
    items.into_iter().take_while(fits).collect()
}

fn size<T: serde::Serialize>(items: &[T]) -> usize {
    items.iter().map(size_of).sum()
}

fn size_of<T: serde::Serialize>(item: &T) -> usize {
    serde_json::to_vec(item).map_or(0, |json| json.len() + 1)
}

/// Whether two passes say the same, how long webhooks took aside.
pub fn say_the_same(left: &[ConsideredConvention], right: &[ConsideredConvention]) -> bool {
    let timeless = |it: &ConsideredConvention| ConsideredConvention {
        duration_millis: None,
        ..it.clone()
    };
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(left, right)| timeless(left) == timeless(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(name: &str, receipts: usize, chars: usize) -> ConsideredConvention {
        ConsideredConvention {
            name: name.to_owned(),
            matched: true,
            receipts: vec!["é".repeat(chars); receipts],
            boms_left_out: vec!["é".repeat(chars); receipts],
            error: "é".repeat(chars),
            ..ConsideredConvention::default()
        }
    }

    #[test]
    fn what_is_told_has_a_bounded_size_and_those_that_match_stay_longest() {
        let mut conventions: Vec<_> = (0..200)
            .map(|index| matched(&format!("c{index:03}"), 100, 5000))
            .collect();
        let other = |index| ConsideredConvention {
            name: format!("other{index}"),
            ..ConsideredConvention::default()
        };
        conventions.extend((0..50).map(other));
        let bounded = bounded(conventions);
        assert!(size(&bounded) <= MOST_BYTES, "{}", size(&bounded));
        assert!(bounded.len() > 60, "{}", bounded.len());
        assert!(bounded.iter().all(|it| it.matched));
        assert_eq!(bounded[0].name, "c000");
    }

    #[test]
    fn a_short_list_is_told_whole() {
        let conventions = vec![matched("a", 2, 3), ConsideredConvention::default()];
        assert_eq!(bounded(conventions.clone()), conventions);
        let images = vec![ResolvedImage::default()];
        assert_eq!(bounded_images(images.clone()), images);
    }

    #[test]
    fn many_images_with_many_bills_are_bounded_too() {
        let image = ResolvedImage {
            image: "i".repeat(300),
            boms: vec!["b".repeat(1000); 1000],
            ..ResolvedImage::default()
        };
        let all = vec![image; 1000];
        let bounded = bounded_images(all.clone());
        assert!(size(&bounded) <= MOST_BYTES);
        assert!(!bounded.is_empty());
        // What was left out for want of room makes no pass another one.
        assert!(are_told(&all, &bounded));
        let other = ResolvedImage::default();
        assert!(!are_told(&[&[other], &all[1..]].concat(), &bounded));
    }

    #[test]
    fn only_another_template_of_the_same_inputs_is_counted() {
        let made = |digest: &str, changes| ConsideredConvention {
            output_digest: digest.to_owned(),
            changes,
            ..ConsideredConvention::default()
        };
        for (before, now, same_inputs, changes) in [
            (None, "a", true, 0),
            (Some(made("a", 2)), "a", true, 0),
            (Some(made("a", 2)), "b", true, 3),
            (Some(made("a", 2)), "b", false, 0),
            (Some(made("", 2)), "b", true, 0),
        ] {
            let mut now = made(now, 7);
            now.count_changes(before.as_ref(), same_inputs);
            assert_eq!(now.changes, changes, "{before:?}");
        }
        assert_eq!(unsettled(&[made("a", 2)]).count(), 0);
        assert_eq!(unsettled(&[made("a", 3)]).count(), 1);
    }

    #[test]
    fn an_image_has_moved_if_its_text_stands_for_another_one() {
        let image = |text: &str, digest: &str| ResolvedImage {
            image: text.to_owned(),
            digest: digest.to_owned(),
            ..ResolvedImage::default()
        };
        let told = [image("a", "1"), image("b", "1")];
        assert!(!has_moved(&image("a", "1"), &told));
        assert!(has_moved(&image("a", "2"), &told));
        assert!(!has_moved(&image("c", "2"), &told), "a new one");
    }

    #[test]
    fn of_a_template_that_stays_it_is_told_how_it_was_made_and_who_failed_since() {
        let made = matched("a", 2, 3);
        let failed = ConsideredConvention {
            receipts: Vec::new(),
            error: "why".to_owned(),
            ..made.clone()
        };
        let told = failed.clone().of_standing(Some(&made));
        assert_eq!(
            (told.receipts, told.error),
            (made.receipts, "why".to_owned())
        );
        assert_eq!(failed.clone().of_standing(None), failed);
    }

    #[test]
    fn time_that_a_webhook_took_is_no_news() {
        let took = |millis| ConsideredConvention {
            duration_millis: Some(millis),
            ..matched("a", 1, 1)
        };
        assert!(say_the_same(&[took(1)], &[took(2)]));
        assert!(!say_the_same(&[took(1)], &[matched("b", 1, 1)]));
        assert!(!say_the_same(&[took(1)], &[]));
    }
}
