//! The charts, as an API server takes them: by dry run, and by a real `helm upgrade --install`.
//!
//! cert-manager and Prometheus' operator are not here: what is for them is left out.

use std::path::Path;

use anyhow::Context as _;
use e2e::Helm;
use e2e::helm::{cases, chart};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, oneshot};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use test_support::{ControlPlane, documents, objects_in, shared_control_plane};

const FOREIGN: [&str; 3] = ["Certificate", "Issuer", "PodMonitor"];
const CONVENTIONS: &str = "conventions.carto.run/v1alpha1";

async fn with_crds() -> &'static ControlPlane {
    let server = shared_control_plane().await.unwrap();
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/conventions/crds");
    server.install_crds(crds).await.unwrap();
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

#[tokio::test]
async fn an_api_server_takes_whatever_values_make() {
    let server = with_crds().await;
    let client = server.client().unwrap();
    let helm = Helm::new().unwrap();
    for case in cases().unwrap() {
        let namespace = restricted(server).await;
        let made = helm.render(&chart("convention-webhook"), &namespace, &case);
        let mut taken = 0;
        for object in documents(&made.unwrap()).unwrap() {
            let kind = object["kind"].as_str().unwrap();
            if FOREIGN.contains(&kind) {
                continue;
            }
            if kind == "ServiceAccount" {
                // Without it no Pod is admitted.
                server.apply_yaml(&object.to_string()).await.unwrap();
            }
            let applied = dry_run(&client, &object).await;
            applied.unwrap_or_else(|error| panic!("{}: {error:#}\n{object}", case.display()));
            if kind == "Deployment" {
                let admitted = admit_pod(&client, &object).await;
                admitted.unwrap_or_else(|error| panic!("{}: {error:#}", case.display()));
            }
            taken += 1;
        }
        assert!(taken >= 2, "{}", case.display());
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
