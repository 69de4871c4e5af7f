//! Deciding about an environment.

use std::sync::LazyLock;

use api_types::{DeployedRevision, EnvironmentStatus, ValidationStatus, ValidationVerdict};
use jiff::Timestamp;

use super::*;
use crate::Observed;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
static KEY: LazyLock<StatusKey> = LazyLock::new(|| StatusKey::new(b"key"));

fn incoming(revision: &str) -> Incoming {
    Incoming {
        revision: json!(revision),
        url: json!("u"),
        secret: false,
    }
}

fn hidden(revision: &str) -> Incoming {
    Incoming {
        secret: true,
        ..incoming(revision)
    }
}

fn arrived(arrival: u64, incoming: &Incoming) -> Record {
    let revision = incoming.revision.as_str().unwrap();
    let arrival = incoming.arrival(arrival, &format!("digest of {revision}"), &Time(NOW));
    Record::new(arrival, Time(NOW), &KEY).unwrap()
}

fn plain(arrival: u64, revision: &str) -> Record {
    arrived(arrival, &incoming(revision))
}

fn observed(annotation: Option<&str>) -> Observed {
    Observed {
        version: 7,
        ..Observed::of(json!({"metadata": {"annotations": {labels::ENVIRONMENT: annotation}}}))
    }
}

fn told(record: &Record) -> DeployedRevision {
    DeployedRevision {
        revision: record.revision(),
        url: record.url(),
        arrival: record.arrival.number,
        since: record.since.clone(),
        record: record.in_status.clone(),
        unproven: false,
    }
}

/// A status in which this is deployed, with these verdicts on it.
fn status(record: &Record, verdicts: &[(&str, ValidationVerdict)]) -> EnvironmentStatus {
    let arrival = record.arrival.number;
    EnvironmentStatus {
        resource: "deploy".to_owned(),
        deployed: Some(told(record)),
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
        ..EnvironmentStatus::default()
    }
}

/// The status of a version that knew no `record`.
fn former(record: &Record) -> EnvironmentStatus {
    let mut status = status(record, &[]);
    status.deployed.as_mut().unwrap().record = None;
    status
}

fn announcing(mut status: EnvironmentStatus, record: &Record) -> EnvironmentStatus {
    status.arriving = Some(told(record));
    status
}

fn known(status: Option<&EnvironmentStatus>) -> Known<'_> {
    Known {
        status,
        validations: vec!["one", "two"],
        key: &KEY,
    }
}

/// What is decided, with what is in the environment, in short.
fn decided_on(
    incoming: &Incoming,
    live: Option<&Observed>,
    in_place: bool,
    status: Option<&EnvironmentStatus>,
) -> String {
    let live = live.map(|observed| Live { observed, in_place });
    let rendered = format!("digest of {}", incoming.revision.as_str().unwrap());
    match decide(&rendered, incoming, live.as_ref(), &known(status), NOW) {
        Decision::Hold {
            record,
            next,
            is_free,
            ..
        } => format!(
            "hold {} {}{}, next {}",
            record.arrival.number,
            record.arrival.revision.as_str().unwrap(),
            match (record.proven, is_free) {
                (true, true) => " free",
                (true, false) => "",
                (false, true) => " unproven free",
                (false, false) => " unproven",
            },
            next.arrival.number
        ),
        Decision::Submit {
            record,
            precondition,
        } => {
            assert!(record.proven && !record.text.is_empty());
            format!("submit {} at {precondition:?}", record.arrival.number)
        }
        Decision::Announce { record, .. } => format!("announce {}", record.arrival.number),
        Decision::Disregard(_) => "disregard".to_owned(),
        Decision::Keyless => "keyless".to_owned(),
    }
}

/// What becomes of revision B in place of an object that says this.
fn decided(said: Option<&str>, status: Option<&EnvironmentStatus>) -> String {
    decided_on(&incoming("B"), Some(&observed(said)), true, status)
}

/// The status after what the object says was written down.
fn disregarding(mut status: EnvironmentStatus, said: Option<&str>) -> EnvironmentStatus {
    let Present::Unheard(digest) = known(Some(&status)).present(said, &Time(NOW)) else {
        panic!("it is not unheard of");
    };
    status.disregarded = Some(digest);
    status
}

