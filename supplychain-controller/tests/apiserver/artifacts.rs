//! Outputs that are kept as Artifacts, on a real API server: those that are too large for status, and those of the past.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use test_support::eventually;

use crate::attribution::{CHAIN, TESTS, deployed, says, submitted, told};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};

const API: &str = "carto.run/v1alpha1";

/// More than status keeps.
fn large(revision: &str) -> String {
    format!("image@{revision}-{}", "x".repeat(20 * 1024))
}

async fn artifacts(stage: &Stage) -> Vec<Value> {
    stage.all(API, "Artifact").await
}

fn name(artifact: &Value) -> &str {
    artifact["metadata"]["name"].as_str().unwrap()
}

/// What the controller has asked about Artifacts, but for its watch.
fn asked(stage: &Stage) -> Vec<String> {
    let requests = stage.requests().into_iter();
    requests
        .filter(|request| request.contains("/artifacts"))
        .collect()
}

async fn push(stage: &Stage, revision: &str) {
    stage
        .edit_workload("app", json!({"spec": {"image": revision}}))
        .await;
    submitted(stage, revision).await;
}

/// A large output is deployed.
async fn built() -> Stage {
    let stage = Stage::open().await;
    stage.apply(CHAIN).await;
    submitted(&stage, "1").await;
    says(&stage, "True", Some(&large("1"))).await;
    deployed(&stage, &large("1")).await;
    told(&stage, "Good").await;
    stage.settle("app").await;
    stage
}

/// The next revision is built, so that what is kept is needed.
async fn building() -> Stage {
    let stage = built().await;
    push(&stage, "2").await;
    told(&stage, "Reconciling").await;
    stage.settle("app").await;
    stage
}

#[tokio::test]
async fn a_large_output_outlives_its_object_and_the_process_and_costs_one_write() {
    let mut stage = building().await;
    let kept = artifacts(&stage).await;
    assert_eq!(kept.len(), 1);
    let owner = stage.workload("app").await;
    assert_eq!(
        step(&owner, "build")["artifacts"][0]["name"],
        name(&kept[0])
    );
    assert_eq!(
        kept[0]["metadata"]["ownerReferences"][0]["uid"],
        owner["metadata"]["uid"]
    );
    let writes = asked(&stage);
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert!(writes[0].starts_with("create "), "{writes:?}");
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);

    says(&stage, "False", None).await;
    told(&stage, "Failed").await;
    stage.kill_controller();
    stage.delete("v1", "ConfigMap", "app-deployed").await;
    stage.start_controller();
    deployed(&stage, &large("1")).await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    let (read, written): (Vec<String>, Vec<String>) = asked(&stage)
        .into_iter()
        .partition(|request| request.starts_with("get "));
    assert_eq!(written, writes, "after a restart nothing is written");
    assert_eq!(read.len(), 1, "what is needed is read once: {read:?}");
    assert_eq!(artifacts(&stage).await, kept);
}

#[tokio::test]
async fn an_artifact_is_gone_once_the_status_names_another_one() {
    let stage = building().await;
    let first = artifacts(&stage).await.remove(0);
    says(&stage, "True", Some(&large("2"))).await;
    deployed(&stage, &large("2")).await;
    let only = eventually(
        "the former one is deleted",
        PATIENCE,
        async || match &artifacts(&stage).await[..] {
            [only] if name(only) != name(&first) => Ok(Some(only.clone())),
            other => Err(other
                .iter()
                .map(|it| name(it).to_owned())
                .collect::<Vec<_>>()),
        },
    )
    .await;
    assert_eq!(only["spec"]["outputs"][0]["value"], large("2"));
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    let asked = asked(&stage);
    let verbs: Vec<&str> = asked.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(verbs, ["create", "create", "delete"]);
}

#[tokio::test]
async fn an_artifact_that_somebody_deletes_or_swaps_is_put_back_while_it_is_good() {
    let stage = built().await;
    let kept = artifacts(&stage).await.remove(0);
    stage.delete(API, "Artifact", name(&kept)).await;
    let is_back = async |what: &str| {
        eventually(what, PATIENCE, async || {
            let found = stage.get(API, "Artifact", name(&kept)).await?;
            (found["spec"] == kept["spec"]).then_some(())
        })
        .await;
    };
    is_back("what was deleted is put back").await;
    let evil = json!({"spec": {"outputs": [{"name": "image", "value": large("evil")}]}});
    stage.edit(API, "Artifact", name(&kept), evil).await;
    is_back("what was edited is put back").await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
}

