use super::*;

fn at(second: i64) -> Time {
    Time(k8s_openapi::jiff::Timestamp::from_second(second).unwrap())
}

fn hindrance(is_stuck: bool, reason: Reason) -> Hindrance {
    Hindrance {
        is_stuck,
        step: Some("build".to_owned()),
        object: None,
        reason,
        message: "first line\n  second line".to_owned(),
    }
}

#[test]
fn a_summary_is_one_line_of_bounded_length() {
    let summary = hindrance(true, Reason::TemplateStampFailure).summary(None, &at(7));
    assert_eq!(summary.message, "first line second line");
    assert_eq!(
        summary.next.as_deref(),
        Some("correct the template, or what it is given")
    );
    let long = Hindrance {
        message: "é ".repeat(MOST_SUMMARY_CHARS),
        ..hindrance(true, Reason::UnknownError)
    };
    let summary = long.summary(None, &at(7));
    assert_eq!(summary.message.chars().count(), MOST_SUMMARY_CHARS);
}

#[test]
fn it_says_what_to_do_whether_it_waits_or_is_stuck() {
    let next = |is_stuck, reason, object: Option<&str>| {
        let hindrance = Hindrance {
            object: object.map(str::to_owned),
            ..hindrance(is_stuck, reason)
        };
        hindrance.summary(None, &at(7)).next
    };
    let awaited = next(false, Reason::MissingValueAtPath, Some("configmaps/app"));
    assert_eq!(awaited.as_deref(), Some("look at the object"));
    let hopeless = next(true, Reason::MissingValueAtPath, Some("configmaps/app"));
    assert_eq!(
        hopeless.as_deref(),
        Some("correct the path in the template")
    );
    assert_eq!(next(false, Reason::Unknown, None), None, "no object");
    for reason in Reason::NAMED {
        let told = next(true, reason.clone(), Some("configmaps/app"));
        assert_eq!(told.as_deref(), Advice::on(reason, true).words());
    }
}

/// Of a condition only the text of its reason is known.
#[test]
fn what_a_condition_of_the_owner_says_has_advice_too() {
    let condition = Condition::new(
        ConditionType::Ready,
        ConditionStatus::False,
        &Reason::WorkloadLabelsMissing,
        "workload has no labels",
        &at(7),
    );
    let summary = Hindrance::of(&condition, true).summary(None, &at(7));
    assert_eq!(
        summary.next.as_deref(),
        Some("give it the labels that a blueprint selects by")
    );
}

#[test]
fn it_tells_since_when_it_is_so_whatever_the_message_says() {
    let first = hindrance(false, Reason::MissingValueAtPath).summary(None, &at(7));
    assert_eq!(first.state, SummaryState::Waiting);
    let later = Hindrance {
        message: "another text".to_owned(),
        ..hindrance(false, Reason::MissingValueAtPath)
    };
    assert_eq!(later.summary(Some(&first), &at(9)).since, at(7));
    let stuck = hindrance(true, Reason::MissingValueAtPath);
    assert_eq!(stuck.summary(Some(&first), &at(9)).since, at(9));
}
