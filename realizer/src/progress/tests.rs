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
    assert_eq!(summary.next, None);
}

#[test]
fn it_tells_since_when_it_is_so_whatever_the_message_says() {
    let first = hindrance(false, Reason::MissingValueAtPath).summary(None, &at(7));
    assert_eq!(
        (first.state, first.next.as_ref()),
        (SummaryState::Waiting, None)
    );
    let later = Hindrance {
        message: "another text".to_owned(),
        ..hindrance(false, Reason::MissingValueAtPath)
    };
    assert_eq!(later.summary(Some(&first), &at(9)).since, at(7));
    let stuck = hindrance(true, Reason::MissingValueAtPath);
    assert_eq!(stuck.summary(Some(&first), &at(9)).since, at(9));
}
