//! What the manifests in deploy/conventions grant is what the controller needs, and no more.

use std::path::Path;

use serde_json::{Value, json};
use test_support::stage::{NOTHING, Particulars, condition};
use test_support::{CONTROLLERS_NAMESPACE, documents, service_account};

use crate::registry::{Behaves, Registry};
use crate::stage::{INTENT, Intents, applied, intent, set, with_image};
use crate::webhook::{Does, Webhook};

/// Only makes sense inside a cluster: here the controller runs beside it.
const INSIDE: [&str; 4] = [
    "Deployment",
    "Service",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

const GRANTED: [&str; 18] = [
    "watch podintents.conventions.carto.run",
    "list clusterpodconventions.conventions.carto.run",
    "patch podintents.conventions.carto.run/status in dev named app",
    "watch podpresets.settings.carto.run",
    "watch clusterpodpresets.settings.carto.run",
    "patch podpresets.settings.k8s.io/status in dev named app",
    "watch namespaces",
    "watch customresourcedefinitions.apiextensions.k8s.io named podpresets.settings.k8s.io",
    "watch serviceaccounts",
    "get secrets in dev named pull",
    "watch secrets",
    "watch certificaterequests.cert-manager.io",
    "watch customresourcedefinitions.apiextensions.k8s.io named certificaterequests.cert-manager.io",
    "create events in dev",
    "update leases.coordination.k8s.io in carto-system named conventions-controller",
    "update secrets in carto-system named conventions-controller-webhook",
    "patch mutatingwebhookconfigurations.admissionregistration.k8s.io named carto-conventions-controller",
    "patch validatingwebhookconfigurations.admissionregistration.k8s.io named carto-pod-presets",
];

const DENIED: [&str; 18] = [
    "patch podintents.conventions.carto.run in dev named app",
    "delete podintents.conventions.carto.run in dev named app",
    "create clusterpodconventions.conventions.carto.run",
    "create secrets in dev",
    "update secrets in dev named pull",
    "delete secrets in carto-system named conventions-controller-webhook",
    "create serviceaccounts/token in dev named app",
    "impersonate serviceaccounts in dev named app",
    "get configmaps in dev named app",
    "watch pods",
    "get pods in dev named app",
    "patch pods in dev named app",
    "patch podpresets.settings.carto.run in dev named app",
    "get namespaces named dev",
    "watch customresourcedefinitions.apiextensions.k8s.io",
    "patch validatingwebhookconfigurations.admissionregistration.k8s.io named other",
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "update leases.coordination.k8s.io in carto-system named supplychain-controller",
];

const WITH_PRESETS: [&str; 2] = ["install.yaml", "pod-presets.yaml"];

/// What of these is to be applied outside of a cluster.
fn outside(files: &[&str]) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/conventions");
    let read = |file: &&str| documents(&std::fs::read_to_string(folder.join(file)).unwrap());
    let mut all: Vec<Value> = files.iter().flat_map(|file| read(file).unwrap()).collect();
    all.retain(|document| !INSIDE.iter().any(|kind| document["kind"] == *kind));
    all
}

/// The same, without the right to get Secrets if that is asked for.
fn manifests(gets_secrets: bool) -> String {
    let mut all = outside(&WITH_PRESETS);
    if !gets_secrets {
        let role = all.iter_mut().find(|document| {
            document["kind"] == "ClusterRole"
                && document["metadata"]["name"] == "carto-conventions-controller"
        });
        let rules = role.unwrap()["rules"].as_array_mut().unwrap();
        let is_of_secrets = |rule: &&mut Value| rule["resources"] == json!(["secrets"]);
        let rule = rules.iter_mut().find(is_of_secrets).unwrap();
        rule["verbs"] = json!(["list", "watch"]);
    }
    test_support::as_yaml(&all)
}

/// Starts the controller as the service account of the manifests.
fn start_as(stage: &mut Intents, user: &str) {
    let kubeconfig = stage.plane.kubeconfig_as_user(user, &[]).unwrap();
    let cache = stage.plane.folder().join("images");
    let cache = format!("--image-cache={}", cache.display());
    let own = format!("--own-namespace={CONTROLLERS_NAMESPACE}");
    let flags = [&*cache, &*own, "--leader-elect", "--pod-presets"];
    stage.start_controller_with(&Particulars {
        kubeconfig: Some(&kubeconfig),
        flags: &flags,
        ..Particulars::default()
    });
}

