use api_types::UpdateBasis;

use super::*;

fn rule(limit: Option<u64>, most_waiting: usize) -> UpdateRule {
    UpdateRule {
        time_limit: limit.map(Duration::from_secs),
        most_waiting,
    }
}

fn at(second: i64) -> Time {
    Time(jiff::Timestamp::new(second, 0).unwrap())
}

fn update(name: &str) -> Update {
    Update {
        number: 0,
        since: at(0),
        digest: name.to_owned(),
        rendering: Some(name.to_owned()),
        made_from: UpdateBasis::default(),
    }
}

fn arrive(rule: &UpdateRule, before: Option<&UpdateStack>, arrival: Update) -> Arrived {
    rule.arrive(before, arrival, false, Room::among(1))
}

fn after(rule: &UpdateRule, names: &[&str]) -> Arrived {
    let arrive = |before: Option<Arrived>, name: &&str| {
        let before = before.map(|before| before.stack);
        Some(arrive(rule, before.as_ref(), update(name)))
    };
    names.iter().fold(None, arrive).unwrap()
}

/// The next walk renders the same.
fn again(rule: &UpdateRule, weighed: &Weighed) -> Arrived {
    let newest = update(weighed.stack.newest_digest.as_ref().unwrap());
    arrive(rule, Some(&weighed.stack), newest)
}

fn shown(stack: &UpdateStack) -> String {
    let waiting: Vec<&str> = stack.waiting.iter().map(|it| it.digest.as_str()).collect();
    format!("{} [{}]", stack.applied.digest, waiting.join(" "))
}

fn failed() -> Came {
    Came::Failed("why".to_owned())
}

#[test]
fn updates_wait_in_the_order_in_which_they_came() {
    let rule = rule(None, 10);
    for (names, expected) in [
        (&["1"][..], "1 []"),
        (&["1", "1"], "1 []"),
        (&["1", "2", "3", "4"], "1 [2 3 4]"),
        // One that comes again is the newest again.
        (&["1", "2", "3", "2"], "1 [3 2]"),
        (&["1", "2", "1"], "1 [2]"),
        (&["1", "2", "1", "2"], "1 [2]"),
    ] {
        assert_eq!(shown(&after(&rule, names).stack), expected, "{names:?}");
    }
}

#[test]
fn the_oldest_ones_are_dropped_when_there_are_too_many() {
    assert_eq!(
        shown(&after(&rule(None, 2), &["1", "2", "3", "4"]).stack),
        "1 [3 4]"
    );
}

#[test]
fn the_oldest_ones_are_dropped_when_they_are_too_large_together() {
    let rule = rule(None, 10);
    let large = |name: &str| Update {
        rendering: Some("x".repeat(MOST_OF_RENDERING)),
        ..update(name)
    };
    let mut stack = arrive(&rule, None, update("1")).stack;
    for name in ["2", "3", "4", "5", "6"] {
        stack = arrive(&rule, Some(&stack), large(name)).stack;
    }
    assert_eq!(shown(&stack), "1 [4 5 6]");
    let rendering = serde_json::json!("x".repeat(MOST_OF_RENDERING));
    assert_eq!(Room::among(1).kept(&rendering), None, "with its quotes");
}

/// The API server would store no status of an owner whose steps all kept as much as one may.
#[test]
fn the_steps_of_a_large_blueprint_share_the_room() {
    for steps in 0..1000 {
        let room = Room::among(steps);
        assert!(
            room.step * steps <= MOST_OF_OWNER && room.step <= MOST_OF_STEP,
            "{room:?}"
        );
        assert!(
            2 * room.rendering <= room.step,
            "one that is applied and one that waits: {room:?}"
        );
    }
}

#[test]
fn what_is_not_kept_does_not_wait_behind_a_newer_one() {
    let rule = rule(None, 10);
    let unkept = |name: &str| Update {
        rendering: None,
        ..update(name)
    };
    let mut stack = after(&rule, &["1", "2"]).stack;
    for name in ["3", "4"] {
        stack = arrive(&rule, Some(&stack), unkept(name)).stack;
    }
    assert_eq!(shown(&stack), "1 [2 4]");
}

