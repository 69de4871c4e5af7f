//! The charts, as an API server takes them: by dry run, and by a real `helm upgrade --install`.
//!
//! cert-manager and Prometheus' operator are not here: what is for them is left out.

use anyhow::Context as _;
use e2e::Helm;
use e2e::binaries::workspace;
use e2e::helm::{cases, chart, charts};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, oneshot};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use test_support::{ControlPlane, documents, objects_in, shared_control_plane};

const FOREIGN: [&str; 5] = [
    "Certificate",
    "Issuer",
    "PodMonitor",
    "PrometheusRule",
    "ServiceMonitor",
];
/// Without them no Pod is admitted.
const BEFORE_PODS: [&str; 2] = ["ServiceAccount", "PriorityClass"];
const CONVENTIONS: &str = "conventions.carto.run/v1alpha1";

async fn with_crds() -> &'static ControlPlane {
    let server = shared_control_plane().await.unwrap();
    server
        .install_crds(workspace().join("deploy/conventions/crds"))
        .await
        .unwrap();
    server
}

/// A namespace in which only restricted Pods are admitted.
async fn restricted(server: &ControlPlane) -> String {
    let name = server.create_namespace("chart").await.unwrap();
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
    });
    server.apply_yaml(&namespace.to_string()).await.unwrap();
    name
}

/// Applies an object as `kubectl apply --server-side --dry-run=server --validate=strict` does.
async fn dry_run(client: &Client, object: &Value) -> anyhow::Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let types = object.types.as_ref().context("no kind")?;
    let kind = GroupVersionKind::try_from(types)?;
    let (resource, capabilities) = oneshot::pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    };
    let params = PatchParams {
        dry_run: true,
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("chart")
    };
    let (name, patch) = (object.name_any(), Patch::Apply(&object));
    Ok(api.patch(&name, &params, &patch).await?)
}

/// What admission says of a Pod of a Deployment.
async fn admit_pod(client: &Client, deployment: &Value) -> anyhow::Result<()> {
    let template = &deployment["spec"]["template"];
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]});
    pod["metadata"] = template["metadata"].clone();
    pod["metadata"]["name"] = json!("tried");
    let pod: DynamicObject = serde_json::from_value(pod)?;
    let namespace = deployment["metadata"]["namespace"]
        .as_str()
        .context("namespace")?;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    objects_in(client, namespace, "v1", "Pod")
        .create(&dry, &pod)
        .await?;
    Ok(())
}

/// What an API server says to all that a chart makes of some values, Pods among it.
async fn take(server: &ControlPlane, client: &Client, made: &str) -> anyhow::Result<usize> {
    let mut objects = documents(made)?;
    objects.retain(|object| !FOREIGN.iter().any(|kind| object["kind"] == *kind));
    let is_first = |object: &&Value| BEFORE_PODS.iter().any(|kind| object["kind"] == *kind);
    for object in objects.iter().filter(is_first) {
        server.apply_yaml(&object.to_string()).await?;
    }
    for object in objects.iter().filter(|object| !is_first(object)) {
        let applied = dry_run(client, object).await;
        applied.with_context(|| object.to_string())?;
        if object["kind"] == "Deployment" {
            admit_pod(client, object).await?;
        }
    }
    Ok(objects.len())
}

#[tokio::test]
async fn an_api_server_takes_whatever_values_make() {
    let server = with_crds().await;
    let client = server.client().unwrap();
    let helm = Helm::new().unwrap();
    for chart in charts().unwrap() {
        for case in cases(&chart).unwrap() {
            let namespace = restricted(server).await;
            let made = helm.render(&chart, &namespace, &case).unwrap();
            let taken = take(server, &client, &made).await;
            let taken = taken.unwrap_or_else(|error| panic!("{}: {error:#}", case.display()));
            assert!(taken >= 2, "{}", case.display());
        }
    }
}

#[tokio::test]
async fn a_field_that_does_not_exist_is_noticed_by_the_dry_run() {
    let server = with_crds().await;
    let client = server.client().unwrap();
    let mut convention = json!({
        "apiVersion": CONVENTIONS,
        "kind": "ClusterPodConvention",
        "metadata": {"name": "chart-tried"},
        "spec": {"webhook": {"clientConfig": {"url": "https://a.example/"}}},
    });
    dry_run(&client, &convention).await.unwrap();
    convention["spec"]["webhook"]["timeout"] = json!(5);
    let refused = dry_run(&client, &convention).await.unwrap_err();
    assert!(format!("{refused:#}").contains("timeout"), "{refused:#}");
}

