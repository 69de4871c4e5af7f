//! What the status of a preset is to say. Pure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pod_presets::{LastConflict, PresetStatus, StaleOwner, Verdict};

use super::counts::{Counted, LAST};
use super::entries::PresetEntry;

/// For so long a conflict is one of late.
const OF_LATE: SignedDuration = SignedDuration::from_hours(1);

/// What is known of a preset beside its object.
#[derive(Default)]
pub(super) struct Known<'k> {
    /// What was counted and does not stand in the status.
    pub(super) counted: Counted,
    /// What only the replica that leads says; it is nothing in the others.
    pub(super) led: Option<Led<'k>>,
}

/// What the replica that leads says.
pub(super) struct Led<'k> {
    /// Which pods carry older versions; nothing if nobody asked for that.
    pub(super) stale: Option<&'k StalePods>,
    pub(super) now: Timestamp,
}

/// Pods that carry an older version of a preset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StalePods {
    pub(super) pods: i64,
    pub(super) owners: Vec<StaleOwner>,
}

/// The status with what is known now.
pub(super) fn status_after(entry: &PresetEntry, known: Known<'_>) -> PresetStatus {
    let mut after = entry.status.clone();
    add(&mut after, entry, known.counted);
    if let Some(led) = known.led {
        lead(&mut after, entry, &led);
    }
    after
}

/// Counts only grow: they are those of all pods since the preset was created, as far as they were
/// written.
fn add(after: &mut PresetStatus, entry: &PresetEntry, counted: Counted) {
    if counted.is_nothing() {
        return;
    }
    if after.observed_generation != Some(entry.generation) {
        // Pods are marked with this version. Whoever writes first makes another one, so he has to say
        // it: without that all pods so far would look outdated.
        observe(after, entry);
    }
    let sum = |before: Option<i64>, more: i64| Some(before.unwrap_or(0).saturating_add(more));
    after.matched = sum(after.matched, counted.matched);
    after.applied = sum(after.applied, counted.applied);
    after.conflicts = sum(after.conflicts, counted.conflicts);
    let older = std::mem::take(&mut after.last_conflicts);
    let newer = counted.last.into_iter();
    after.last_conflicts = newer.chain(older).take(LAST).collect();
}

fn lead(after: &mut PresetStatus, entry: &PresetEntry, led: &Led<'_>) {
    observe(after, entry);
    let last = after.last_conflicts.first();
    let of_late = last.filter(|last| led.now.duration_since(last.time.0) < OF_LATE);
    let verdict = Verdict {
        problems: entry.compiled.as_ref().err().cloned().unwrap_or_default(),
        conflict: of_late.map(said),
    };
    let now = Time(led.now);
    after.conditions = verdict.conditions(entry.generation, &entry.status.conditions, &now);
    after.stale_pods = led.stale.map(|stale| stale.pods);
    let owners = led.stale.map(|stale| stale.owners.clone());
    after.stale_owners = owners.unwrap_or_default();
}

fn observe(after: &mut PresetStatus, entry: &PresetEntry) {
    after.observed_generation = Some(entry.generation);
    after.observed_resource_version = entry.marked.to_string();
}

fn said(conflict: &LastConflict) -> String {
    let LastConflict {
        kind,
        name,
        field,
        key,
        ..
    } = conflict;
    format!("{kind} {name} has another {field} {key}")
}

#[cfg(test)]
mod tests {
    use controller_kit::reflect::Entry as _;
    use serde_json::{Value, json};

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn entry(spec: Value, status: &PresetStatus) -> PresetEntry {
        let mut preset = json!({
            "apiVersion": "settings.carto.run/v1alpha1", "kind": "PodPreset",
            "metadata": {"name": "a", "namespace": "dev", "uid": "u", "generation": 2, "resourceVersion": "7"},
            "status": status,
        });
        preset["spec"] = spec;
        PresetEntry::build(preset)
    }

