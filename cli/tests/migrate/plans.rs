//! What a plan says.

use serde_json::{Value, json};
use test_support::eventually;

use crate::installation::Installation;

const NONE: [Value; 0] = [];

#[tokio::test]
async fn a_plan_of_what_can_be_taken_over_as_it_is_is_clear_and_writes_nothing() {
    let installation = Installation::of(3).await;
    let before = installation.stage.all("v1", "ConfigMap").await;
    let (is_clear, plan) = installation.plan().await;
    assert!(is_clear, "{plan:#}");
    for none in [
        "runs",
        "changes",
        "removals",
        "refused",
        "held",
        "unjudged",
        "todo",
        "blockers",
        "unwatched",
        "packages",
    ] {
        assert_eq!(plan[none], json!(NONE), "{none}");
    }
    assert_eq!(plan["judgedOwners"], 3);
    assert_eq!(plan["ownRights"], false);
    assert_eq!(
        plan["old"],
        json!([{"namespace": "cartographer-system", "name": "cartographer-controller", "replicas": 2}])
    );
    assert_eq!(
        plan["webhooks"],
        json!([{"kind": "ValidatingWebhookConfiguration", "name": "cartographer-validating-webhook-configuration"}])
    );
    let workloads = json!({"kind": "Workload", "objects": 3});
    assert!(plan["objects"].as_array().unwrap().contains(&workloads));
    assert_eq!(installation.stage.all("v1", "ConfigMap").await, before);
    assert_eq!(installation.stage.tests().await.len(), 3);
    let (is_clear, said) = installation.run(&["plan"]).await;
    assert!(
        is_clear && said.contains("Nothing would run, change or be deleted"),
        "{said}"
    );
}

