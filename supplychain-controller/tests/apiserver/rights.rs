//! With whose rights, and what happens when they are missing, granted, revoked.

use serde_json::json;
use test_support::eventually;

use crate::stage::{NOTHING, PATIENCE, Stage, condition, condition_types};
use crate::unchanged::blueprint_of;

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: $(workload.metadata.name)$}
spec: {ports: [{port: 80}], selector: {url: $(workload.spec.source.git.ref.branch)$}}
";

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$}
data: {branch: $(workload.spec.source.git.ref.branch)$}
";

fn refusal(stage: &Stage, verb: &str) -> String {
    let namespace = &stage.namespace;
    format!(
        "unable to apply object [{namespace}/app] for resource [service] in supply chain [chain]: {verb}: services \"app\" is \
         forbidden: User \"system:serviceaccount:{namespace}:sa\" cannot patch resource \"services\" in API group \"\" in the \
         namespace \"{namespace}\""
    )
}

async fn refused(stage: &Stage, verb: &str) {
    let message = refusal(stage, verb);
    stage
        .until("app", "the refusal is reported", |workload| {
            let ready = condition(&workload["status"], "Ready");
            ready["reason"] == "TemplateRejectedByAPIServer" && ready["message"] == message
        })
        .await;
}

/// Waits until the service is as the workload says.
async fn service_is(stage: &Stage, branch: &str) {
    eventually(
        &format!("the service is of {branch}"),
        PATIENCE,
        async || {
            let service = stage.get("v1", "Service", "app").await?;
            (service["spec"]["selector"]["url"] == branch).then_some(())
        },
    )
    .await;
}

const ALL: &str = "[get, list, create, patch, delete]";

/// Replaces the rules of the Role that the stage made, and waits until they are in force: a write that is sent before may
/// be let pass.
async fn allow(stage: &Stage, resources: &str) {
    let namespace = &stage.namespace;
    stage
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: stamps, namespace: {namespace}}}\n\
             rules: [{{apiGroups: [''], resources: {resources}, verbs: {ALL}}}]\n"
        ))
        .await;
    let allowed = resources.contains("services");
    stage.until_may("patch", "", "services", allowed).await;
}

#[tokio::test]
async fn a_missing_right_is_named_and_granting_it_helps_at_once() {
    let stage = Stage::open().await;
    stage.apply(&blueprint_of(&[("service", SERVICE)])).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    refused(&stage, "create").await;
    // A rule in a Role that exists: the Go controller never noticed (issue #394).
    for (round, branch) in ["a", "b", "c", "d"].into_iter().enumerate() {
        if round > 0 {
            // Revoked: what is there stays, and shows at the next write.
            allow(&stage, "[configmaps]").await;
            stage
                .edit_workload("app", crate::immutable::branch(branch))
                .await;
            refused(&stage, "patch").await;
        }
        let before = stage.place_in_the_log();
        allow(&stage, "[configmaps, services]").await;
        service_is(&stage, branch).await;
        stage.ready("app", "True", "Ready").await;
        // By the event, not by the slow retry.
        stage.was_woken_since(before, "app").await;
    }
    // A binding to a role of the cluster.
    allow(&stage, "[configmaps]").await;
    stage
        .edit_workload("app", crate::immutable::branch("e"))
        .await;
    refused(&stage, "patch").await;
    let namespace = &stage.namespace;
    let before = stage.place_in_the_log();
    stage
        .apply(&format!(
            r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: services}}
rules: [{{apiGroups: [''], resources: [services], verbs: {ALL}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: services}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: services}}
subjects: [{{kind: ServiceAccount, name: sa, namespace: {namespace}}}]
"
        ))
        .await;
    service_is(&stage, "e").await;
    stage.was_woken_since(before, "app").await;

    // All of this was done with the owner's rights, the deletion of the object included.
    stage
        .edit_workload("app", json!({"metadata": {"labels": {"type": "other"}}}))
        .await;
    stage.ready("app", "False", "SupplyChainNotFound").await;
    stage
        .edit_workload("app", json!({"metadata": {"labels": {"type": "web"}}}))
        .await;
    stage
        .apply(&blueprint_of(&[(
            "moved",
            &SERVICE.replace("name: $(", "name: moved-$("),
        )]))
        .await;
    eventually("the old object is deleted", PATIENCE, async || {
        stage.get("v1", "Service", "app").await.is_none()
    })
    .await;
    // The object goes before the server has answered, and it audits what it has answered.
    stage.idle().await;
    let owner = format!("system:serviceaccount:{namespace}:sa");
    let services: Vec<_> = stage
        .audited()
        .into_iter()
        .filter(|event| {
            event
                .object_ref
                .as_ref()
                .is_some_and(|object| object.resource == "services")
        })
        .collect();
    assert!(services.iter().any(|event| event.verb == "delete"));
    assert!(
        services.iter().all(|event| event.user.username == owner),
        "{services:?}"
    );
}

