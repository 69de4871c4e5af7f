//! Conditions, retries and messages (docs/behaviour/runnables.md#conditions).

use std::sync::Arc;

use realizer::runnable::{NotRun, Runnable, SelectError, report_not_run};
use realizer::{Ended, Retry, SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use crate::stage::Stage;

/// Those for tools that wait come last, and have a test of their own.
const FOR_TOOLS: [&str; 2] = ["Reconciling", "Stalled"];

fn types(status: &Value) -> Vec<&str> {
    let conditions = conditions(status).into_iter();
    conditions.map(|(type_, _)| type_).collect()
}

fn conditions(status: &Value) -> Vec<(&str, [&str; 3])> {
    let conditions = status["conditions"].as_array().unwrap().iter();
    conditions
        .filter(|it| !FOR_TOOLS.iter().any(|type_| it["type"] == *type_))
        .map(|it| {
            let said = ["status", "reason", "message"].map(|field| it[field].as_str().unwrap());
            (it["type"].as_str().unwrap(), said)
        })
        .collect()
}

fn no_account(cause: &str) -> NotRun {
    NotRun::ServiceAccount {
        name: "default".to_owned(),
        cause: cause.to_owned(),
    }
}

#[test]
fn a_deletion_that_was_throttled_and_is_then_forbidden_is_told_once() {
    let mut stage =
        Stage::new(json!({"retentionPolicy": {"maxFailedRuns": 1, "maxSuccessfulRuns": 1}}));
    for (run, input) in [("run-1", "b"), ("run-2", "c")] {
        stage.walk();
        stage.end(run, "True", "one");
        stage.walk();
        stage.pass(60);
        stage.input(input);
        stage.undeletable = Some(SubmitFailure {
            kind: SubmitFailureKind::Unavailable,
            message: "too many requests".to_owned(),
        });
    }
    let mut told_when = |kind, why: &str| {
        stage.undeletable = Some(SubmitFailure {
            kind,
            message: why.to_owned(),
        });
        let events = stage.outcome().events.into_iter();
        let of_deletions = events.filter(|event| event.reason == "DeletionFailed");
        let told = of_deletions.map(|event| event.message).collect::<Vec<_>>();
        let pending = stage.condition("DeletionPending").unwrap();
        assert!(pending[2].contains(why), "{pending:?}");
        told
    };
    let (throttled, forbidden) = (SubmitFailureKind::Unavailable, SubmitFailureKind::Forbidden);
    assert!(told_when(throttled, "too many requests").is_empty());
    assert_eq!(
        told_when(forbidden, "not allowed"),
        ["Could not delete object [taskruns.tekton.dev/run-1]: not allowed"]
    );
    assert!(told_when(forbidden, "not allowed").is_empty());
}

/// Lists of conditions are compared by position.
const ALL: [&str; 3] = ["RunTemplateReady", "StampedObjectCondition", "Ready"];
const UNKNOWN: [&str; 3] = ["Unknown", "Unknown", ""];

#[test]
fn a_runnable_that_does_not_come_to_a_run_says_why() {
    let stage = Stage::new(json!({}));
    let runnable = Runnable::parse(Arc::new(stage.runnable.clone())).unwrap();
    let not_found = "unable to get run template [tests]: failed to get run template object from api server \
                     [ClusterRunTemplate/tests]: ";
    let cases = [
        (
            no_account("ServiceAccount \"default\" not found"),
            "ServiceAccountError",
            "failed to get service account object from api server [dev/default]: failed to get object [dev/default] \
             from api server: ServiceAccount \"default\" not found"
                .to_owned(),
            Retry::Slow,
        ),
        (
            NotRun::StampedTooDeep(0),
            "StampedTooDeep",
            "nothing is stamped, because this is owner 1 in a row that was stamped for the one before it, and 0 may follow \
             the first: Runnable/app; a template stamps what it is stamped for itself: mend it, and delete the first of them"
                .to_owned(),
            Retry::AwaitChange,
        ),
        (
            NotRun::TooLarge(5 * 1024, 4 * 1024),
            "OwnerTooLarge",
            "nothing is stamped, because the runnable has 5 KiB without its status, and 4 KiB are allowed; move data into an \
             object that it refers to"
                .to_owned(),
            Retry::AwaitChange,
        ),
        (
            NotRun::ServiceAccountToken("fetch token: no".to_owned()),
            "ServiceAccountTokenError",
            "fetch token: no".to_owned(),
            Retry::Slow,
        ),
        (
            NotRun::Unavailable("fetch token: no answer within 15 s".to_owned()),
            "APIServerUnavailable",
            "fetch token: no answer within 15 s".to_owned(),
            Retry::Backoff,
        ),
        (
            NotRun::TemplateMissing,
            "RunTemplateNotFound",
            format!("{not_found}ClusterRunTemplate.carto.run \"tests\" not found"),
            Retry::Backoff,
        ),
        (
            NotRun::TemplateUnreadable("no".to_owned()),
            "RunTemplateNotFound",
            format!("{not_found}no"),
            Retry::Backoff,
        ),
    ];
    for (why, reason, message, retry) in cases {
        let outcome = report_not_run(&runnable, why, stage.now);
        // Of the run nothing is said where there is nobody to ask for one.
        let failed = ["False", reason, &message];
        let expected = match reason {
            "RunTemplateNotFound" => vec![
                ("RunTemplateReady", failed),
                ("StampedObjectCondition", UNKNOWN),
                ("Ready", failed),
            ],
            _ => vec![("RunTemplateReady", failed), ("Ready", failed)],
        };
        assert_eq!(conditions(&outcome.status), expected);
        assert_eq!(outcome.retry, retry, "{reason}");
        assert_eq!(outcome.reason, reason);
        assert_eq!(outcome.events.len(), 1, "{reason}");
        assert_eq!(outcome.events[0].reason, "ResourceFailed");
    }
}

/// As of other owners (docs/behaviour/status.md#submitted).
#[test]
fn a_token_that_is_refused_is_no_fault_of_the_user() {
    let stage = Stage::new(json!({}));
    let runnable = Runnable::parse(Arc::new(stage.runnable.clone())).unwrap();
    let end = |why| report_not_run(&runnable, why, stage.now).end;
    let refused = NotRun::ServiceAccountToken("fetch token: forbidden".to_owned());
    assert_eq!(end(refused), Ended::Infrastructure);
    let missing = no_account("not found");
    assert_eq!(end(missing), Ended::UserError);
}

/// Which of the two stands last in the list, with its reason.
fn for_tools(status: &Value) -> Option<(&str, &str)> {
    let conditions = status["conditions"].as_array().unwrap();
    let found: Vec<_> = conditions
        .iter()
        .filter(|it| FOR_TOOLS.iter().any(|type_| it["type"] == *type_))
        .collect();
    assert!(found.len() < 2, "never both: {status}");
    let last = conditions.last().filter(|last| found.contains(last))?;
    Some((
        last["type"].as_str().unwrap(),
        last["reason"].as_str().unwrap(),
    ))
}

#[test]
fn tools_that_wait_see_whether_a_runnable_goes_on_by_itself() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    assert_eq!(
        for_tools(&stage.runnable["status"]),
        Some(("Reconciling", "Unknown"))
    );
    stage.end("run-1", "False", "no");
    stage.walk();
    assert_eq!(
        for_tools(&stage.runnable["status"]).map(|(type_, _)| type_),
        Some("Stalled")
    );
    stage.end("run-1", "True", "yes");
    stage.walk();
    assert_eq!(for_tools(&stage.runnable["status"]), None);

    let runnable = Runnable::parse(Arc::new(stage.runnable.clone())).unwrap();
    for (why, expected) in [
        (no_account("no"), "Stalled"),
        (NotRun::ServiceAccountToken("no".to_owned()), "Stalled"),
        (NotRun::TemplateMissing, "Reconciling"),
    ] {
        let outcome = report_not_run(&runnable, why, stage.now);
        let (type_, reason) = for_tools(&outcome.status).unwrap();
        assert_eq!((type_, reason), (expected, outcome.reason.as_str()));
    }
}