#[tokio::test]
async fn a_plan_names_what_would_run_change_go_and_wait_and_what_may_not_be_watched() {
    let installation = Installation::of(2).await;
    let stage = &installation.stage;
    // While no controller looked, a branch changed, and a template dropped a field.
    let branch = json!({"spec": {"source": {"git": {"ref": {"branch": "b"}}}}});
    stage.edit_owner("app-0", branch).await;
    let dropped = json!({"spec": {"template": {"data": {"dropped": null, "added": "1"}}}});
    installation.patch("ClusterTemplate", "sink", dropped).await;
    // What the Go controller could not delete, because its roles did not allow that.
    let owner = stage.owner("app-1").await;
    let orphan = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app-1-former"}, "data": {}});
    let template = ["ClusterTemplate", "sink", "mutable"];
    installation
        .create(&owner, "former", template, orphan)
        .await;
    stage
        .plane
        .apply_yaml("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: watched}, rules: []}")
        .await
        .unwrap();

    let (is_clear, plan) = installation.plan().await;
    assert!(!is_clear);
    let namespace = &stage.namespace;
    let run = &plan["runs"][0];
    assert_eq!(plan["runs"].as_array().unwrap().len(), 1, "{plan:#}");
    assert_eq!(run["owner"], json!(format!("Workload {namespace}/app-0")));
    assert_eq!(run["step"], "run");
    assert_eq!(run["newest"], "app-0-run-x7k2p");
    assert_eq!(run["fields"], json!(["spec.value.branch"]));
    let changes = plan["changes"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> = changes
        .iter()
        .map(|change| (&change["text"], &change["fields"]))
        .collect();
    let fields = json!(["data.added", "data.dropped"]);
    let sink = |app: &str| json!(format!("ConfigMap {namespace}/{app}-sink"));
    // What takes the output of a run that would start is not looked at before that has ended.
    assert_eq!(told, [(&sink("app-1"), &fields)]);
    assert_eq!(plan["held"], json!(NONE));
    let former = json!(format!(
        "ConfigMap {namespace}/app-1-former: no step stands for it any more"
    ));
    assert_eq!(plan["removals"][0]["text"], former);
    let unwatched: Vec<&Value> = plan["unwatched"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["resource"])
        .collect();
    assert_eq!(unwatched, ["configmaps", "tests"]);

    // The role that it prints grants what is missing.
    let role = plan["clusterRole"].to_string();
    stage.plane.apply_yaml(&role).await.unwrap();
    assert_eq!(installation.plan().await.1["unwatched"], json!(NONE));
    let (_, said) = installation.run(&["plan"]).await;
    for line in [
        "Runs that would start: 1",
        "app-0-run-x7k2p has other spec.value.branch",
        "Objects that would change: 1",
        "Blocked: 1 runs would start; 1 objects would be made or changed; 1 objects would be deleted",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[tokio::test]
async fn a_step_whose_declared_input_never_came_is_told_as_one_that_will_wait() {
    let installation = Installation::of(1).await;
    let stage = &installation.stage;
    // The Go controller stamps it although the second source has no output: its template does not read it.
    let template = json!({"spec": {"template": {"data": {"url": "constant"}}}});
    installation
        .patch("ClusterTemplate", "sink", template)
        .await;
    stage
        .edit(
            "v1",
            "ConfigMap",
            "app-0-sink",
            json!({"data": {"url": "constant"}}),
        )
        .await;
    stage
        .report("app-0-run-x7k2p", json!({"conditions": []}))
        .await;
    let (is_clear, plan) = installation.plan().await;
    assert!(!is_clear, "{plan:#}");
    assert_eq!(plan["held"].as_array().unwrap().len(), 1, "{plan:#}");
    assert_eq!(plan["held"][0]["step"], "publish");
    assert_eq!(
        plan["held"][0]["text"],
        "waiting for input(s) [code] of resource [publish]: not available from resource(s) [run]"
    );
    assert_eq!(plan["runs"], json!(NONE));
}

#[tokio::test]
async fn what_somebody_else_made_what_is_refused_and_what_is_not_rendered_is_told() {
    let installation = Installation::of(3).await;
    let stage = &installation.stage;
    // An object of the name that the step wants, with none of its marks.
    stage.delete("v1", "ConfigMap", "app-0-sink").await;
    let stranger = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "app-0-sink", "namespace": stage.namespace}});
    stage.create_as("somebody", stranger).await;
    // An owner whose account may not write what it has stamped.
    stage
        .apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: powerless}}")
        .await;
    stage
        .edit_owner(
            "app-1",
            json!({"spec": {"serviceAccountName": "powerless"}}),
        )
        .await;
    // A template for ytt.
    let ytt = "apiVersion: carto.run/v1alpha1\nkind: ClusterTemplate\nmetadata: {name: ytt}\nspec: {ytt: \"a: 1\"}\n";
    stage.apply(ytt).await;
    let resources = json!({"spec": {"resources": [
        {"name": "run", "templateRef": {"kind": "ClusterSourceTemplate", "name": "run"}},
        {"name": "publish", "templateRef": {"kind": "ClusterTemplate", "name": "sink"},
         "sources": [{"resource": "run", "name": "code"}]},
        {"name": "made", "templateRef": {"kind": "ClusterTemplate", "name": "ytt"}}]}});
    installation
        .patch("ClusterSupplyChain", "chain", resources)
        .await;

    let (is_clear, plan) = installation.plan().await;
    assert!(!is_clear);
    let refused: Vec<&str> = plan["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    assert_eq!(refused.len(), 2, "{plan:#}");
    assert!(
        refused[0].contains("was not made for this workload"),
        "{}",
        refused[0]
    );
    assert!(
        refused[1].contains("forbidden") && refused[1].contains("powerless"),
        "{}",
        refused[1]
    );
    let unjudged = plan["unjudged"].as_array().unwrap();
    assert_eq!(unjudged.len(), 3);
    assert!(unjudged[0]["text"].as_str().unwrap().contains("ytt"));
}

/// Nothing is told as held, or passed over in silence, that depends on a rendering which is not made here.
#[tokio::test]
async fn steps_behind_one_for_ytt_are_not_judged_and_the_plan_says_so_and_why() {
    let installation = Installation::of(1).await;
    let ytt = "apiVersion: carto.run/v1alpha1\nkind: ClusterConfigTemplate\nmetadata: {name: ytt}\nspec: {configPath: .data, ytt: \"a: 1\"}\n---\napiVersion: carto.run/v1alpha1\nkind: ClusterConfigTemplate\nmetadata: {name: between}\nspec: {configPath: .data, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: between}, data: $(config)$}}\n";
    installation.stage.apply(ytt).await;
    let resources = json!({"spec": {"resources": [
        {"name": "run", "templateRef": {"kind": "ClusterSourceTemplate", "name": "run"}},
        {"name": "publish", "templateRef": {"kind": "ClusterTemplate", "name": "sink"},
         "sources": [{"resource": "run", "name": "code"}], "configs": [{"resource": "next", "name": "next"}]},
        {"name": "next", "templateRef": {"kind": "ClusterConfigTemplate", "name": "between"},
         "configs": [{"resource": "made", "name": "made"}]},
        {"name": "made", "templateRef": {"kind": "ClusterConfigTemplate", "name": "ytt"}}]}});
    installation
        .patch("ClusterSupplyChain", "chain", resources)
        .await;
    let (is_clear, plan) = installation.plan().await;
    assert!(!is_clear);
    let mut told: Vec<(&str, &str)> = plan["unjudged"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["step"].as_str().unwrap(), it["text"].as_str().unwrap()))
        .collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            (
                "made",
                "its template is a program for ytt, and none is run on your machine"
            ),
            (
                "next",
                "it takes what step made hands on, which is not judged"
            ),
            (
                "publish",
                "it takes what step next hands on, which is not judged"
            ),
        ]
    );
    for none in ["held", "changes", "removals", "runs"] {
        assert_eq!(plan[none], json!(NONE), "{none}");
    }
    let (_, said) = installation.run(&["plan"]).await;
    assert!(
        said.contains("Templates for ytt are programs, which the controllers confine and this command does not run"),
        "{said}"
    );
}