/// Not even a cluster administrator hands something on in this way.
#[tokio::test]
async fn a_forged_artifact_is_not_handed_on() {
    let mut stage = building().await;
    let kept = artifacts(&stage).await.remove(0);
    stage.kill_controller();
    let evil = json!({"spec": {"outputs": [{"name": "image", "value": large("evil")}]}});
    stage.edit(API, "Artifact", name(&kept), evil).await;
    stage.delete("v1", "ConfigMap", "app-deployed").await;
    stage.start_controller();
    let what = format!(
        "kept in Artifact [{}], which does not hold what was good",
        name(&kept)
    );
    stage
        .until("app", "the step waits, and says for what", |owner| {
            let good = condition(&step(owner, "build"), "OutputsGood");
            good["message"]
                .as_str()
                .is_some_and(|message| message.contains(&what))
        })
        .await;
    stage.settle("app").await;
    assert_eq!(stage.get("v1", "ConfigMap", "app-deployed").await, None);
    says(&stage, "True", Some(&large("2"))).await;
    deployed(&stage, &large("2")).await;
}

#[tokio::test]
async fn the_newest_outputs_are_kept_however_many_come_and_go_with_the_wish() {
    let stage = Stage::open().await;
    let retained = CHAIN.replace(
        "spec:\n  selector:",
        "spec:\n  artifacts: {retain: 3}\n  selector:",
    );
    let more = retained.replace("retain: 3", "retain: 21");
    let refused = stage.plane.apply_yaml_in(&stage.namespace, &more).await;
    let refused = format!("{:?}", refused.unwrap_err());
    assert!(refused.contains("less than or equal to 20"), "{refused}");
    stage.apply(&retained).await;
    for revision in 1..=12 {
        let revision = revision.to_string();
        push(&stage, &revision).await;
        says(&stage, "True", Some(&format!("image@{revision}"))).await;
        deployed(&stage, &format!("image@{revision}")).await;
    }
    let three_each = eventually("three of each step are left", PATIENCE, async || {
        let kept = artifacts(&stage).await;
        let of = |step: &str| kept.iter().filter(|it| it["spec"]["step"] == step).count();
        // What is deployed is kept a moment later.
        let newest = json!("image@12");
        let is_newest = |it: &Value| it["spec"]["outputs"][0]["value"] == newest;
        let has_newest = kept.iter().any(is_newest);
        if has_newest && (of("fetch"), of("build"), kept.len()) == (3, 3, 6) {
            Ok(Some(kept))
        } else {
            Err(kept.len())
        }
    })
    .await;
    let values: Vec<&Value> = three_each
        .iter()
        .map(|it| &it["spec"]["outputs"][0]["value"])
        .collect();
    for revision in 10..=12 {
        assert!(
            values.contains(&&json!(format!("image@{revision}"))),
            "{values:?}"
        );
    }
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);

    let mut chain = CHAIN.split("---");
    let chain = chain.find(|it| it.contains("kind: ClusterSupplyChain\n"));
    stage.apply(chain.unwrap()).await;
    eventually("none is left", PATIENCE, async || {
        let kept = artifacts(&stage).await.len();
        if kept == 0 { Ok(()) } else { Err(kept) }
    })
    .await;
    let owner = stage.workload("app").await;
    assert_eq!(step(&owner, "build")["artifacts"], Value::Null);
}

#[tokio::test]
async fn where_nothing_is_kept_nothing_is_asked() {
    let stage = Stage::open().await;
    stage.apply(CHAIN).await;
    submitted(&stage, "1").await;
    says(&stage, "True", Some("image@1")).await;
    deployed(&stage, "image@1").await;
    stage.settle("app").await;
    let traffic = stage.plane.requests_by("carto-supplychain").unwrap();
    let of_artifacts = traffic.iter().filter(|event| {
        event
            .object_ref
            .as_ref()
            .is_some_and(|object| object.resource == "artifacts")
    });
    assert_eq!(of_artifacts.count(), 0);
}

