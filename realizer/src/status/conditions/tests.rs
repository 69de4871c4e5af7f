use super::*;

const TYPES: [ConditionType; 3] = [
    ConditionType::SupplyChainReady,
    ConditionType::ResourcesSubmitted,
    ConditionType::ResourcesHealthy,
];

fn at(second: i64) -> Time {
    Time(jiff::Timestamp::from_second(second).unwrap())
}

/// Statuses in order, each with its own message, as `<status letter><message>`.
fn derived(inputs: &[&str]) -> (ConditionStatus, String, String) {
    let now = at(100);
    let mut conditions = Conditions::new(&[], &now);
    for (type_, input) in TYPES.into_iter().zip(inputs) {
        let (status, message) = input.split_at(1);
        let status = match status {
            "T" => ConditionStatus::True,
            "F" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        };
        conditions.add(type_, status, &Reason::copied(message), message);
    }
    conditions.derive_ready();
    let list = conditions.finish();
    let ready = list.last().unwrap();
    assert!(ready.is(ConditionType::Ready), "Ready comes last");
    (ready.status, ready.reason.clone(), ready.message.clone())
}

#[test]
fn ready_follows_the_last_false_and_then_the_first_unknown() {
    use ConditionStatus::{False, True, Unknown};
    let cases: [(&[&str], ConditionStatus, &str, &str); 8] = [
        (&["T", "T", "T"], True, "Ready", ""),
        (&["T", "Ua", "Ub"], Unknown, "a", "a"),
        (&["T", "Ua", "Fb"], False, "b", "b"),
        (&["Fa", "T", "Fb"], False, "b", "b"),
        (&["Fa", "Ub"], False, "a", "a"),
        (&["Ua", "Fb", "Uc"], False, "b", "b"),
        (&["Ua"], Unknown, "a", "a"),
        (&[], Unknown, "Unknown", ""),
    ];
    for (inputs, status, reason, message) in cases {
        assert_eq!(
            derived(inputs),
            (status, reason.to_owned(), message.to_owned()),
            "{inputs:?}"
        );
    }
}

#[test]
fn time_moves_exactly_when_anything_else_does() {
    let earlier = at(100);
    let later = at(200);
    let add = |previous: &[Condition], now: &Time, status, reason: &Reason, message: &str| {
        let mut conditions = Conditions::new(previous, now);
        conditions.add(ConditionType::ResourcesSubmitted, status, reason, message);
        conditions.finish()
    };
    let first = add(
        &[],
        &earlier,
        ConditionStatus::Unknown,
        &Reason::MissingValueAtPath,
        "waiting",
    );
    let cases = [
        (
            ConditionStatus::Unknown,
            Reason::MissingValueAtPath,
            "waiting",
            &earlier,
        ),
        (
            ConditionStatus::False,
            Reason::MissingValueAtPath,
            "waiting",
            &later,
        ),
        (
            ConditionStatus::Unknown,
            Reason::UnknownError,
            "waiting",
            &later,
        ),
        (
            ConditionStatus::Unknown,
            Reason::MissingValueAtPath,
            "still waiting",
            &later,
        ),
    ];
    for (status, reason, message, expected) in cases {
        let second = add(&first, &later, status, &reason, message);
        assert_eq!(
            second[0].last_transition_time, *expected,
            "{status} {reason} {message}"
        );
    }
}

#[test]
fn derived_ready_keeps_its_time_too() {
    let (earlier, later) = (at(100), at(200));
    let build = |previous: &[Condition], now: &Time| {
        let mut conditions = Conditions::new(previous, now);
        conditions.add(
            ConditionType::TemplatesReady,
            ConditionStatus::False,
            &Reason::TemplatesNotFound,
            "x",
        );
        conditions.derive_ready();
        conditions.finish()
    };
    let first = build(&[], &earlier);
    assert_eq!(build(&first, &later), first);
}

#[test]
fn times_are_whole_seconds() {
    let now = Time("2024-05-01T10:00:00.75Z".parse().unwrap());
    let mut conditions = Conditions::new(&[], &now);
    conditions.add(
        ConditionType::TemplatesReady,
        ConditionStatus::Unknown,
        &Reason::Unknown,
        "",
    );
    conditions.derive_ready();
    for condition in conditions.finish() {
        let json = serde_json::to_value(&condition).unwrap();
        assert_eq!(
            json["lastTransitionTime"], "2024-05-01T10:00:00Z",
            "{}",
            condition.type_
        );
    }
}

#[test]
fn what_comes_after_ready_does_not_feed_it() {
    let now = at(100);
    let mut conditions = Conditions::new(&[], &now);
    conditions.add(
        ConditionType::TemplatesReady,
        ConditionStatus::True,
        &Reason::Ready,
        "",
    );
    conditions.derive_ready();
    conditions.add(
        ConditionType::DeletionPending,
        ConditionStatus::False,
        &Reason::DeletionPending,
        "x",
    );
    let list = conditions.finish();
    assert_eq!(
        of_type(&list, ConditionType::Ready).unwrap().status,
        ConditionStatus::True
    );
    assert!(list[2].is(ConditionType::DeletionPending));
}