#[tokio::test]
async fn the_controller_has_the_rights_it_needs_and_no_others() {
    let mut stage = set().await;
    stage.plane.apply_yaml(&manifests(true)).await.unwrap();
    let user = service_account(CONTROLLERS_NAMESPACE, "conventions-controller");
    for right in GRANTED {
        stage.plane.until_it_may(&user, right).await;
    }
    for right in DENIED {
        assert!(
            !stage.plane.may(&user, right).await.unwrap(),
            "granted: {right}"
        );
    }

    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    stage
        .apply(&webhook.convention("add-env", json!({}), json!({})))
        .await;
    start_as(&mut stage, &user);
    stage.apply(INTENT).await;
    applied(&stage, "app").await;
    stage.idle().await;
    let requests = stage.plane.requests_by("carto-conventions").unwrap();
    let refused: Vec<String> = requests
        .iter()
        .filter(|it| {
            it.response_status
                .as_ref()
                .is_some_and(|status| status.code == 403)
        })
        .map(|it| format!("{} {}", it.verb, it.request_uri))
        .collect();
    assert!(
        refused.is_empty(),
        "deploy/conventions lacks rights for {refused:#?}"
    );
    assert!(!requests.is_empty());
}

/// No event tells of a right that is granted.
#[tokio::test]
async fn a_secret_that_may_not_be_read_is_told_with_the_right_and_read_when_it_is_granted() {
    let mut stage = set().await;
    stage.plane.apply_yaml(&manifests(false)).await.unwrap();
    let user = service_account(CONTROLLERS_NAMESPACE, "conventions-controller");
    stage.plane.until_it_may(&user, "watch secrets").await;
    let namespace = stage.namespace.clone();
    let right = format!("get secrets in {namespace} named pull");
    assert!(!stage.plane.may(&user, &right).await.unwrap());
    let registry = Registry::start(Behaves::Well).await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let convention = webhook.convention("add-env", json!({}), json!({"failurePolicy": "Ignore"}));
    stage.apply(&convention).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": r#"{"auths": {}}"#},
    });
    stage.apply(&secret.to_string()).await;
    start_as(&mut stage, &user);
    let secrets = json!([{"name": "pull"}]);
    stage.apply(&with_image(&registry.image, &secrets)).await;
    let told = stage.ready("app", "False", "ImageResolutionFailed").await;
    let message = condition(&told["status"], "Ready")["message"].clone();
    let message = message.as_str().unwrap();
    let right_told = format!(
        r#"User "{user}" cannot get resource "secrets" in API group "" in the namespace "{namespace}""#
    );
    assert!(
        message.starts_with("failed to authenticate: ") && message.contains(&right_told),
        "{message}"
    );
    assert_eq!(webhook.asked(), NOTHING);

    stage.plane.apply_yaml(&manifests(true)).await.unwrap();
    applied(&stage, "app").await;
    assert_eq!(webhook.asked(), ["app-add-env"]);
}

/// Without them a template would be rolled out that lacks its certificate authorities.
#[tokio::test]
async fn presets_that_may_not_be_listed_hold_up_only_templates_that_get_them() {
    let mut stage = set().await;
    let without = test_support::as_yaml(&outside(&["install.yaml"]));
    stage.plane.apply_yaml(&without).await.unwrap();
    let user = service_account(CONTROLLERS_NAMESPACE, "conventions-controller");
    stage.plane.until_it_may(&user, "watch secrets").await;
    let convention = json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "ClusterPodConvention",
        "metadata": {"name": "presets"},
        "spec": {"podPresets": {}, "selectors": [{"matchLabels": {"app": "gets-presets"}}]},
    });
    stage.apply(&convention.to_string()).await;
    start_as(&mut stage, &user);
    stage.apply(&intent("held-up", "gets-presets")).await;
    stage.apply(&intent("other", "other")).await;
    applied(&stage, "other").await;
    let told = stage
        .until(
            "held-up",
            "it is told that presets cannot be listed",
            |it| condition(&it["status"], "InputsReadable")["status"] == "False",
        )
        .await;
    let message = condition(&told["status"], "InputsReadable")["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.contains("PodPresets cannot be listed: "),
        "{message}"
    );
    assert_eq!(told["status"]["template"], Value::Null);

    let with = test_support::as_yaml(&outside(&WITH_PRESETS));
    stage.plane.apply_yaml(&with).await.unwrap();
    applied(&stage, "held-up").await;
}