async fn account(stage: &Stage, name: &str) {
    stage
        .apply(&format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n"
        ))
        .await;
}

/// Gives another account the rights of a Role.
async fn bind(stage: &Stage, role: &str, account: &str) {
    let namespace = &stage.namespace;
    stage
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: of-{account}, namespace: {namespace}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {role}}}\n\
             subjects: [{{kind: ServiceAccount, name: {account}, namespace: {namespace}}}]\n"
        ))
        .await;
}

#[tokio::test]
async fn an_account_that_comes_late_or_anew_is_used() {
    let stage = Stage::open().await;
    let namespace = stage.namespace.clone();
    stage.apply(&blueprint_of(&[("service", SERVICE)])).await;
    let rules = format!("[{{apiGroups: [''], resources: [services], verbs: {ALL}}}]");
    stage.grant("late", &rules).await;
    bind(&stage, "late", "late").await;
    stage
        .apply(
            &crate::immutable::WORKLOAD
                .replace("serviceAccountName: sa", "serviceAccountName: late"),
        )
        .await;
    let missing = stage.ready("app", "False", "ServiceAccountError").await;
    assert_eq!(
        condition(&missing["status"], "ResourcesSubmitted")["message"],
        format!(
            "failed to get service account object from api server [{namespace}/late]: failed to get object \
             [{namespace}/late] from api server: ServiceAccount \"late\" not found"
        )
    );
    let before = stage.place_in_the_log();
    account(&stage, "late").await;
    service_is(&stage, "a").await;
    stage.was_woken_since(before, "app").await;
    stage.ready("app", "True", "Ready").await;

    // Its token dies with it, which is told before there is anything to write. The namesake is another account.
    stage.delete("v1", "ServiceAccount", "late").await;
    stage.ready("app", "False", "ServiceAccountError").await;
    stage
        .edit_workload("app", crate::immutable::branch("b"))
        .await;
    let before = stage.place_in_the_log();
    account(&stage, "late").await;
    service_is(&stage, "b").await;
    stage.was_woken_since(before, "app").await;
    stage.ready("app", "True", "Ready").await;

    // So fast that nobody saw it missing.
    stage.delete("v1", "ServiceAccount", "late").await;
    account(&stage, "late").await;
    stage
        .edit_workload("app", crate::immutable::branch("c"))
        .await;
    service_is(&stage, "c").await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    let tokens: Vec<_> = stage
        .requests()
        .into_iter()
        .filter(|request| request.contains("/token"))
        .collect();
    // Before an owner is told to lack something, it is asked whether its namespace goes.
    let (asks, tokens): (Vec<_>, Vec<_>) = tokens
        .into_iter()
        .partition(|request| request.contains("dryRun=All"));
    assert!(tokens.len() <= 5, "{tokens:?}");
    assert!(asks.len() <= 3, "{asks:?}");
}

pub(crate) const STATUSES: &str = "[workloads/status, clustersupplychains/status]";

/// The right to watch what the templates stamp.
const WATCHING: &str =
    "[{apiGroups: ['', test.run], resources: [configmaps, tests], verbs: [list, watch]}]";