    fn good() -> Value {
        json!({"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A"}]})
    }

    fn conflict(second: i64, key: &str) -> LastConflict {
        LastConflict {
            time: Time(Timestamp::from_second(second).unwrap()),
            kind: "ReplicaSet".to_owned(),
            namespace: "dev".to_owned(),
            name: "web".to_owned(),
            container: String::new(),
            field: "env".to_owned(),
            key: key.to_owned(),
            with: "Pod".to_owned(),
        }
    }

    fn led(second: i64, stale: Option<&StalePods>) -> Known<'_> {
        let now = Timestamp::from_second(second).unwrap();
        Known {
            counted: Counted::default(),
            led: Some(Led { stale, now }),
        }
    }

    fn said(status: &PresetStatus) -> Vec<(&str, &str, &str)> {
        let conditions = status.conditions.iter();
        let said = conditions.map(|it| (&*it.type_, it.status.as_str(), &*it.message));
        said.collect()
    }

    #[test]
    fn counts_of_replicas_add_up_and_the_last_conflicts_are_few() {
        let first = PresetStatus {
            matched: Some(3),
            applied: Some(1),
            last_conflicts: (0..5).map(|at| conflict(NOW - at, "old")).collect(),
            ..PresetStatus::default()
        };
        let mut counted = Counted::default();
        for number in 1..=7 {
            counted.add(Counted {
                matched: 2,
                applied: 1,
                conflicts: 1,
                last: [conflict(NOW + number, &format!("new{number}"))].into(),
            });
        }
        let of_replica = Known { counted, led: None };
        let after = status_after(&entry(good(), &first), of_replica);
        let counts = (after.matched, after.applied, after.conflicts);
        assert_eq!(counts, (Some(17), Some(8), Some(7)));
        let keys: Vec<&str> = after.last_conflicts.iter().map(|it| &*it.key).collect();
        assert_eq!(keys, ["new7", "new6", "new5", "new4", "new3"]);
        assert_eq!(after.conditions, [], "the replica that leads says those");
        let version = (after.observed_generation, &*after.observed_resource_version);
        assert_eq!(version, (Some(2), "7"), "pods have it already");
    }

    #[test]
    fn what_is_said_twice_is_nothing_new() {
        let none = PresetStatus::default();
        let after = status_after(&entry(good(), &none), led(NOW, None));
        assert_eq!(after.observed_generation, Some(2));
        assert_eq!(after.observed_resource_version, "7");
        assert_eq!(
            said(&after),
            [("Conflicting", "False", ""), ("Valid", "True", "")]
        );
        let again = status_after(&entry(good(), &after), led(NOW + 60, None));
        assert_eq!(again, after);
        let nothing = status_after(&entry(good(), &after), Known::default());
        assert_eq!(nothing, after);
    }

    #[test]
    fn a_conflict_is_told_for_an_hour() {
        let before = PresetStatus {
            last_conflicts: vec![conflict(NOW, "DB_PORT")],
            ..PresetStatus::default()
        };
        let entry = entry(good(), &before);
        let at = |second| status_after(&entry, led(second, None)).conditions[0].status;
        assert_eq!(at(NOW + 3599).as_str(), "True");
        assert_eq!(at(NOW + 3600).as_str(), "False");
        let after = status_after(&entry, led(NOW, None));
        assert_eq!(
            after.conditions[0].message,
            "ReplicaSet web has another env DB_PORT"
        );
    }

    #[test]
    fn one_that_cannot_be_read_says_why() {
        let spec = json!({"selector": {"matchLabels": {"a": "b"}}});
        let after = status_after(&entry(spec, &PresetStatus::default()), led(NOW, None));
        let valid = &after.conditions[1];
        assert_eq!(
            (valid.status.as_str(), &*valid.reason),
            ("False", "Invalid")
        );
        assert!(
            valid.message.contains("must specify at least one"),
            "{}",
            valid.message
        );
    }

    #[test]
    fn what_is_stale_is_said_only_where_pods_are_followed() {
        let stale = StalePods {
            pods: 2,
            owners: vec![StaleOwner {
                kind: "Deployment".to_owned(),
                namespace: "dev".to_owned(),
                name: "web".to_owned(),
                pods: 2,
            }],
        };
        let none = PresetStatus::default();
        let after = status_after(&entry(good(), &none), led(NOW, Some(&stale)));
        assert_eq!(
            (after.stale_pods, &after.stale_owners),
            (Some(2), &stale.owners)
        );
        let after = status_after(&entry(good(), &after), led(NOW, None));
        assert_eq!((after.stale_pods, after.stale_owners), (None, Vec::new()));
    }
}
