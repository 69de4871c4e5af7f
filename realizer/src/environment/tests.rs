//! Deciding about an environment.

use api_types::{DeployedRevision, ValidationStatus, ValidationVerdict};

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn incoming(revision: &str) -> Incoming {
    Incoming {
        revision: json!(revision),
        url: json!("u"),
        secret: false,
    }
}

fn arrived(arrival: u64, revision: &str) -> Record {
    Record::new(Arrival {
        number: arrival,
        revision: json!(revision),
        url: json!("u"),
        rendered: format!("digest of {revision}"),
        started: Time(NOW),
        secret: false,
    })
}

fn observed(annotation: Option<&str>) -> Observed {
    Observed {
        version: 7,
        ..Observed::of(json!({"metadata": {"annotations": {labels::ENVIRONMENT: annotation}}}))
    }
}

fn status(arrival: u64, verdicts: &[(&str, ValidationVerdict)]) -> EnvironmentStatus {
    EnvironmentStatus {
        resource: "deploy".to_owned(),
        deployed: Some(DeployedRevision {
            revision: "any".to_owned(),
            url: "u".to_owned(),
            arrival,
            since: Time(NOW),
        }),
        waiting: None,
        validations: verdicts
            .iter()
            .map(|(resource, verdict)| ValidationStatus {
                resource: (*resource).to_owned(),
                verdict: *verdict,
                arrival,
                message: None,
                since: Time(NOW),
            })
            .collect(),
    }
}

/// What becomes of revision B, as `hold <arrival>` or `submit <arrival> at <version>`.
fn decided(live: Option<&Observed>, in_place: bool, status: Option<&EnvironmentStatus>) -> String {
    let live = live.map(|observed| Live { observed, in_place });
    let known = Known {
        status,
        validations: &["one", "two"],
    };
    match decide("digest of B", &incoming("B"), live.as_ref(), known, NOW) {
        Decision::Hold(record) => format!("hold {}", record.arrival.number),
        Decision::Submit {
            record,
            precondition,
        } => format!("submit {} at {precondition:?}", record.arrival.number),
    }
}

#[test]
fn an_environment_is_free_only_when_status_says_so_of_every_validation_and_this_arrival() {
    use ValidationVerdict::{Failed, Pending, Running, Skipped, Succeeded, TimedOut};
    let live = observed(Some(&arrived(3, "A").text));
    let cases = [
        (
            status(3, &[("one", Succeeded), ("two", Failed)]),
            "submit 4 at Version(7)",
        ),
        (
            status(3, &[("one", TimedOut), ("two", Skipped)]),
            "submit 4 at Version(7)",
        ),
        (status(3, &[("one", Succeeded), ("two", Running)]), "hold 3"),
        (status(3, &[("one", Pending), ("two", Failed)]), "hold 3"),
        (status(3, &[("one", Succeeded)]), "hold 3"),
        (
            status(2, &[("one", Succeeded), ("two", Succeeded)]),
            "hold 3",
        ),
    ];
    for (status, expected) in cases {
        assert_eq!(
            decided(Some(&live), true, Some(&status)),
            expected,
            "{status:?}"
        );
    }
    assert_eq!(decided(Some(&live), true, None), "hold 3");
}

#[test]
fn what_is_there_is_rendered_again_as_it_is() {
    let record = arrived(3, "B");
    let live = observed(Some(&record.text));
    assert_eq!(decided(Some(&live), true, None), "submit 3 at Version(7)");
}

#[test]
fn another_rendering_of_the_same_revision_is_another_arrival() {
    let mut record = arrived(3, "B");
    record.arrival.rendered = "by a template that was changed since".to_owned();
    let live = observed(Some(&Record::new(record.arrival).text));
    assert_eq!(decided(Some(&live), true, None), "hold 3");
}

#[test]
fn an_object_without_a_record_is_free() {
    for annotation in [None, Some("no record")] {
        let live = observed(annotation);
        assert_eq!(decided(Some(&live), true, None), "submit 1 at Version(7)");
    }
    assert_eq!(decided(None, true, None), "submit 1 at Absent");
}

#[test]
fn an_object_elsewhere_locks_but_is_no_precondition() {
    let live = observed(Some(&arrived(3, "A").text));
    assert_eq!(decided(Some(&live), false, None), "hold 3");
    let free = status(
        3,
        &[
            ("one", ValidationVerdict::Failed),
            ("two", ValidationVerdict::Failed),
        ],
    );
    assert_eq!(
        decided(Some(&live), false, Some(&free)),
        "submit 4 at Absent"
    );
}

#[test]
fn numbers_go_on_from_what_status_remembers_of_an_object_that_is_gone() {
    assert_eq!(
        decided(None, true, Some(&status(8, &[]))),
        "submit 9 at Absent"
    );
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let record = arrived(3, "A");
    assert_eq!(
        record.text,
        r#"{"arrival":3,"revision":"A","url":"u","rendered":"digest of A","started":"1970-01-01T00:00:00Z"}"#
    );
    assert_eq!(
        Record::of(&observed(Some(&record.text)).object),
        Some(record)
    );
}

#[test]
fn what_comes_from_a_secret_is_not_shown() {
    let mut arrival = arrived(1, "hidden").arrival;
    arrival.secret = true;
    let record = Record::new(arrival);
    assert_eq!(
        (record.revision(), record.url()),
        ("<redacted>".to_owned(), "<redacted>".to_owned())
    );
    assert!(record.output().secret);
}