#[tokio::test]
async fn a_kind_that_the_controller_may_not_watch_is_read_with_the_owners_rights() {
    let mut stage = Stage::set().await;
    stage.grant_user_the_least(STATUSES).await;
    stage.apply(crate::chain::CHAIN).await;
    stage
        .apply(
            &crate::immutable::RUNS
                .replace("name: runs", "name: runs2")
                .replace("type: web", "type: run"),
        )
        .await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.start_controller_as_user();
    let ready = stage.ready("app", "True", "Ready").await;
    let forbidden = condition(&ready["status"], "WatchForbidden");
    let message = forbidden["message"].as_str().unwrap();
    for part in ["configmaps", "tests.test.run", "list", "watch", "\"carto\""] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(
        condition_types(&ready["status"]),
        [
            "SupplyChainReady",
            "ResourcesSubmitted",
            "ResourcesHealthy",
            "Ready",
            "WatchForbidden"
        ]
    );

    // Reads, but no writes, and those with the owner's token; as soon as it has settled.
    let owner = format!("system:serviceaccount:{}:sa", stage.namespace);
    eventually("a reconcile only reads", PATIENCE, async || {
        let requests = stage.audited().len();
        stage.reconcile("app").await;
        let reads = stage.audited().split_off(requests);
        let by_owner =
            |read: &test_support::AuditEvent| read.verb == "get" && read.user.username == owner;
        if !reads.is_empty() && reads.iter().all(by_owner) {
            Ok(())
        } else {
            Err(reads)
        }
    })
    .await;

    // What somebody edits is reverted when it is read next.
    stage
        .edit(
            "v1",
            "ConfigMap",
            "app-sink",
            json!({"data": {"url": "edited"}}),
        )
        .await;
    stage.reconcile("app").await;
    let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
    assert_eq!(sink["data"]["url"], "https://git.example/app");
    // And it is read every 30 s: nothing here wakes the controller.
    let edited = json!({"data": {"url": "edited again"}});
    stage.edit("v1", "ConfigMap", "app-sink", edited).await;
    eventually("the slow read has found it", PATIENCE, async || {
        let sink = stage.get("v1", "ConfigMap", "app-sink").await?;
        (sink["data"]["url"] == "https://git.example/app").then_some(())
    })
    .await;

    // Immutable objects are found again, too.
    stage
        .apply(
            &crate::immutable::WORKLOAD
                .replace("name: app", "name: runner")
                .replace("type: web", "type: run"),
        )
        .await;
    stage.ready("runner", "Unknown", "MissingValueAtPath").await;
    stage.reconcile("runner").await;
    let (before, requests) = (reconciles(&stage).await, stage.requests().len());
    stage.reconcile("runner").await;
    let lists = stage
        .audited()
        .split_off(requests)
        .into_iter()
        .filter(|read| read.verb == "list" && read.user.username == owner)
        .count();
    assert!(lists > 0, "its family is listed with the owner's token");
    stage.idle().await;
    let reconciled = reconciles(&stage).await - before;
    assert!(
        reconciled > f64::from(u32::try_from(lists).unwrap()) - 0.5,
        "{lists} lists in {reconciled} reconciles"
    );
    let runs = stage
        .tests()
        .await
        .iter()
        .filter(|test| test["metadata"]["annotations"]["carto.run/submission"] == "1")
        .count();
    assert_eq!(runs, 1);
    stage
        .delete("carto.run/v1alpha1", "Workload", "runner")
        .await;

    // Granted: watched from then on, so that nothing is read any more.
    stage.grant_user("watched", WATCHING).await;
    stage
        .until("app", "nothing is forbidden any more", |workload| {
            condition(&workload["status"], "WatchForbidden").is_null()
        })
        .await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
}