#[test]
fn an_environment_is_free_only_when_status_says_so_of_every_validation_and_this_arrival() {
    use ValidationVerdict::{Failed, Pending, Running, Skipped, Succeeded, TimedOut};
    let a = plain(3, "A");
    let cases: [(&[(&str, ValidationVerdict)], &str); 5] = [
        (
            &[("one", Succeeded), ("two", Failed)],
            "hold 3 A free, next 4",
        ),
        (
            &[("one", TimedOut), ("two", Skipped)],
            "hold 3 A free, next 4",
        ),
        (&[("one", Succeeded), ("two", Running)], "hold 3 A, next 4"),
        (&[("one", Pending), ("two", Failed)], "hold 3 A, next 4"),
        (&[("one", Succeeded)], "hold 3 A, next 4"),
    ];
    for (verdicts, expected) in cases {
        let status = status(&a, verdicts);
        assert_eq!(
            decided(Some(&a.text), Some(&status)),
            expected,
            "{status:?}"
        );
    }
    let mut older = status(&a, &[("one", Succeeded), ("two", Succeeded)]);
    for told in &mut older.validations {
        told.arrival = 2;
    }
    assert_eq!(decided(Some(&a.text), Some(&older)), "hold 3 A, next 4");
}

#[test]
fn what_is_there_is_rendered_again_as_it_is() {
    let b = plain(3, "B");
    let status = status(&b, &[]);
    assert_eq!(
        decided(Some(&b.text), Some(&status)),
        "submit 3 at Version(7)"
    );
}

#[test]
fn another_rendering_of_the_same_revision_is_another_arrival() {
    let mut b = plain(3, "B");
    b.arrival.rendered = "by a template that was changed since".to_owned();
    let b = Record::new(b.arrival, Time(NOW), &KEY).unwrap();
    let status = status(&b, &[]);
    assert_eq!(decided(Some(&b.text), Some(&status)), "hold 3 B, next 4");
}

#[test]
fn nothing_is_written_before_status_announces_it() {
    assert_eq!(decided_on(&incoming("B"), None, true, None), "announce 1");
    // Before there were validations, and by somebody else.
    assert_eq!(decided(None, None), "announce 1");
    assert_eq!(decided(Some("no record"), None), "announce 1");
    let b = announcing(EnvironmentStatus::default(), &plain(1, "B"));
    assert_eq!(
        decided_on(&incoming("B"), None, true, Some(&b)),
        "submit 1 at Absent"
    );
    assert_eq!(decided(None, Some(&b)), "submit 1 at Version(7)");
}

/// Whether the object has it or not: no validation of it has begun.
#[test]
fn what_was_announced_is_replaced_by_what_is_newer() {
    let (a, c) = (plain(3, "A"), plain(4, "C"));
    let told = announcing(status(&a, &[]), &c);
    for said in [&a, &c] {
        assert_eq!(decided(Some(&said.text), Some(&told)), "announce 5");
    }
    let b = plain(4, "B");
    let told = announcing(status(&a, &[]), &b);
    for said in [&a, &b] {
        assert_eq!(
            decided(Some(&said.text), Some(&told)),
            "submit 4 at Version(7)"
        );
    }
    // What was deployed may have been replaced meanwhile, so that it comes anew.
    let again = announcing(status(&plain(3, "B"), &[]), &c);
    assert_eq!(decided(Some(&c.text), Some(&again)), "announce 5");
}

/// A template may render what status says, which announcing changes.
#[test]
fn what_was_announced_arrives_in_its_present_rendering() {
    let mut b = plain(4, "B");
    b.arrival.rendered = "before it was announced".to_owned();
    let b = Record::new(b.arrival, Time(NOW), &KEY).unwrap();
    let told = announcing(status(&plain(3, "A"), &[]), &b);
    assert_eq!(
        decided(Some(&plain(3, "A").text), Some(&told)),
        "submit 4 at Version(7)"
    );
}

#[test]
fn what_status_does_not_know_is_written_down_and_then_decides_nothing() {
    let a = plain(3, "A");
    let forged = |change: &dyn Fn(&mut Arrival)| {
        let mut arrival = a.arrival.clone();
        change(&mut arrival);
        Some(Record::new(arrival, Time(NOW), &KEY).unwrap().text)
    };
    let told = status(&a, &[]);
    let cases = [
        None,
        Some("garbage".to_owned()),
        Some(plain(2, "B").text),
        forged(&|arrival| arrival.revision = json!("EVIL")),
        forged(&|arrival| arrival.url = json!("http://evil")),
        forged(&|arrival| arrival.number = u64::MAX),
        forged(&|arrival| arrival.secret = true),
        forged(&|arrival| {
            arrival.started = Time("1970-01-01T00:00:01Z".parse().unwrap());
        }),
    ];
    for said in cases {
        let said = said.as_deref();
        assert_eq!(decided(said, Some(&told)), "disregard", "{said:?}");
        let told = disregarding(told.clone(), said);
        assert_eq!(decided(said, Some(&told)), "hold 3 A, next 4", "{said:?}");
        // Of another text status has not heard.
        assert_eq!(decided(Some("another"), Some(&told)), "disregard");
        assert_eq!(decided(Some(&a.text), Some(&told)), "hold 3 A, next 4");
        // Once it is rendered again it is put back.
        let live = observed(said);
        assert_eq!(
            decided_on(&incoming("A"), Some(&live), true, Some(&told)),
            "submit 3 at Version(7)"
        );
    }
}

