//! What the ConfigMap of counts says (docs/behaviour/conventions.md#tally): the numbers that
//! platforms of old read from there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use api_types::ConditionStatus;

/// Name of the ConfigMap.
pub const NAME: &str = "controller-manager-metrics-data";

/// Kinds of owners that have numbers of their own.
const MOST_OWNERS: usize = 50;
/// The number of all other owners.
const OTHER: &str = "podintents_owner_other_count";
/// Of a ConfigMap.
const LONGEST_KEY: usize = 253;

/// What of a PodIntent is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted<'i> {
    /// Status of its condition Ready.
    pub ready: ConditionStatus,
    /// Its controller owner, as `<Kind>` or `<Kind>.<group>`.
    pub owner: Option<&'i str>,
}

/// The data of the ConfigMap. A number that is zero is left out, but for that of all.
///
/// ```
/// use api_types::ConditionStatus;
/// use conventions::tally::{Counted, data};
///
/// let of_workload = Counted { ready: ConditionStatus::True, owner: Some("Workload.carto.run") };
/// let data = data([of_workload], ["b".to_owned(), "a".to_owned()]);
/// assert_eq!(data["podintents_count"], "1");
/// assert_eq!(data["podintents_owner_Workload.carto.run_count"], "1");
/// assert_eq!(data["clusterpodconventions_names"], "a\nb");
/// assert!(!data.contains_key("podintents_ready_false_count"));
/// ```
pub fn data<'i>(
    intents: impl IntoIterator<Item = Counted<'i>>,
    conventions: impl IntoIterator<Item = String>,
) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    counts.insert("podintents_count".to_owned(), 0);
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    let mut count = |key: String| *counts.entry(key).or_default() += 1;
    for intent in intents {
        count("podintents_count".to_owned());
        let ready = match intent.ready {
            ConditionStatus::True => "true",
            ConditionStatus::False => "false",
            ConditionStatus::Unknown => "unknown",
        };
        count(format!("podintents_ready_{ready}_count"));
        if let Some(owner) = intent.owner {
            *owners.entry(owner).or_default() += 1;
        }
    }
    counts.extend(by_owner(owners));
    let counts = counts.into_iter();
    let mut data: BTreeMap<String, String> = counts
        .map(|(key, count)| (key, count.to_string()))
        .collect();
    let names: BTreeSet<String> = conventions.into_iter().collect();
    let names: Vec<String> = names.into_iter().collect();
    data.insert("clusterpodconventions_names".to_owned(), names.join("\n"));
    data
}

/// The numbers of owners. Tenants choose their kinds: those that there are most of have numbers of
/// their own, as long as they fit into a key.
fn by_owner(owners: BTreeMap<&str, usize>) -> BTreeMap<String, usize> {
    let mut owners: Vec<(&str, usize)> = owners.into_iter().collect();
    owners.sort_by_key(|(_, count)| Reverse(*count));
    let mut numbers = BTreeMap::new();
    for (owner, count) in owners {
        let mut key = format!("podintents_owner_{owner}_count");
        if !is_key(&key) || numbers.len() >= MOST_OWNERS {
            OTHER.clone_into(&mut key);
        }
        *numbers.entry(key).or_default() += count;
    }
    numbers
}

/// Whether a ConfigMap may have this key.
fn is_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    key.len() <= LONGEST_KEY && key.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(owner: &str) -> Counted<'_> {
        Counted {
            ready: ConditionStatus::True,
            owner: Some(owner),
        }
    }

    #[test]
    fn whatever_kinds_tenants_choose_the_config_map_can_be_stored() {
        let long = "K".repeat(300);
        let forged = ["a b", "other", "a/b", "\u{e4}", "a\nb", &long];
        let said = data(forged.map(owned), []);
        assert_eq!(said["podintents_count"], "6");
        assert_eq!(said["podintents_owner_other_count"], "6");
        assert!(said.keys().all(|key| is_key(key)), "{said:?}");
    }

    #[test]
    fn the_most_frequent_kinds_have_numbers_and_the_rest_one_together() {
        let many: Vec<String> = (0..1000).map(|index| format!("Kind{index}")).collect();
        let intents = many.iter().map(|it| owned(it));
        let usual = std::iter::repeat_n(owned("Workload.carto.run"), 2);
        let said = data(intents.chain(usual), []);
        assert_eq!(said["podintents_owner_Workload.carto.run_count"], "2");
        assert_eq!(said["podintents_owner_other_count"], "951");
        let owners = said.keys().filter(|key| key.contains("_owner_"));
        assert_eq!(owners.count(), 51);
    }

    #[test]
    fn each_status_and_each_kind_of_owner_has_its_number() {
        let counted = |ready, owner| Counted { ready, owner };
        let intents = [
            counted(ConditionStatus::True, Some("Workload.carto.run")),
            counted(ConditionStatus::True, Some("Workload.carto.run")),
            counted(ConditionStatus::False, Some("Secret")),
            counted(ConditionStatus::Unknown, None),
        ];
        let said: Vec<(String, String)> = data(intents, []).into_iter().collect();
        let said: Vec<(&str, &str)> = said.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(
            said,
            [
                ("clusterpodconventions_names", ""),
                ("podintents_count", "4"),
                ("podintents_owner_Secret_count", "1"),
                ("podintents_owner_Workload.carto.run_count", "2"),
                ("podintents_ready_false_count", "1"),
                ("podintents_ready_true_count", "2"),
                ("podintents_ready_unknown_count", "1"),
            ]
        );
        let nothing = data([], []);
        assert_eq!(nothing["podintents_count"], "0");
        assert_eq!(nothing.len(), 2);
    }
}
