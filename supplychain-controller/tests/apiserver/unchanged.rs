//! An object that is there as rendered causes no request, whatever the API server made of it
//! (docs/behaviour/objects.md#unchanged, ADR 2).

use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{NOTHING, PATIENCE, Stage};

/// One step for each template, in a blueprint that selects `type: web`.
pub(crate) fn blueprint_of(templates: &[(&str, &str)]) -> String {
    let template = |(name, body): &(&str, &str)| {
        let body = body.trim_matches('\n').replace('\n', "\n    ");
        format!(
            "apiVersion: carto.run/v1alpha1\nkind: ClusterTemplate\nmetadata: {{name: {name}}}\nspec:\n  template:\n    {body}\n---\n"
        )
    };
    let step = |(name, _): &(&str, &str)| {
        format!("    - {{name: {name}, templateRef: {{kind: ClusterTemplate, name: {name}}}}}\n")
    };
    let texts: String = templates.iter().map(template).collect();
    let steps: String = templates.iter().map(step).collect();
    format!(
        "{texts}apiVersion: carto.run/v1alpha1\nkind: ClusterSupplyChain\nmetadata: {{name: chain}}\nspec:\n  selector: {{type: web}}\n  resources:\n{steps}"
    )
}

const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, annotations: {}}
spec:
  selector: {matchLabels: {app: x}}
  strategy: {}
  template:
    metadata: {labels: {app: x}}
    spec:
      nodeSelector: null
      containers:
        - name: main
          image: registry.example/app
          command: []
          args: [serve, --port, "80"]
          env: [{name: A, value: "1"}, {name: B, value: null}]
          ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}]
          resources: {limits: {cpu: 1000m}, requests: {}}
          livenessProbe: {httpGet: {path: /, port: 80}}
      volumes: [{name: tmp, emptyDir: {}}]
      tolerations: []
"#;