/// With a certificate of one's own nothing foreign is in it.
#[tokio::test(flavor = "multi_thread")]
async fn helm_installs_upgrades_and_removes_it() {
    let server = with_crds().await;
    let client = server.client().unwrap();
    let namespace = restricted(server).await;
    let helm = Helm::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let values = folder.path().join("values.yaml");
    let say = |priority: &str| {
        let values_of_it = json!({
            "image": {"repository": "a", "tag": "b"},
            "certificate": {"secretName": "tls", "caBundle": "-----BEGIN CERTIFICATE-----\n"},
            "conventions": [{"name": namespace, "priority": priority}],
        });
        std::fs::write(&values, values_of_it.to_string()).unwrap();
    };
    let chart = chart("convention-webhook");
    let run = async |words: &[&str]| {
        let kubeconfig = ["--kubeconfig", server.kubeconfig_path().to_str().unwrap()];
        let place = ["--namespace", namespace.as_str(), "--timeout", "60s"];
        let words = [words, &kubeconfig, &place].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        tokio::task::block_in_place(|| helm.tell(words)).unwrap()
    };
    let upgrade = [
        "upgrade",
        "--install",
        "web",
        chart.to_str().unwrap(),
        "--values",
    ];
    let upgrade = [upgrade.as_slice(), &[values.to_str().unwrap()]].concat();
    let convention = async || {
        let all = test_support::all_objects(&client, CONVENTIONS, "ClusterPodConvention");
        all.get_opt(&namespace).await.unwrap()
    };

    say("Early");
    let told = run(&upgrade).await;
    assert!(told.contains("rollout status deployment/web"), "{told}");
    let made = convention().await.unwrap();
    assert_eq!(made.data["spec"]["priority"], "Early");
    let service = &made.data["spec"]["webhook"]["clientConfig"]["service"];
    assert_eq!(service["namespace"], json!(namespace));
    let services = objects_in(&client, &namespace, "v1", "Service");
    services
        .get(service["name"].as_str().unwrap())
        .await
        .unwrap();

    say("Late");
    run(&upgrade).await;
    let changed = convention().await.unwrap();
    assert_eq!(changed.data["spec"]["priority"], "Late");
    assert_eq!(changed.uid(), made.uid());

    run(&["uninstall", "web"]).await;
    assert!(convention().await.is_none());
    assert!(services.get_opt("web").await.unwrap().is_none());
}

/// Runs helm against an API server, in the namespace of the controllers.
struct Installation<'p> {
    plane: &'p ControlPlane,
    helm: Helm,
}

impl Installation<'_> {
    fn run(&self, words: &[&str]) -> String {
        let kubeconfig = self.plane.kubeconfig_path().to_str().unwrap();
        let place = ["--kubeconfig", kubeconfig, "--namespace", "carto-system"];
        let words = [words, &place].concat();
        tokio::task::block_in_place(|| self.helm.tell(words)).unwrap()
    }
}

/// As an authority is written into a configuration: base64 of PEM.
const BUNDLE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJkVENDQVJ1Z0F3SUJBZ0lVWHc9PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==";

const OWNER: &str = "
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, namespace: default}
spec: {serviceAccountName: app}
";

/// Nothing takes the values away that the controllers have written into what helm looks after.
async fn write_as_controllers_do(client: &Client) {
    let key = objects_in(client, "carto-system", "v1", "Secret");
    let merge = Patch::Merge(json!({"data": {"key": "a2V5"}}));
    let params = PatchParams::default();
    key.patch("carto-status-key", &params, &merge)
        .await
        .unwrap();
    let bundle = json!({"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": BUNDLE});
    let patch: Patch<()> = Patch::Json(serde_json::from_value(json!([bundle])).unwrap());
    configurations(client)
        .patch("carto-supplychain-controller", &params, &patch)
        .await
        .unwrap();
}

fn configurations(client: &Client) -> Api<DynamicObject> {
    test_support::all_objects(
        client,
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    )
}