#[test]
fn a_forged_record_is_not_what_arrives() {
    let a = plain(3, "A");
    let told = announcing(status(&a, &[]), &plain(4, "B"));
    let evil = plain(4, "EVIL");
    assert_eq!(decided(Some(&evil.text), Some(&told)), "disregard");
    let told = disregarding(told, Some(&evil.text));
    assert_eq!(
        decided(Some(&evil.text), Some(&told)),
        "submit 4 at Version(7)"
    );
}

#[test]
fn an_object_elsewhere_locks_but_is_no_precondition() {
    let a = plain(3, "A");
    let live = observed(Some(&a.text));
    let told = status(&a, &[]);
    let elsewhere = |status| decided_on(&incoming("B"), Some(&live), false, Some(status));
    assert_eq!(elsewhere(&told), "hold 3 A, next 4");
    assert_eq!(
        elsewhere(&announcing(told.clone(), &plain(4, "B"))),
        "submit 4 at Absent"
    );
}

#[test]
fn numbers_go_on_from_what_status_remembers_and_never_overflow() {
    let gone = status(&plain(8, "A"), &[]);
    let after = |status: &EnvironmentStatus| decided_on(&incoming("B"), None, true, Some(status));
    assert_eq!(after(&gone), "announce 9");
    assert_eq!(after(&announcing(gone, &plain(9, "C"))), "announce 10");
    for last in [i64::MAX.unsigned_abs(), u64::MAX] {
        let last = status(&plain(last, "A"), &[]);
        assert_eq!(after(&last), format!("announce {}", i64::MAX));
    }
}

#[test]
fn a_status_of_a_former_version_counts_with_the_record_that_agrees_with_it() {
    let a = plain(3, "A");
    assert_eq!(
        decided(Some(&a.text), Some(&former(&a))),
        "hold 3 A, next 4"
    );
    let b = plain(3, "B");
    assert_eq!(
        decided(Some(&b.text), Some(&former(&b))),
        "submit 3 at Version(7)"
    );
    for said in [None, Some(plain(3, "EVIL").text), Some(plain(4, "A").text)] {
        let said = said.as_deref();
        assert_eq!(decided(said, Some(&former(&a))), "disregard");
        let told = disregarding(former(&a), said);
        assert_eq!(decided(said, Some(&told)), "hold 3 A, next 4");
    }
}

#[test]
fn without_a_status_what_the_object_says_keeps_the_environment_and_proves_nothing() {
    let a = plain(3, "A");
    assert_eq!(decided(Some(&a.text), None), "hold 3 A unproven, next 4");
    // What is rendered again is compared by submitting it.
    assert_eq!(
        decided(Some(&plain(3, "B").text), None),
        "submit 3 at Version(7)"
    );
    for number in [0, HIGHEST_READ + 1, u64::MAX] {
        assert_eq!(decided(Some(&plain(number, "A").text), None), "announce 1");
    }
    let mut told = status(&a, &[]);
    told.deployed = told.deployed.map(|deployed| DeployedRevision {
        record: None,
        unproven: true,
        ..deployed
    });
    assert_eq!(
        decided(Some(&a.text), Some(&told)),
        "hold 3 A unproven, next 4"
    );
    assert_eq!(decided(Some(&plain(4, "A").text), Some(&told)), "disregard");
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let record = plain(3, "A");
    assert_eq!(
        record.text,
        r#"{"arrival":3,"revision":"A","url":"u","rendered":"digest of A","started":"1970-01-01T00:00:00Z"}"#
    );
    assert_eq!(Arrival::read(&record.text, &KEY), Some(record.arrival));
}

/// What becomes of this in place of an object that says that.
fn decided_for(incoming: &Incoming, said: &Record, status: &EnvironmentStatus) -> String {
    decided_on(
        incoming,
        Some(&observed(Some(&said.text))),
        true,
        Some(status),
    )
}