const OTHERS: [(&str, &str); 7] = [
    ("service", "
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: {app: x}, ports: [{name: web, port: 80}, {name: dns, port: 53, protocol: UDP}]}
"),
    ("config", "
apiVersion: v1
kind: ConfigMap
metadata: {name: app, labels: null}
data: {a: b}
binaryData: {}
"),
    ("secret", "
apiVersion: v1
kind: Secret
metadata: {name: app}
stringData: {password: x}
"),
    ("account", "
apiVersion: v1
kind: ServiceAccount
metadata: {name: stamped}
"),
    ("role", "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: stamped}
rules: []
"),
    ("open", "
apiVersion: test.run/v1alpha1
kind: Test
metadata: {name: open}
spec: {value: {empty: {}, none: [], nothing: null, deep: {nothing: null, list: [{a: null}, {}, []]}, n: 1.0}}
status: {made: up}
"),
    ("closed", "
apiVersion: test.run/v1alpha1
kind: Test
metadata: {name: closed}
spec: {value: {}, maybe: null}
"),
];

const RIGHTS: &str = "[{apiGroups: ['', apps, rbac.authorization.k8s.io], \
    resources: [services, secrets, serviceaccounts, deployments, roles], verbs: [get, list, create, patch, delete]}]";

async fn settle(stage: &Stage, templates: &[(&str, &str)]) {
    stage.grant("more", RIGHTS).await;
    stage.apply(&blueprint_of(templates)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
}

/// How often each stamped object was written: at most twice, the second time to note what the server did not take.
fn written_too_often(writes: &[String]) -> Vec<&String> {
    writes
        .iter()
        .filter(|write| {
            writes
                .iter()
                .filter(|other| other.split(' ').nth(1) == write.split(' ').nth(1))
                .count()
                > 2
        })
        .collect()
}

#[tokio::test]
async fn objects_of_all_shapes_settle_and_cause_no_request() {
    let mut stage = Stage::open().await;
    let mut templates = vec![("deployment", DEPLOYMENT)];
    templates.extend(OTHERS);
    settle(&stage, &templates).await;
    assert_eq!(stage.traffic_of_reconciles("app", 5).await, NOTHING);
    let writes = stage.writes();
    assert_eq!(written_too_often(&writes), [] as [&String; 0]);
    // What the server takes as it is, is written once, and what it does not is known for the next owner's.
    assert_eq!(patches_of(&stage, "configmaps/app"), 1, "{writes:?}");
    assert_eq!(patches_of(&stage, "tests/open"), 1, "{writes:?}");

    // Everything that was applied stands in the status now.
    stage.settle("app").await;
    let secret = stage.get("v1", "Secret", "app").await;
    let writes = stage.writes();
    stage.kill_controller();
    stage.start_controller();
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    // Of a Secret status says no digest, with which a guess could be tried: it is applied once to see that it is as it was.
    assert_eq!(stage.writes()[writes.len()..], ["patch secrets/app 200"]);
    assert_eq!(stage.get("v1", "Secret", "app").await, secret);

    let second = DEPLOYMENT.replace("name: app,", "name: $(workload.metadata.name)$-main,");
    stage.apply(&blueprint_of(&[("deployment", &second)])).await;
    // It was ready before: what counts is that the change has arrived.
    eventually("the objects are others", PATIENCE, async || {
        let main = stage.get("apps/v1", "Deployment", "app-main").await;
        main.is_some() && stage.get("v1", "ConfigMap", "app").await.is_none()
    })
    .await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    stage
        .apply(&crate::chain::WORKLOAD.replace("name: app", "name: later"))
        .await;
    stage.ready("later", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("later", 2).await, NOTHING);
    assert_eq!(
        patches_of(&stage, "deployments/later-main"),
        1,
        "what the server does not take is known by now"
    );
}

/// As long as the request is in the cluster, every ConfigMap gets another value and another key.
const POLICY: &str = r"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: meddle}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
      - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: >
          Object{data: {'a': 'changed', 'added': 'x'}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: meddle}
spec: {policyName: meddle}
";

#[tokio::test]
async fn an_object_that_admission_changes_settles() {
    let stage = Stage::open().await;
    stage.apply(POLICY).await;
    let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "probe-"}, "data": {"a": "b"}});
    eventually("the policy is in force", PATIENCE, async || {
        stage.create_as("probe", probe.clone()).await["data"]["a"] == "changed"
    })
    .await;
    settle(&stage, &[OTHERS[1]]).await;
    assert_eq!(stage.requests_of_reconciles("app", 5).await, NOTHING);
    let config = stage.get("v1", "ConfigMap", "app").await.unwrap();
    assert_eq!(config["data"], json!({"a": "changed", "added": "x"}));
    assert_eq!(written_too_often(&stage.writes()), [] as [&String; 0]);
}

fn patches_of(stage: &Stage, object: &str) -> usize {
    let writes = stage.writes();
    writes
        .iter()
        .filter(|write| write.starts_with(&format!("patch {object} ")))
        .count()
}

async fn scale(stage: &Stage, deployment: &str, replicas: u32) {
    let by = kube::api::PatchParams {
        field_manager: Some("autoscaler".into()),
        ..Default::default()
    };
    let patch = kube::api::Patch::Merge(json!({"spec": {"replicas": replicas}}));
    stage
        .api("apps/v1", "Deployment")
        .patch_scale(deployment, &by, &patch)
        .await
        .unwrap();
}

#[tokio::test]
async fn other_writers_of_an_object_leave_it_settled() {
    let stage = Stage::open().await;
    let fixed = DEPLOYMENT
        .replace("name: app,", "name: fixed,")
        .replace("  strategy: {}", "  strategy: {}\n  replicas: 1");
    settle(&stage, &[("deployment", DEPLOYMENT), ("fixed", &fixed)]).await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);

    // The rendering says nothing about replicas: they belong to the autoscaler.
    let before = patches_of(&stage, "deployments/app");
    scale(&stage, "app", 3).await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert_eq!(
        stage.get("apps/v1", "Deployment", "app").await.unwrap()["spec"]["replicas"],
        3
    );
    assert_eq!(patches_of(&stage, "deployments/app"), before);

    // Here it does, so the rendering wins, once.
    let before = patches_of(&stage, "deployments/fixed");
    scale(&stage, "fixed", 3).await;
    eventually("replicas are as rendered", PATIENCE, async || {
        stage.get("apps/v1", "Deployment", "fixed").await.unwrap()["spec"]["replicas"] == 1
    })
    .await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert_eq!(patches_of(&stage, "deployments/fixed"), before + 1);

    // Nobody can tell any more who owns what: it is applied again, and known from then on.
    let before = patches_of(&stage, "deployments/app");
    let cleared = json!({"metadata": {"managedFields": [{}]}});
    stage.edit("apps/v1", "Deployment", "app", cleared).await;
    eventually("the object is applied again", PATIENCE, async || {
        patches_of(&stage, "deployments/app") > before
    })
    .await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert!(patches_of(&stage, "deployments/app") <= before + 2);
    assert_eq!(
        stage.get("apps/v1", "Deployment", "app").await.unwrap()["spec"]["replicas"],
        3
    );
}

#[tokio::test]
async fn fields_that_the_kind_does_not_take_are_dropped_with_a_warning_that_names_them() {
    let stage = Stage::open().await;
    let wrong = DEPLOYMENT
        .replace("  strategy: {}", "  strategy: {}\n  replicaCount: 3")
        .replace("{name: B, value: null}", "{name: A, value: \"2\"}");
    let closed = "
apiVersion: test.run/v1alpha1
kind: Test
metadata: {name: pruned}
spec: {value: {a: b}, undeclared: {x: y}}
";
    settle(&stage, &[("deployment", &wrong), ("pruned", closed)]).await;
    let deployment = stage.get("apps/v1", "Deployment", "app").await.unwrap();
    let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(*env, json!([{"name": "A", "value": "2"}]));
    let pruned = stage
        .get("test.run/v1alpha1", "Test", "pruned")
        .await
        .unwrap();
    assert_eq!(pruned["spec"], json!({"value": {"a": "b"}}));
    let warnings = eventually("both are warned about", PATIENCE, async || {
        let mut warnings = stage.events().await;
        warnings.retain(|event| event.starts_with("Warning FieldsDropped"));
        (warnings.len() >= 2).then_some(warnings)
    })
    .await;
    for (object, field) in [
        ("deployments.apps", "replicaCount"),
        ("deployments.apps", "env"),
        ("tests.test.run", "undeclared"),
    ] {
        assert!(
            warnings
                .iter()
                .any(|event| event.contains(object) && event.contains(field)),
            "{field}: {warnings:?}"
        );
    }
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
}

/// A second version of the test kind, with the first one served or not.
fn versions(first_is_served: bool) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage, "subresources": {"status": {}}, "schema": schema});
    json!({"spec": {"versions": [version("v1alpha1", first_is_served, false), version("v1", true, true)]}})
}