#[tokio::test]
async fn without_the_kind_all_else_goes_on_and_the_step_says_what_to_install() {
    let mut stage = Stage::set().await;
    let definitions = Api::<CustomResourceDefinition>::all(stage.client.clone());
    let (name, at_once) = ("artifacts.carto.run", DeleteParams::default());
    definitions.delete(name, &at_once).await.unwrap();
    eventually("the kind is gone", PATIENCE, async || {
        let definition = definitions.get_opt(name).await.unwrap();
        definition.is_none().then_some(())
    })
    .await;
    stage.start_controller();
    stage.apply(CHAIN).await;
    submitted(&stage, "1").await;
    says(&stage, "True", Some(&large("1"))).await;
    deployed(&stage, &large("1")).await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    push(&stage, "2").await;
    stage
        .until("app", "the step says what to install", |owner| {
            let good = condition(&step(owner, "build"), "OutputsGood");
            let message = good["message"].as_str().unwrap_or_default();
            message.contains("no Artifact keeps them: kind Artifact is not installed")
        })
        .await;
    let definition = include_str!("../../../deploy/crds/carto.run_artifacts.yaml");
    stage.apply(definition).await;
    says(&stage, "True", Some(&large("2"))).await;
    deployed(&stage, &large("2")).await;
    eventually("it is kept from now on", PATIENCE, async || {
        let kept = artifacts(&stage).await.len();
        if kept == 1 { Ok(()) } else { Err(kept) }
    })
    .await;
}

/// With the role and the policy that are shipped.
#[tokio::test]
async fn a_tenant_can_read_artifacts_and_write_none() {
    let mut stage = Stage::set().await;
    stage.grant_user_the_least(crate::rights::STATUSES).await;
    stage
        .grant_user(
            "artifacts",
            "[{apiGroups: [carto.run], resources: [artifacts], verbs: [create, get, delete, list, watch]}, \
             {apiGroups: [''], resources: [configmaps], verbs: [list, watch]}, \
             {apiGroups: [test.run], resources: [tests], verbs: [list, watch]}]",
        )
        .await;
    stage.start_controller_as_user();
    stage.apply(CHAIN).await;
    submitted(&stage, "1").await;
    says(&stage, "True", Some(&large("1"))).await;
    deployed(&stage, &large("1")).await;
    told(&stage, "Good").await;
    let kept = artifacts(&stage).await.remove(0);

    let tenant = stage.tenant().await;
    let mut forged = kept.clone();
    for field in [
        "resourceVersion",
        "uid",
        "managedFields",
        "creationTimestamp",
        "generation",
    ] {
        forged["metadata"].as_object_mut().unwrap().remove(field);
    }
    forged["metadata"]["name"] = json!("forged");
    let evil = json!({"spec": {"step": "evil"}});
    let refused = tenant.create(forged.clone()).await.unwrap_err().to_string();
    assert!(
        refused.contains("cannot create resource \"artifacts\""),
        "{refused}"
    );
    let refused = tenant
        .patch(API, "Artifact", name(&kept), evil.clone())
        .await;
    assert!(refused.is_err(), "{refused:?}");

    // The policy refuses whoever has the right: here the administrator.
    let policy = include_str!("../../../deploy/policies/artifact.yaml");
    let policy = policy.replace(
        "system:serviceaccount:carto-system:supplychain-controller",
        "carto",
    );
    stage.apply(&policy).await;
    let dynamic = stage.api(API, "Artifact");
    let object: DynamicObject = serde_json::from_value(forged).unwrap();
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    eventually("the policy is in force", PATIENCE, async || {
        match dynamic.create(&dry_run, &object).await {
            Err(error)
                if error
                    .to_string()
                    .contains("written by the controllers alone") =>
            {
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let merge = Patch::Merge(&evil);
    let refused = dynamic
        .patch(name(&kept), &PatchParams::default(), &merge)
        .await;
    assert!(refused.is_err(), "{refused:?}");
    let refused = dynamic.delete(name(&kept), &DeleteParams::default()).await;
    assert!(refused.is_err(), "{refused:?}");

    // The controller goes on.
    push(&stage, "2").await;
    says(&stage, "True", Some(&large("2"))).await;
    deployed(&stage, &large("2")).await;
    eventually(
        "the next one is kept, and the former one gone",
        PATIENCE,
        async || match &artifacts(&stage).await[..] {
            [only] if name(only) != name(&kept) => Ok(()),
            other => Err(other.len()),
        },
    )
    .await;
    let build = stage.get(TESTS, "Test", "app-build").await;
    assert!(build.is_some());
}
