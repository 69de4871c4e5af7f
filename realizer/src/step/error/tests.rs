use std::collections::BTreeSet;

use api_types::ConditionStatus;

use super::*;
use crate::Retry;
use crate::values::field_path::PathProblem;

fn text(text: &str) -> String {
    text.to_owned()
}

fn retrieve(error: ReadError) -> StepError {
    StepError::Retrieve {
        error,
        message: text("m"),
    }
}

fn apply(kind: SubmitFailureKind) -> StepError {
    StepError::Apply {
        kind,
        object: text("ns/x"),
        resource: "r".into(),
        blueprint: "b".parse().unwrap(),
        cause: text("c"),
    }
}

fn no_generation(has_status: bool) -> ReadError {
    ReadError::NotDone(NotDone::ObservedGeneration {
        problem: PathProblem::Absent(text("c")),
        has_status,
    })
}

fn stamp(waits_for: WaitsFor) -> StepError {
    StepError::Stamp {
        template: text("K/t"),
        resource: "r".into(),
        blueprint: "b".parse().unwrap(),
        cause: text("c"),
        waits_for,
    }
}

fn validation(error: ValidationError, environment: &str, cause: &str) -> StepError {
    StepError::Validation {
        error,
        resource: "r".into(),
        revision: text("v"),
        environment: text(environment),
        cause: text(cause),
        has_environment_event: false,
    }
}

/// Names all rows that the table must have, and tells which one an error belongs to. Whoever adds a variant gets no further
/// than the compiler without a row for it, and no further than the test without an example of that row.
macro_rules! rows {
    ($($name:literal => $error:pat,)+) => {
        const ROWS: &[&str] = &[$($name),+];

        fn row_of(error: &StepError) -> &'static str {
            match error {
                $($error => $name,)+
            }
        }
    };
}

rows! {
    "option cannot be evaluated" => StepError::ResolveOption { .. },
    "options do not match" => StepError::OptionsMatch { .. },
    "template cannot be read" => StepError::GetTemplate { .. },
    "template is gone" => StepError::TemplateVanished { .. },
    "stamping waits for an edit" => StepError::Stamp { waits_for: WaitsFor::Edit, .. },
    "stamping waits for inputs" => StepError::Stamp { waits_for: WaitsFor::Inputs, .. },
    "stamping waits for the blueprint" => StepError::Stamp { waits_for: WaitsFor::Blueprint, .. },
    "stamping is tried again" => StepError::Stamp { waits_for: WaitsFor::Retry, .. },
    "inputs are missing" => StepError::InputsMissing { .. },
    "object may hold something newer" => StepError::MayBeNewer { .. },
    // Objects that are contested and families that cannot be listed have errors of their own.
    "object is rejected" => StepError::Apply {
        kind: SubmitFailureKind::Rejected | SubmitFailureKind::List | SubmitFailureKind::Contested,
        ..
    },
    "object is forbidden" => StepError::Apply { kind: SubmitFailureKind::Forbidden, .. },
    "server cannot answer" => StepError::Apply { kind: SubmitFailureKind::Unavailable, .. },
    "rendering is too large" => StepError::Apply { kind: SubmitFailureKind::TooLarge, .. },
    "answer is too large" => StepError::Apply { kind: SubmitFailureKind::AnswerTooLarge, .. },
    "objects are made too often" => StepError::Apply { kind: SubmitFailureKind::TooOften, .. },
    "object is another one by now" => StepError::Apply { kind: SubmitFailureKind::Stale, .. },
    "family cannot be listed" => StepError::List { .. },
    "object is contested" => StepError::Contested { .. },
    "object does not stay as rendered" => StepError::Undone { .. },
    "path can never have a value" => StepError::Retrieve { error: ReadError::Hopeless { .. }, .. },
    "deployment can never be done" => StepError::Retrieve {
        error: ReadError::NotDone(NotDone::Hopeless(_)),
        ..
    },
    "path has no value" => StepError::Retrieve { error: ReadError::Path { .. }, .. },
    "path of the deployment has no value" => StepError::Retrieve {
        error: ReadError::NotDone(NotDone::Path { .. }),
        ..
    },
    "deployment is not done" => StepError::Retrieve {
        error: ReadError::NotDone(NotDone::Condition(_)),
        ..
    },
    "another object may not be read" => StepError::Retrieve {
        error: ReadError::NotDone(NotDone::Refused(_)),
        ..
    },
    "another object was not answered" => StepError::Retrieve {
        error: ReadError::NotDone(NotDone::Unavailable(_)),
        ..
    },
    "deployment failed" => StepError::Retrieve { error: ReadError::NotDone(NotDone::Failed(_)), .. },
    "deployment never says its generation" => StepError::Retrieve {
        error: ReadError::NotDone(NotDone::ObservedGeneration { has_status: true, .. }),
        ..
    },
    "deployment says nothing yet" => StepError::Retrieve {
        error: ReadError::NotDone(NotDone::ObservedGeneration { has_status: false, .. }),
        ..
    },
    "object was changed by somebody else" => StepError::Retrieve { error: ReadError::Changed, .. },
    "object was others' with these inputs" => StepError::Retrieve { error: ReadError::Doubtful, .. },
    "others have set fields of the object" => StepError::Retrieve { error: ReadError::Foreign { .. }, .. },
    "others may have set fields of the object" => StepError::Retrieve { error: ReadError::ForeignUnknown { .. }, .. },
    "nothing to judge" => StepError::Retrieve { error: ReadError::NoObject, .. },
    "no deployment" => StepError::Retrieve { error: ReadError::NoDeployment, .. },
    "validation begins" => StepError::Validation { error: ValidationError::Begins, .. },
    "validation runs" => StepError::Validation { error: ValidationError::Running, .. },
    "validation failed" => StepError::Validation { error: ValidationError::Failed, .. },
    "validation did not end in time" => StepError::Validation { error: ValidationError::TimedOut, .. },
    "declared input is not there" => StepError::PassThrough { declared: true, .. },
    "input is not declared" => StepError::PassThrough { declared: false, .. },
    "walk ended early" => StepError::NotReached { .. },
}

