//! The page about events names every reason with its type, and no other.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use api_types::event::EventReason;

const PAGE: &str = include_str!("../../docs/events.md");

/// The reasons of the table, with their types and whether the Go controller has them.
fn documented() -> BTreeMap<String, (String, bool)> {
    let mut rows = BTreeMap::new();
    for line in PAGE.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, reasons, kind @ ("Normal" | "Warning"), _, _, upstream, _] = cells[..] else {
            continue;
        };
        for reason in reasons.split(", ") {
            let reason = reason.strip_prefix('`').unwrap().strip_suffix('`').unwrap();
            let row = (kind.to_owned(), upstream == "yes");
            let before = rows.insert(reason.to_owned(), row);
            assert_eq!(before, None, "{reason} has two rows");
        }
    }
    rows
}

#[test]
fn every_reason_has_its_row_and_every_row_its_reason() {
    let of_the_go_controllers = [
        EventReason::StampedObjectApplied,
        EventReason::StampedObjectRemoved,
        EventReason::ResourceOutputChanged,
        EventReason::ResourceHealthyStatusChanged,
        EventReason::StatusUpdated,
        EventReason::StatusUpdateFailed,
    ];
    let expected: BTreeMap<String, (String, bool)> = EventReason::ALL
        .into_iter()
        .map(|reason| {
            let row = (
                reason.event_type().as_str().to_owned(),
                of_the_go_controllers.contains(&reason),
            );
            (reason.as_str().to_owned(), row)
        })
        .collect();
    assert_eq!(expected.len(), EventReason::ALL.len());
    assert_eq!(documented(), expected);
}
