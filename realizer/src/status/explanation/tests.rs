use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

fn condition(type_: ConditionType, status: ConditionStatus, message: &str) -> Condition {
    let now = Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH);
    Condition::new(type_, status, &Reason::Unknown, message, &now)
}

/// A step with this condition `Healthy`.
fn step(healthy: ConditionStatus, error: Option<StepError>) -> ExplainedStep<'static> {
    let ready = match &error {
        Some(error) => error.verdict().status,
        None => healthy,
    };
    ExplainedStep {
        entry: ResourceStatus {
            conditions: vec![
                condition(ConditionType::Healthy, healthy, "the object's words"),
                condition(ConditionType::Ready, ready, ""),
            ],
            ..ResourceStatus::default()
        },
        error,
        ..ExplainedStep::default()
    }
}

fn awaited() -> StepError {
    StepError::Retrieve {
        error: ReadError::Path {
            path: ".status.image".to_owned(),
            cause: "not found".to_owned(),
        },
        message: "waiting".to_owned(),
    }
}

fn gone() -> StepError {
    StepError::TemplateVanished {
        kind: "ClusterTemplate".to_owned(),
        template: "t".to_owned(),
    }
}

#[test]
fn an_object_that_is_broken_is_why_its_value_is_not_there() {
    use ConditionStatus::{False, True, Unknown};
    let cases = [
        (True, None, None),
        (Unknown, None, Some((Urgency::GoesOn, "the object's words"))),
        (False, None, Some((Urgency::Stuck, "the object's words"))),
        (True, Some(awaited()), Some((Urgency::GoesOn, "waiting"))),
        (Unknown, Some(awaited()), Some((Urgency::GoesOn, "waiting"))),
        (
            False,
            Some(awaited()),
            Some((Urgency::Stuck, "the object's words")),
        ),
    ];
    for (healthy, error, expected) in cases {
        let step = step(healthy, error.clone());
        let told = step.urgency().zip(step.cause().map(Cause::message));
        let expected = expected.map(|(urgency, message)| (urgency, message.to_owned()));
        assert_eq!(told, expected, "{healthy:?} {error:?}");
    }
    let vanished = step(False, Some(gone()));
    assert_eq!(vanished.cause(), Some(Cause::Error(&gone())));
}

#[test]
fn what_only_somebody_can_mend_comes_first_and_what_waits_for_a_step_last() {
    let waits = StepError::PassThrough {
        input: "code".to_owned(),
        declared: true,
    };
    let healthy = ConditionStatus::True;
    let mut steps: Vec<_> = [waits, awaited(), awaited()]
        .into_iter()
        .map(|error| step(healthy, Some(error)))
        .collect();
    steps.push(step(ConditionStatus::False, None));
    for (index, step) in steps.iter_mut().enumerate() {
        step.entry.name = index.to_string();
    }
    let mut seen = Vec::new();
    while let Some(next) = first(&steps) {
        let name = next.step.unwrap();
        steps.retain(|step| step.entry.name != name);
        seen.push(name);
    }
    assert_eq!(seen, ["3", "1", "2", "0"]);
}

#[test]
fn a_path_that_can_never_be_read_is_told_with_its_cause() {
    let hopeless = StepError::Retrieve {
        error: ReadError::Hopeless {
            path: ".status[".to_owned(),
            cause: "unclosed array".to_owned(),
        },
        message: "waiting".to_owned(),
    };
    let step = step(ConditionStatus::Unknown, Some(hopeless));
    let cause = step.cause().unwrap();
    assert!(cause.is_stuck());
    assert_eq!(cause.message(), "waiting: unclosed array");
    assert_eq!(cause.reason(), Reason::MissingValueAtPath);
}