/// How often any workload was reconciled.
async fn reconciles(stage: &Stage) -> f64 {
    let of_kind = ["kind=\"Workload\""];
    stage
        .metric("carto_reconcile_total", &of_kind)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_watch_that_is_revoked_under_way_is_missed_and_comes_back() {
    let mut stage = Stage::set().await;
    stage.grant_user_the_least(STATUSES).await;
    stage.grant_user("watched", WATCHING).await;
    stage.apply(crate::immutable::RUNS).await;
    let names = ["app", "other"];
    for name in names {
        stage
            .apply(&crate::immutable::WORKLOAD.replace("name: app", &format!("name: {name}")))
            .await;
    }
    stage.start_controller_as_user();
    for name in names {
        finish_run(&stage, name, "before").await;
        let ready = stage.ready(name, "True", "Ready").await;
        assert!(condition(&ready["status"], "WatchForbidden").is_null());
    }

    // A watch is only refused when it starts anew. Nothing else happens to the workloads.
    stage.revoke_from_user("watched").await;
    stage.plane.restart_apiserver().await.unwrap();
    for name in names {
        stage
            .until(name, "it says that its kinds are not watched", |workload| {
                let forbidden = condition(&workload["status"], "WatchForbidden");
                let message = forbidden["message"].as_str().unwrap_or_default();
                message.contains("tests.test.run") && message.contains("configmaps")
            })
            .await;
    }

    stage.grant_user("watched", WATCHING).await;
    for name in names {
        stage
            .until(name, "nothing is forbidden any more", |workload| {
                condition(&workload["status"], "WatchForbidden").is_null()
            })
            .await;
    }
    // Who says so reads no more: only the watch brings this.
    for name in names {
        finish_run(&stage, name, "after").await;
    }
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

/// Reports on the workload's run, and waits until the next step has the output.
async fn finish_run(stage: &Stage, workload: &str, url: &str) {
    let run = eventually("the run is there", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.into_iter()
            .find(|run| run["metadata"]["labels"]["carto.run/workload-name"] == workload)
    })
    .await;
    let done = json!({"url": url, "rev": "1", "conditions": [{"type": "Ready", "status": "True"}]});
    stage
        .report(run["metadata"]["name"].as_str().unwrap(), done)
        .await;
    eventually(&format!("{workload} has {url}"), PATIENCE, async || {
        let sink = stage
            .get("v1", "ConfigMap", &format!("{workload}-sink"))
            .await?;
        (sink["data"]["url"] == url).then_some(())
    })
    .await;
}

/// Requests for a token so far, and how many requests were refused with 401.
fn token_requests(stage: &Stage) -> (usize, usize) {
    let (mut tokens, mut refused) = (0, 0);
    for event in stage.audited() {
        let subresource = event.object_ref.map(|object| object.subresource);
        tokens += usize::from(subresource.as_deref() == Some("token"));
        refused += usize::from(
            event
                .response_status
                .is_some_and(|status| status.code == 401),
        );
    }
    (tokens, refused)
}

#[tokio::test]
async fn tokens_that_are_refused_are_fetched_anew_once_per_account() {
    const OWNERS: usize = 10;
    let stage = Stage::open().await;
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    account(&stage, "second").await;
    bind(&stage, "stamps", "second").await;
    let name = |number: usize| format!("app{number}");
    for number in 0..OWNERS {
        let account = ["sa", "second"][number % 2];
        stage
            .apply(
                &crate::immutable::WORKLOAD
                    .replace("name: app", &format!("name: {}", name(number)))
                    .replace(
                        "serviceAccountName: sa",
                        &format!("serviceAccountName: {account}"),
                    ),
            )
            .await;
    }
    for number in 0..OWNERS {
        stage.ready(&name(number), "True", "Ready").await;
    }
    stage.idle().await;
    assert_eq!(token_requests(&stage), (2, 0));

    stage.plane.refuse_issued_tokens().await.unwrap();
    for number in 0..OWNERS {
        stage
            .edit_workload(&name(number), crate::immutable::branch("b"))
            .await;
    }
    for number in 0..OWNERS {
        eventually("the change arrives", PATIENCE, async || {
            let config = stage.get("v1", "ConfigMap", &name(number)).await?;
            (config["data"]["branch"] == "b").then_some(())
        })
        .await;
        stage.ready(&name(number), "True", "Ready").await;
    }
    stage.idle().await;
    let (tokens, refused) = token_requests(&stage);
    assert_eq!(tokens, 4, "one more for each account");
    assert!(refused >= 2, "both were refused: {refused}");
    let mut told = stage.events().await;
    told.retain(|event| event.contains("token") || event.contains("nauthorized"));
    assert_eq!(told, NOTHING);
}