/// What helm has deleted, in its order.
fn deletions(plane: &ControlPlane) -> Vec<String> {
    let requests = plane.requests_by("Helm").unwrap().into_iter();
    let deletions = requests.filter(|request| request.verb == "delete");
    let named = deletions.filter_map(|request| Some(request.object_ref?.resource));
    // Its own notes on releases.
    named.filter(|resource| resource != "secrets").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_installs_upgrades_and_removes_carto_and_leaves_kinds_and_owners() {
    let plane = ControlPlane::builder()
        .controller_manager(true)
        .audit()
        .start()
        .await
        .unwrap();
    let client = plane.client().unwrap();
    let namespace = std::fs::read_to_string(workspace().join("deploy/namespace.yaml")).unwrap();
    plane.apply_yaml(&namespace).await.unwrap();
    let helm = Helm::new().unwrap();
    let release = Installation {
        plane: &plane,
        helm,
    };
    let chart = chart("carto");
    let chart = chart.to_str().unwrap();

    let told = release.run(&["install", "carto", chart]);
    assert!(
        told.contains("DELETING THE CRDS DELETES ALL OF THESE"),
        "{told}"
    );
    assert!(!told.contains("enforces no Pod security"), "{told}");
    plane.apply_yaml(OWNER).await.unwrap();
    write_as_controllers_do(&client).await;
    for controller in ["supplychain-controller", "runnable-controller"] {
        let user = test_support::service_account("carto-system", controller);
        plane
            .until_it_may(&user, "watch gitrepositories.source.toolkit.fluxcd.io")
            .await;
    }

    release.run(&[
        "upgrade",
        "carto",
        chart,
        "--set",
        "runnable-controller.replicas=3",
    ]);
    let deployments = objects_in(&client, "carto-system", "apps/v1", "Deployment");
    let deployment = deployments.get("runnable-controller").await.unwrap();
    assert_eq!(deployment.data["spec"]["replicas"], 3);
    let key = objects_in(&client, "carto-system", "v1", "Secret");
    let key = key.get("carto-status-key").await.unwrap();
    assert_eq!(key.data["data"]["key"], "a2V5");
    let configuration = configurations(&client)
        .get("carto-supplychain-controller")
        .await;
    let written = &configuration.unwrap().data["webhooks"][0]["clientConfig"]["caBundle"];
    assert_eq!(*written, json!(BUNDLE));
    release.run(&["rollback", "carto", "1"]);
    let deployment = deployments.get("runnable-controller").await.unwrap();
    assert_eq!(deployment.data["spec"]["replicas"], 2);

    // Whoever rolls the controllers back alone leaves the CRDs out.
    release.run(&["upgrade", "carto", chart, "--set", "crds.enabled=false"]);
    assert!(
        deletions(&plane)
            .iter()
            .all(|resource| resource != "customresourcedefinitions")
    );
    release.run(&["upgrade", "carto", chart]);

    let before = deletions(&plane).len();
    release.run(&["uninstall", "carto"]);
    let removed = &deletions(&plane)[before..];
    assert_eq!(
        removed[0], "validatingwebhookconfigurations",
        "{removed:#?}"
    );
    let last = removed
        .iter()
        .rposition(|resource| resource.ends_with("webhookconfigurations"));
    let first = removed
        .iter()
        .position(|resource| !resource.ends_with("webhookconfigurations"));
    assert!(last < first, "{removed:#?}");
    assert!(
        deployments
            .list(&kube::api::ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let owners = objects_in(&client, "default", "carto.run/v1alpha1", "Workload");
    owners.get("app").await.unwrap();

    // What was kept is taken up again. Somebody who migrates begins without Pods, and scales up by hand; the values come after.
    let none = STAMPING.map(|name| format!("{name}.replicas=0")).join(",");
    release.run(&["install", "carto", chart, "--set", &none]);
    owners.get("app").await.unwrap();
    let of = async |name: &str| deployments.get(name).await.unwrap();
    let stopped = of("runnable-controller").await;
    assert_eq!(stopped.data["spec"]["replicas"], 0);
    let wanted = |found: &DynamicObject| found.annotations().get(WANTED).cloned();
    assert_eq!(wanted(&stopped), None);
    let up = Patch::Merge(json!({"spec": {"replicas": 2}}));
    let params = PatchParams::default();
    deployments
        .patch_scale("runnable-controller", &params, &up)
        .await
        .unwrap();
    release.run(&["upgrade", "carto", chart, "--reset-values"]);
    for name in STAMPING {
        let there = of(name).await;
        assert_eq!(there.data["spec"]["replicas"], 2, "{name}");
        assert_eq!(wanted(&there).as_deref(), Some("2"), "{name}");
    }
}

/// How many replicas there are to be, where somebody has stopped them.
const WANTED: &str = "carto.run/wanted-replicas";
const STAMPING: [&str; 3] = [
    "supplychain-controller",
    "delivery-controller",
    "runnable-controller",
];