#[tokio::test]
async fn old_definitions_package_managers_and_two_controllers_at_once_are_to_be_dealt_with_before()
{
    let installation = Installation::of(0).await;
    let stage = &installation.stage;
    let remove = json!([{"op": "remove",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/resources/items/properties/runs"}]);
    let definitions = test_support::all_objects(
        &stage.client,
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    );
    let patch: kube::api::Patch<()> =
        kube::api::Patch::Json(serde_json::from_value(remove).unwrap());
    definitions
        .patch(
            "workloads.carto.run",
            &kube::api::PatchParams::default(),
            &patch,
        )
        .await
        .unwrap();
    stage
        .apply(
            r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: packageinstalls.packaging.carvel.dev}
spec:
  group: packaging.carvel.dev
  names: {kind: PackageInstall, plural: packageinstalls, singular: packageinstall, listKind: PackageInstallList}
  scope: Namespaced
  versions: [{name: v1alpha1, served: true, storage: true,
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
",
        )
        .await;
    let install = r"
apiVersion: packaging.carvel.dev/v1alpha1
kind: PackageInstall
metadata: {name: cartographer}
spec: {packageRef: {refName: cartographer.tanzu.vmware.com}}
";
    eventually(
        "the kind is served",
        test_support::stage::PATIENCE,
        async || {
            stage
                .plane
                .apply_yaml_in(&stage.namespace, install)
                .await
                .map(|_| Some(()))
        },
    )
    .await;
    let up = kube::api::Patch::Merge(json!({"spec": {"replicas": 1}}));
    let ours = installation.deployments("carto-system");
    ours.patch(
        "supplychain-controller",
        &kube::api::PatchParams::default(),
        &up,
    )
    .await
    .unwrap();
    let (is_clear, plan) = installation.plan().await;
    assert!(!is_clear);
    let todo: Vec<&str> = plan["todo"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    assert_eq!(todo.len(), 3, "{todo:#?}");
    assert!(
        todo[0].contains("patch packageinstall cartographer --type=merge"),
        "{}",
        todo[0]
    );
    assert!(
        todo[1].contains("workloads.carto.run lacks status.resources[].runs"),
        "{}",
        todo[1]
    );
    assert!(todo[2].contains("run at the same time"), "{}", todo[2]);
    let file = installation.state_file();
    let apply = [
        "apply",
        "--state",
        file.to_str().unwrap(),
        "--accept-changes",
    ];
    let (succeeded, said) = installation.run(&apply).await;
    assert!(
        !succeeded && said.contains("nothing was changed; to do before"),
        "{said}"
    );
    assert_eq!(
        installation
            .replicas("cartographer-system", "cartographer-controller")
            .await,
        2
    );
    assert!(!file.exists());
}