/// The example of the proposal: 1 is running; 2 is good, 3 is good, 4 is bad.
#[test]
fn of_1_running_and_2_good_3_good_4_bad_come_4_and_then_3_and_never_2() {
    let rule = rule(None, 10);
    let weighed = rule.weigh(after(&rule, &["1", "2", "3", "4"]), Came::Nothing, &at(1));
    assert_eq!(
        (shown(&weighed.stack).as_str(), weighed.again),
        ("1 [2 3 4]", None)
    );
    let weighed = rule.weigh(again(&rule, &weighed), Came::Good, &at(2));
    assert_eq!(shown(&weighed.stack), "4 [2 3]");
    assert_eq!(
        weighed.again,
        Some(Duration::ZERO),
        "it is written down before it is applied"
    );
    let weighed = rule.weigh(again(&rule, &weighed), failed(), &at(3));
    assert_eq!(shown(&weighed.stack), "3 [2]");
    assert_eq!(weighed.stack.failure.as_deref(), Some("why"));
    let weighed = rule.weigh(again(&rule, &weighed), Came::Good, &at(4));
    assert_eq!(shown(&weighed.stack), "3 []");
    assert!(!weighed.is_next_due);
    assert_eq!(
        weighed.stack.failure.as_deref(),
        Some("why"),
        "of 4, which is the newest"
    );
}

#[test]
fn what_came_before_a_good_update_is_dropped_and_what_came_after_it_is_next() {
    let rule = rule(None, 10);
    let stack = rule
        .weigh(after(&rule, &["1", "2", "3"]), failed(), &at(1))
        .stack;
    assert_eq!(shown(&stack), "3 [2]");
    let arrived = arrive(&rule, Some(&stack), update("4"));
    assert_eq!(
        shown(&rule.weigh(arrived, Came::Good, &at(2)).stack),
        "4 []"
    );
}

#[test]
fn when_all_have_failed_the_newest_is_applied_once_more_and_stays() {
    let rule = rule(None, 10);
    let mut arrived = after(&rule, &["1", "2", "3"]);
    for expected in ["3 [2]", "2 []", "3 []", "3 []"] {
        let weighed = rule.weigh(arrived, failed(), &at(1));
        assert_eq!(shown(&weighed.stack), expected);
        arrived = again(&rule, &weighed);
    }
    let arrived = arrive(&rule, Some(&arrived.stack), update("4"));
    assert_eq!(arrived.stack.failure, None, "4 has not failed");
    assert_eq!(shown(&rule.weigh(arrived, failed(), &at(1)).stack), "4 []");
}

#[test]
fn an_update_that_does_not_end_in_time_gives_way_to_a_newer_one_only() {
    let rule = rule(Some(60), 10);
    let arrived = after(&rule, &["1", "2"]);
    let weighed = rule.weigh(arrived.clone(), Came::Nothing, &at(20));
    assert_eq!(weighed.again, Some(Duration::from_secs(40)));
    assert!(!weighed.is_next_due);
    let weighed = rule.weigh(arrived, Came::Nothing, &at(60));
    assert_eq!((weighed.timed_out, weighed.is_next_due), (Some(1), true));
    assert_eq!(shown(&weighed.stack), "2 []");
    assert_eq!(weighed.stack.applied.since, at(60), "its own time begins");
    // 3 fails, so that 2 is tried, which does not end: 1 is older.
    let weighed = rule.weigh(after(&rule, &["0", "1", "2", "3"]), failed(), &at(60));
    let weighed = rule.weigh(again(&rule, &weighed), failed(), &at(60));
    assert_eq!(shown(&weighed.stack), "2 [1]");
    let weighed = rule.weigh(again(&rule, &weighed), Came::Nothing, &at(600));
    assert_eq!(
        (shown(&weighed.stack).as_str(), weighed.again),
        ("2 [1]", None)
    );
}

#[test]
fn a_clock_that_was_put_back_does_not_make_an_update_wait_for_longer_than_its_time() {
    let rule = rule(Some(60), 10);
    let mut arrived = after(&rule, &["1", "2"]);
    arrived.stack.applied.since = at(1000);
    let weighed = rule.weigh(arrived, Came::Nothing, &at(0));
    assert_eq!(weighed.again, Some(Duration::from_mins(1)));
}

#[test]
fn the_same_update_from_other_inputs_is_no_other_update() {
    let rule = rule(None, 10);
    let from = |name: &str, params: &str| Update {
        made_from: UpdateBasis {
            params: params.to_owned(),
            ..UpdateBasis::default()
        },
        ..update(name)
    };
    let arrived = after(&rule, &["1", "2"]);
    let arrived = arrive(&rule, Some(&arrived.stack), from("2", "p"));
    assert_eq!(arrived.stack.newest, 2);
    assert_eq!(arrived.stack.waiting[0].made_from.params, "p");
    let stack = rule.weigh(arrived, Came::Good, &at(1)).stack;
    let arrived = arrive(&rule, Some(&stack), from("2", "q"));
    assert_eq!(arrived.stack.applied.made_from.params, "q");
}