#[test]
fn what_comes_from_a_secret_is_sealed_and_compared_all_the_same() {
    let a = arrived(3, &hidden("A"));
    let told = status(&a, &[]);
    let shown = format!("{told:?} {}", a.text);
    for secret in ["\"A\"", "\"u\"", "digest of A"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert_eq!(told.deployed.as_ref().unwrap().revision, REDACTED);
    assert!(!a.output().unwrap().taint.is_none());
    assert_eq!(Arrival::read(&a.text, &KEY), Some(a.arrival.clone()));

    assert_eq!(
        decided_for(&hidden("A"), &a, &told),
        "submit 3 at Version(7)"
    );
    let b = hidden("B");
    assert_eq!(decided_for(&b, &a, &told), "hold 3 A, next 4");
    let announced = announcing(told.clone(), &arrived(4, &b));
    assert_eq!(decided_for(&b, &a, &announced), "submit 4 at Version(7)");
    let other = announcing(told, &arrived(4, &hidden("C")));
    assert_eq!(decided_for(&b, &a, &other), "announce 5");
}

/// Status has it, so that nothing is lost.
#[test]
fn a_secret_revision_is_handed_on_whatever_somebody_wrote_on_its_object() {
    let told = status(&arrived(3, &hidden("A")), &[]);
    let evil = arrived(3, &hidden("EVIL"));
    assert_eq!(decided_for(&hidden("B"), &evil, &told), "disregard");
    let told = disregarding(told, Some(&evil.text));
    assert_eq!(decided_for(&hidden("B"), &evil, &told), "hold 3 A, next 4");
    assert_eq!(
        decided_for(&hidden("A"), &evil, &told),
        "submit 3 at Version(7)"
    );
}

#[test]
fn a_revision_that_was_sealed_with_another_key_keeps_the_environment_and_is_not_handed_on() {
    let arrival = hidden("B").arrival(3, "digest of B", &Time(NOW));
    let b = Record::new(arrival, Time(NOW), &StatusKey::new(b"another")).unwrap();
    let told = status(&b, &[]);
    assert_eq!(
        decided_for(&hidden("B"), &b, &told),
        "hold 3 <redacted> unproven, next 4"
    );
    let Present::Revision(record) = known(Some(&told)).present(Some(&b.text), &Time(NOW)) else {
        panic!("nothing is there");
    };
    assert_eq!(record.output(), None);
    assert_eq!(
        record.in_status, b.in_status,
        "with the former key it is known again"
    );
}

/// It was deployed before anybody knew that it is secret, or by a former version.
#[test]
fn what_stands_in_clear_is_sealed_when_it_is_written_again() {
    let clear = serde_json::to_string(&arrived(3, &hidden("B")).arrival).unwrap();
    let mut formerly = arrived(3, &hidden("B"));
    formerly.text = clear;
    for (said, told) in [
        (formerly.clone(), former(&formerly)),
        (plain(3, "B"), status(&plain(3, "B"), &[])),
    ] {
        let live = observed(Some(&said.text));
        let live = Live {
            observed: &live,
            in_place: true,
        };
        let known = known(Some(&told));
        let decision = decide("digest of B", &hidden("B"), Some(&live), &known, NOW);
        let Decision::Submit { record, .. } = decision else {
            panic!("{decision:?}");
        };
        assert_eq!(record, arrived(3, &hidden("B")));
        let keyless = Known {
            key: &StatusKey::NONE,
            ..known
        };
        let decision = decide("digest of B", &hidden("B"), Some(&live), &keyless, NOW);
        assert!(matches!(decision, Decision::Keyless), "{decision:?}");
    }
}

#[test]
fn without_a_key_a_secret_revision_waits_and_no_digest_tells_of_one() {
    let keyless = |status| Known {
        key: &StatusKey::NONE,
        ..known(status)
    };
    let decision = decide("digest of B", &hidden("B"), None, &keyless(None), NOW);
    assert!(matches!(decision, Decision::Keyless), "{decision:?}");
    let digests: Vec<Option<String>> = ["A", "B"]
        .map(|revision| {
            let clear = serde_json::to_string(&arrived(3, &hidden(revision)).arrival).unwrap();
            keyless(None).unless_deployed(Some(&clear))
        })
        .to_vec();
    assert_eq!(digests[0], digests[1]);
    assert_ne!(
        keyless(None).unless_deployed(Some(&plain(3, "A").text)),
        keyless(None).unless_deployed(Some(&plain(3, "B").text))
    );
}