/// How often the controller has asked what there is in the group of the test kind.
fn discoveries(stage: &Stage) -> usize {
    let requests = stage.plane.requests_by("carto-supplychain").unwrap();
    let of_group =
        |request: &test_support::AuditEvent| request.request_uri.starts_with("/apis/test.run/");
    let discoveries = requests
        .iter()
        .filter(|request| request.object_ref.is_none() && of_group(request));
    discoveries.count()
}

/// Changes the definition, and waits until the controller has noticed it.
async fn redefine(stage: &Stage, patch: Value) {
    let before = discoveries(stage);
    let definitions: kube::Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
        kube::Api::all(stage.client.clone());
    definitions
        .patch(
            "tests.test.run",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(patch),
        )
        .await
        .unwrap();
    eventually("the kind is discovered anew", PATIENCE, async || {
        stage.reconcile("app").await;
        discoveries(stage) > before
    })
    .await;
}

#[tokio::test]
async fn a_version_that_comes_and_one_that_goes_leave_the_object_settled() {
    let stage = Stage::open().await;
    settle(&stage, &[OTHERS[5]]).await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    let writes = stage.writes();
    let uid = stage.tests().await[0]["metadata"]["uid"].clone();

    redefine(&stage, versions(true)).await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert_eq!(stage.writes(), writes);

    // The same object in another version is the same object: it is neither deleted nor made anew.
    let moved = OTHERS[5].1.replace("v1alpha1", "v1");
    stage.apply(&blueprint_of(&[("open", &moved)])).await;
    stage
        .until("app", "the step names the new version", |workload| {
            crate::stage::step(workload, "open")["stampedRef"]["apiVersion"] == "test.run/v1"
        })
        .await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert_eq!(stage.tests().await[0]["metadata"]["uid"], uid);

    redefine(&stage, versions(false)).await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    let kept = stage.get("test.run/v1", "Test", "open").await.unwrap();
    assert_eq!(kept["metadata"]["uid"], uid);
}
