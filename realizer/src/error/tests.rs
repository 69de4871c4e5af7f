use super::*;
use crate::field_path::PathProblem;

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

/// Every error with its message, status, reason and retry (spec 4.4).
#[test]
fn every_error_has_its_row_in_the_table() {
    use ConditionStatus::{False, Unknown};
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
            (False, "ResolveTemplateOptionsError", AwaitChange),
        ),
        (
            StepError::OptionsMatch {
                matching: vec![],
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
            },
            "get template name from resource: find matching template option: \
             expected exactly 1 option to match, found [0] matching options for resource [r] in supply chain [b]",
            (False, "TemplateOptionsMatchError", AwaitChange),
        ),
        (
            StepError::OptionsMatch {
                matching: vec![text("x"), text("y")],
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
            },
            "get template name from resource: find matching template option: \
             expected exactly 1 option to match, found [2] matching options [x, y] for resource [r] in supply chain [b]",
            (False, "TemplateOptionsMatchError", AwaitChange),
        ),
        (
            StepError::GetTemplate {
                template: text("t"),
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
                cause: text("c"),
            },
            "unable to get template [t] for resource [r] in supply chain [b]: c",
            (False, "TemplateObjectRetrievalFailure", Backoff),
        ),
        (
            StepError::TemplateVanished {
                kind: text("K"),
                template: text("t"),
            },
            "failed to get cluster template [{Kind:K Name:t}]: resource does not match a known template",
            (False, "UnknownError", Backoff),
        ),
        (
            stamp(WaitsFor::Edit),
            "unable to stamp object for resource [r] for template [K/t] in supply chain [b]: c",
            (False, "TemplateStampFailure", AwaitChange),
        ),
        (
            stamp(WaitsFor::Retry),
            "unable to stamp object for resource [r] for template [K/t] in supply chain [b]: c",
            (False, "TemplateStampFailure", Backoff),
        ),
        (
            stamp(WaitsFor::Blueprint),
            "unable to stamp object for resource [r] for template [K/t] in supply chain [b]: c",
            (False, "TemplateStampFailure", AwaitChange),
        ),
        (
            stamp(WaitsFor::Inputs),
            "unable to stamp object for resource [r] for template [K/t] in supply chain [b]: c",
            (False, "TemplateStampFailure", AwaitChange),
        ),
        (
            StepError::InputsMissing {
                resource: "r".into(),
                inputs: vec![text("i"), text("j")],
                providers: vec!["a".into(), "b".into()],
                starved: None,
            },
            "waiting for input(s) [i, j] of resource [r]: not available from resource(s) [a, b]",
            (Unknown, "InputsNotReady", AwaitChange),
        ),
        (
            StepError::InputsMissing {
                resource: "r".into(),
                inputs: vec![text("i")],
                providers: vec!["a".into()],
                starved: Some(text("never")),
            },
            "waiting for input(s) [i] of resource [r]: not available from resource(s) [a]; never",
            (Unknown, "InputsNotReady", AwaitChange),
        ),
        (
            apply(SubmitFailureKind::Rejected),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (False, "TemplateRejectedByAPIServer", Backoff),
        ),
        (
            apply(SubmitFailureKind::Unavailable),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (False, "APIServerUnavailable", Backoff),
        ),
        (
            apply(SubmitFailureKind::Forbidden),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (False, "TemplateRejectedByAPIServer", Slow),
        ),
        (
            apply(SubmitFailureKind::TooLarge),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (False, "RenderingTooLarge", AwaitChange),
        ),
        (
            apply(SubmitFailureKind::TooOften),
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: c",
            (False, "CreatedTooOften", Slow),
        ),
        (
            StepError::List {
                namespace: text("ns"),
                labels: text("map[a:b]"),
                cause: text("c"),
            },
            "unable to list objects in namespace [ns] with labels [map[a:b]]: c",
            (False, "FailedToListCreatedObjects", Backoff),
        ),
        (
            StepError::Contested {
                object: text("ns/x"),
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
                cause: text("belongs to Workload [ns/other]"),
            },
            "unable to apply object [ns/x] for resource [r] in supply chain [b]: belongs to Workload [ns/other]",
            (False, "ObjectContested", Slow),
        ),
        (
            StepError::Undone {
                object: text("ns/x"),
                resource: "r".into(),
                blueprint: "b".parse().unwrap(),
            },
            "object [ns/x] of resource [r] in supply chain [b] does not stay as rendered: another writer keeps undoing \
             it; stop that writer, or take the fields that it sets out of the template",
            (False, "ObjectUndone", AwaitChange),
        ),
        (
            retrieve(path()),
            "m",
            (Unknown, "MissingValueAtPath", AwaitChange),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Path {
                path: text("p"),
                cause: text("c"),
                is_hopeless: false,
            })),
            "m",
            (Unknown, "MissingValueAtPath", AwaitChange),
        ),
        (
            retrieve(ReadError::Hopeless {
                path: text("p"),
                cause: text("c"),
            }),
            "m",
            (Unknown, "MissingValueAtPath", AwaitChange),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Hopeless(text("c")))),
            "m",
            (Unknown, "ConditionNotMet", AwaitChange),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Condition(text("c")))),
            "m",
            (Unknown, "ConditionNotMet", AwaitChange),
        ),
        (
            retrieve(ReadError::NotDone(NotDone::Failed(text("c")))),
            "m",
            (False, "FailedConditionMet", AwaitChange),
        ),
        (
            retrieve(no_generation(true)),
            "m",
            (False, "TemplateStampFailure", AwaitChange),
        ),
        (
            retrieve(no_generation(false)),
            "m",
            (False, "TemplateStampFailure", AwaitChange),
        ),
        (
            retrieve(ReadError::NoObject),
            "m",
            (False, "UnknownError", AwaitChange),
        ),
        (
            retrieve(ReadError::NoDeployment),
            "m",
            (False, "UnknownError", AwaitChange),
        ),
        (
            StepError::PassThrough {
                input: text("i"),
                declared: true,
            },
            "unable to find passthrough [i] in []",
            (Unknown, "PassThrough", AwaitChange),
        ),
        (
            StepError::PassThrough {
                input: text("i"),
                declared: false,
            },
            "unable to find passthrough [i] in []",
            (False, "PassThrough", AwaitChange),
        ),
        (
            StepError::NotReached {
                resource: "r".into(),
            },
            "resource [r] was not reached",
            (False, "UnknownError", Backoff),
        ),
    ];
    for (error, message, (status, reason, retry)) in cases {
        assert_eq!(error.to_string(), message);
        let verdict = error.verdict();
        assert_eq!(
            (
                verdict.status,
                verdict.reason.as_str().as_ref(),
                verdict.retry
            ),
            (status, reason, retry),
            "{message}"
        );
    }
}

#[test]
fn nobody_is_warned_while_something_only_has_to_happen_first() {
    assert_eq!(stamp(WaitsFor::Inputs).verdict().kind, ErrorKind::NotYet);
    assert_eq!(stamp(WaitsFor::Edit).verdict().kind, ErrorKind::UserMustFix);
    assert_eq!(
        stamp(WaitsFor::Retry).verdict().kind,
        ErrorKind::Infrastructure
    );
    assert_eq!(
        apply(SubmitFailureKind::Rejected).verdict().kind,
        ErrorKind::Infrastructure
    );
    assert_eq!(
        retrieve(no_generation(false)).verdict().kind,
        ErrorKind::NotYet
    );
    assert_eq!(
        retrieve(no_generation(true)).verdict().kind,
        ErrorKind::UserMustFix
    );
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