/// Every error with its message, and the kind, status, reason and retry that follow from it.
#[test]
fn every_error_has_its_row_in_the_table() {
    use ConditionStatus::{False, Unknown};
    use ErrorKind::{Infrastructure, NotYet, UserMustFix};
    use Retry::{AwaitChange, Backoff, Slow};
    let path = || ReadError::Path {
        path: text("p"),
        cause: text("c"),
    };
    let cases = [
        (
            StepError::ResolveOption {
                option: text("o"),
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
                cause: text("c"),
            },
            "get template name from resource: find matching template option: \
             error matching against template option [o] for resource [r] in supply chain [b]: c",
            (
                UserMustFix,
                False,
                "ResolveTemplateOptionsError",
                AwaitChange,
            ),
        ),
        (
            StepError::OptionsMatch {
                matching: vec![],
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
            },
            "get template name from resource: find matching template option: \
             expected exactly 1 option to match, found [0] matching options for resource [r] in supply chain [b]",
            (UserMustFix, False, "TemplateOptionsMatchError", AwaitChange),
        ),
        (
            StepError::OptionsMatch {
                matching: vec![text("x"), text("y")],
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
            },
            "get template name from resource: find matching template option: \
             expected exactly 1 option to match, found [2] matching options [x, y] for resource [r] in supply chain [b]",
            (UserMustFix, False, "TemplateOptionsMatchError", AwaitChange),
        ),
        (
            StepError::GetTemplate {
                template: text("t"),
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
                cause: text("c"),
            },
            "unable to get template [t] for resource [r] in supply chain [b]: c",
            (
                Infrastructure,
                False,
                "TemplateObjectRetrievalFailure",
                Backoff,
            ),
        ),
        (
            StepError::TemplateVanished {
                kind: text("K"),
                template: text("t"),
            },
            "failed to get cluster template [{Kind:K Name:t}]: resource does not match a known template",
            (Infrastructure, False, "UnknownError", Backoff),
        ),
        (
            stamp(WaitsFor::Edit),
            "unable to stamp object for resource [r] for template [K/t] in supply chain [b]: c",
            (UserMustFix, False, "TemplateStampFailure", AwaitChange),
        ),
        (
            stamp(WaitsFor::Retry),
            "unable to stamp object for resource [r] for template [K/t] in supply chain [b]: c",
            (Infrastructure, False, "TemplateStampFailure", Backoff),
        ),
        (
            stamp(WaitsFor::Blueprint),
            "unable to stamp object for resource [r] for template [K/t] in supply chain [b]: c",
            (UserMustFix, False, "TemplateStampFailure", AwaitChange),
        ),
        (
            stamp(WaitsFor::Inputs),
            "unable to stamp object for resource [r] for template [K/t] in supply chain [b]: c",
            (NotYet, False, "TemplateStampFailure", AwaitChange),
        ),
        (
            StepError::InputsMissing {
                resource: "r".into(),
                inputs: vec![text("i"), text("j")],
                providers: vec!["a".into(), "b".into()],
                starved: None,
            },
            "waiting for input(s) [i, j] of resource [r]: not available from resource(s) [a, b]",
            (NotYet, Unknown, "InputsNotReady", AwaitChange),
        ),
        (
            StepError::InputsMissing {
                resource: "r".into(),
                inputs: vec![text("i")],
                providers: vec!["a".into()],
                starved: Some(text("never")),
            },
            "waiting for input(s) [i] of resource [r]: not available from resource(s) [a]; never",
            (UserMustFix, Unknown, "InputsNotReady", AwaitChange),
        ),
        (
            StepError::MayBeNewer {
                object: text("ns/x"),
                resource: "r".into(),
                providers: vec!["a".into(), "b".into()],
            },
            "object [ns/x] of resource [r] is left as it is: resource(s) [a, b] hand on what status knows as good last, and \
             the object holds something else, which may be newer; waiting for resource(s) [a, b] to be good. \
             To have it made anew at once, delete it",
            (NotYet, Unknown, "InputsNotReady", AwaitChange),
        ),
        (
            apply(SubmitFailureKind::Rejected),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (
                Infrastructure,
                False,
                "TemplateRejectedByAPIServer",
                Backoff,
            ),
        ),
        (
            apply(SubmitFailureKind::Unavailable),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (Infrastructure, False, "APIServerUnavailable", Backoff),
        ),
        (
            apply(SubmitFailureKind::Forbidden),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (UserMustFix, False, "TemplateRejectedByAPIServer", Slow),
        ),
        (
            apply(SubmitFailureKind::Stale),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (
                Infrastructure,
                False,
                "TemplateRejectedByAPIServer",
                Backoff,
            ),
        ),
        (
            apply(SubmitFailureKind::TooLarge),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (UserMustFix, False, "RenderingTooLarge", AwaitChange),
        ),
        (
            apply(SubmitFailureKind::TooOften),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (UserMustFix, False, "CreatedTooOften", Slow),
        ),
        (
            apply(SubmitFailureKind::AnswerTooLarge),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (UserMustFix, False, "AnswerTooLarge", Slow),
        ),
        (
            StepError::List {
                namespace: text("ns"),
                labels: text("map[a:b]"),
                cause: text("c"),
            },
            "unable to list objects in namespace [ns] with labels [map[a:b]]: c",
            (Infrastructure, False, "FailedToListCreatedObjects", Backoff),
        ),
        (
            StepError::Contested {
                object: text("ns/x"),
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
                cause: text("belongs to Workload [ns/other]"),
            },
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: belongs to Workload [ns/other]",
            (UserMustFix, False, "ObjectContested", Slow),
        ),
        (
            StepError::Undone {
                object: text("ns/x"),
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
            },
            "object [ns/x] of resource [r] in supply chain [b] does not stay as rendered: another writer keeps undoing \
             it; stop that writer, or take the fields that it sets out of the template",
            (UserMustFix, False, "ObjectUndone", AwaitChange),
        ),
        (
            retrieve(path()),
            "m",
            (NotYet, Unknown, "MissingValueAtPath", AwaitChange),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Path {
                path: text("p"),
                cause: text("c"),
                is_hopeless: false,
            })),
            "m",
            (NotYet, Unknown, "MissingValueAtPath", AwaitChange),
        ),
        (
            retrieve(ReadError::Hopeless {
                path: text("p"),
                cause: text("c"),
            }),
            "m",
            (UserMustFix, Unknown, "MissingValueAtPath", AwaitChange),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Hopeless(text("c")))),
            "m",
            (UserMustFix, Unknown, "ConditionNotMet", AwaitChange),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Condition(text("c")))),
            "m",
            (NotYet, Unknown, "ConditionNotMet", AwaitChange),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Refused(text("c")))),
            "m",
            (UserMustFix, Unknown, "ConditionNotMet", Slow),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Unavailable(text("c")))),
            "m",
            (Infrastructure, False, "APIServerUnavailable", Backoff),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Failed(text("c")))),
            "m",
            (UserMustFix, False, "FailedConditionMet", AwaitChange),
        ),
        (
            retrieve(no_generation(true)),
            "m",
            (UserMustFix, False, "TemplateStampFailure", AwaitChange),
        ),
        (
            retrieve(no_generation(false)),
            "m",
            (NotYet, False, "TemplateStampFailure", AwaitChange),
        ),
        (
            retrieve(ReadError::NoObject),
            "m",
            (NotYet, False, "UnknownError", AwaitChange),
        ),
        (
            retrieve(ReadError::Changed),
            "m",
            (NotYet, Unknown, "ConditionNotMet", AwaitChange),
        ),
        (
            retrieve(ReadError::Doubtful),
            "m",
            (NotYet, Unknown, "ConditionNotMet", AwaitChange),
        ),
        (
            retrieve(ReadError::Foreign { fields: Vec::new() }),
            "m",
            (UserMustFix, Unknown, "ConditionNotMet", Slow),
        ),
        (
            retrieve(ReadError::ForeignUnknown {
                cause: String::new(),
            }),
            "m",
            (UserMustFix, Unknown, "ConditionNotMet", Slow),
        ),
        (
            retrieve(ReadError::NoDeployment),
            "m",
            (NotYet, False, "UnknownError", AwaitChange),
        ),
        (
            validation(ValidationError::Begins, "e", ""),
            "validation [r] of revision [v] in environment [e] is about to begin",
            (NotYet, Unknown, "ValidationRunning", AwaitChange),
        ),
        (
            validation(ValidationError::Running, "", "c"),
            "validation [r] of revision [v] has not ended: c",
            (NotYet, Unknown, "ValidationRunning", AwaitChange),
        ),
        (
            validation(ValidationError::Failed, "e", "c"),
            "validation [r] failed for revision [v] in environment [e]: c",
            (UserMustFix, False, "ValidationFailed", AwaitChange),
        ),
        (
            validation(ValidationError::TimedOut, "e", ""),
            "validation [r] of revision [v] in environment [e] did not end in time",
            (UserMustFix, False, "ValidationTimedOut", AwaitChange),
        ),
        (
            StepError::PassThrough {
                input: text("i"),
                declared: true,
            },
            "unable to find passthrough [i] in []",
            (NotYet, Unknown, "PassThrough", AwaitChange),
        ),
        (
            StepError::PassThrough {
                input: text("i"),
                declared: false,
            },
            "unable to find passthrough [i] in []",
            (UserMustFix, False, "PassThrough", AwaitChange),
        ),
        (
            StepError::NotReached {
                resource: "r".into(),
            },
            "resource [r] was not reached",
            (Infrastructure, False, "UnknownError", Backoff),
        ),
    ];
    let mut shown = BTreeSet::new();
    for (error, message, expected) in cases {
        assert_eq!(error.to_string(), message);
        let verdict = error.verdict();
        let reason = verdict.reason.as_str();
        let seen = (verdict.kind, verdict.status, &*reason, verdict.retry);
        assert_eq!(seen, expected, "{message}");
        shown.insert(row_of(&error));
    }
    assert_eq!(
        shown,
        ROWS.iter().copied().collect(),
        "an example of each row"
    );
    assert_eq!(shown.len(), ROWS.len(), "no two rows have one name");
}

#[test]
fn what_only_an_author_can_mend_says_why_and_everything_else_does_not() {
    let path = |is_hopeless| {
        retrieve(ReadError::NotDone(NotDone::Path {
            path: text("p"),
            cause: text("c"),
            is_hopeless,
        }))
    };
    let hopeless = [
        retrieve(ReadError::Hopeless {
            path: text("p"),
            cause: text("c"),
        }),
        retrieve(ReadError::NotDone(NotDone::Hopeless(text("c")))),
        retrieve(no_generation(true)),
        path(true),
    ];
    for error in hopeless {
        assert!(error.unreadable().is_some(), "{error:?}");
        assert_eq!(error.verdict().kind, ErrorKind::UserMustFix);
    }
    let others = [
        retrieve(ReadError::Path {
            path: text("p"),
            cause: text("c"),
        }),
        retrieve(no_generation(false)),
        path(false),
        stamp(WaitsFor::Edit),
    ];
    for error in others {
        assert_eq!(error.unreadable(), None, "{error:?}");
    }
}
