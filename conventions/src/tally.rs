//! What the ConfigMap of counts says (docs/behaviour/conventions.md#tally): the numbers that
//! platforms of old read from there.

use std::collections::{BTreeMap, BTreeSet};

use api_types::ConditionStatus;

/// Name of the ConfigMap.
pub const NAME: &str = "controller-manager-metrics-data";

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
            count(format!("podintents_owner_{owner}_count"));
        }
    }
    let counts = counts.into_iter();
    let mut data: BTreeMap<String, String> = counts
        .map(|(key, count)| (key, count.to_string()))
        .collect();
    let names: BTreeSet<String> = conventions.into_iter().collect();
    let names: Vec<String> = names.into_iter().collect();
    data.insert("clusterpodconventions_names".to_owned(), names.join("\n"));
    data
}

#[cfg(test)]
mod tests {
    use super::*;

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