#[test]
fn a_selector_that_is_not_resolved_says_why() {
    let map = "map[app:x]";
    let list = |namespaced| SelectError::List {
        namespaced,
        labels: [("app".to_owned(), "x".to_owned())].into(),
        cause: "no".to_owned(),
    };
    let cases = [
        (
            SelectError::Discovery("no".to_owned()),
            "failed to list server api resources: no".to_owned(),
            Retry::Slow,
        ),
        (
            list(true),
            format!(
                "failed to list objects in namespace matching selector [{map}]: unable to list from api server: no"
            ),
            Retry::Slow,
        ),
        (
            list(false),
            format!(
                "failed to list objects at cluster scope matching selector [{map}]: unable to list from api server: no"
            ),
            Retry::Slow,
        ),
        (
            SelectError::None,
            "selector did not match any objects".to_owned(),
            Retry::AwaitChange,
        ),
        (
            SelectError::Many,
            "selector matched multiple objects".to_owned(),
            Retry::AwaitChange,
        ),
    ];
    for (error, inner, retry) in cases {
        let mut stage = Stage::new(json!({"selector": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchingLabels": {"app": "x"}}}));
        stage.selected = Err(error);
        let outcome = stage.outcome();
        let message = format!(
            "unable to resolve selector [{map}], apiVersion [v1], kind [ConfigMap]: {inner}"
        );
        assert_eq!(
            stage.condition("RunTemplateReady").unwrap(),
            ["False", "TemplateStampFailure", &message]
        );
        assert_eq!(types(&outcome.status), ALL);
        assert_eq!(stage.condition("StampedObjectCondition").unwrap(), UNKNOWN);
        assert_eq!(
            stage.condition("Ready"),
            stage.condition("RunTemplateReady")
        );
        assert_eq!(outcome.retry, retry);
    }
}

#[test]
fn a_run_that_cannot_be_submitted_says_why() {
    use SubmitFailureKind::{Forbidden, List, Rejected};
    let cases = [
        (
            Rejected,
            "StampedObjectRejectedByAPIServer",
            "unable to apply object [dev/run-] for run template [tests]: no",
            Retry::Backoff,
        ),
        (
            Forbidden,
            "StampedObjectRejectedByAPIServer",
            "unable to apply object [dev/run-] for run template [tests]: no",
            Retry::Slow,
        ),
        (
            List,
            "FailedToListCreatedObjects",
            "unable to list objects in namespace [dev] with labels [map[carto.run/runnable-name:app]]: no",
            Retry::Backoff,
        ),
    ];
    for (kind, reason, message, retry) in cases {
        let mut stage = Stage::new(json!({}));
        stage.fails = Some(SubmitFailure {
            kind,
            message: "no".to_owned(),
        });
        let outcome = stage.outcome();
        assert_eq!(
            stage.condition("RunTemplateReady").unwrap(),
            ["False", reason, message]
        );
        assert_eq!(types(&outcome.status), ALL);
        assert_eq!(stage.condition("StampedObjectCondition").unwrap(), UNKNOWN);
        assert_eq!(
            stage.condition("Ready"),
            stage.condition("RunTemplateReady")
        );
        assert_eq!(outcome.retry, retry);
        // Told once.
        assert_eq!(outcome.events.len(), 1);
        assert!(stage.outcome().events.is_empty());
    }
}

#[test]
fn the_condition_of_the_run_is_mirrored() {
    let cases = [
        (json!({}), ["Unknown", "Unknown", ""]),
        (
            json!({"conditions": [{"type": "Ready", "status": "True"}]}),
            ["Unknown", "Unknown", ""],
        ),
        (
            json!({"conditions": [{"type": "Succeeded", "status": "Unknown", "message": "going"}]}),
            ["Unknown", "SucceededCondition", "going"],
        ),
        (
            json!({"conditions": [{"type": "Succeeded", "status": "True", "message": "good"}]}),
            ["True", "SucceededCondition", "good"],
        ),
        (
            json!({"conditions": [{"type": "Succeeded", "status": "False", "message": "bad"}]}),
            ["False", "SucceededCondition", "bad"],
        ),
    ];
    for (status, expected) in cases {
        let mut stage = Stage::new(json!({}));
        stage.template["spec"]["outputs"] = json!({});
        stage.walk();
        stage.cluster.objects[0].object["status"] = status;
        let outcome = stage.outcome();
        assert_eq!(types(&outcome.status), ALL);
        assert_eq!(stage.condition("StampedObjectCondition").unwrap(), expected);
        let [status, reason, message] = stage.condition("Ready").unwrap();
        assert_eq!(status, expected[0]);
        let ready = if status == "True" {
            ["Ready", ""]
        } else {
            [expected[1], expected[2]]
        };
        assert_eq!([reason.as_str(), message.as_str()], ready);
    }
}

#[test]
fn jobs_and_workflows_end_by_the_rule_of_the_template() {
    let job = json!({"multiMatch": {
        "healthy": {"matchConditions": [{"type": "Complete", "status": "True"}]},
        "unhealthy": {"matchConditions": [{"type": "Failed", "status": "True"}]}}});
    let workflow = json!({"multiMatch": {
        "healthy": {"matchFields": [{"key": "status.phase", "operator": "In", "values": ["Succeeded"]}]},
        "unhealthy": {"matchFields": [{"key": "status.phase", "operator": "In", "values": ["Failed", "Error"]}]}}});
    let condition =
        |type_: &str| json!({"conditions": [{"type": type_, "status": "True", "message": "m"}]});
    let cases = [
        (&job, json!({}), "Unknown", "Running"),
        (&job, condition("Complete"), "True", "Succeeded"),
        (&job, condition("Failed"), "False", "Failed"),
        (&workflow, json!({"phase": "Running"}), "Unknown", "Running"),
        (
            &workflow,
            json!({"phase": "Succeeded"}),
            "True",
            "Succeeded",
        ),
        (&workflow, json!({"phase": "Error"}), "False", "Failed"),
    ];
    for (rule, status, ready, result) in cases {
        let mut stage = Stage::new(json!({}));
        stage.template["spec"]["outputs"] = json!({"name": ".metadata.name"});
        stage.template["spec"]["healthRule"] = rule.clone();
        stage.walk();
        stage.cluster.objects[0].object["status"] = status;
        stage.walk();
        assert_eq!(stage.condition("Ready").unwrap()[0], ready);
        assert_eq!(stage.runnable["status"]["runs"][0]["result"], result);
        let has_outputs = stage.runnable["status"].get("outputs").is_some();
        assert_eq!(has_outputs, ready == "True");
    }
}
