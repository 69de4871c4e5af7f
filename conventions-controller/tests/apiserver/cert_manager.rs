//! cert-manager as users have it: its own definitions, and the objects that it and its CA issuer
//! leave.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::{TestKeyPair, assets};

use crate::stage::{Intents, applied, fails, intent, set, start};
use crate::webhook::{Does, Webhook};

const API_VERSION: &str = "cert-manager.io/v1";
const KIND: &str = "CertificateRequest";

/// Installs its definitions.
pub(crate) async fn install(stage: &Intents) {
    let folder = assets().unwrap().cert_manager_crds().unwrap();
    stage.plane.install_crds(folder).await.unwrap();
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// A request for this Certificate that nobody has signed yet.
pub(crate) async fn requested(stage: &Intents, name: &str, certificate: &str) {
    // Only who signs it reads it.
    let request = STANDARD.encode("-----BEGIN CERTIFICATE REQUEST-----\nMA==\n");
    let secret = format!("{name}-key");
    let object = json!({
        "apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": name, "annotations": {
            "cert-manager.io/certificate-name": certificate,
            "cert-manager.io/certificate-revision": "1",
            "cert-manager.io/private-key-secret-name": secret,
        }},
        "spec": {
            "request": request, "usages": ["digital signature", "key encipherment"],
            "issuerRef": {"group": "cert-manager.io", "kind": "Issuer", "name": "ca"},
        },
    });
    stage.apply(&object.to_string()).await;
    let approved = condition(
        "Approved",
        "True",
        "cert-manager.io",
        "Certificate request has been approved by cert-manager.io",
    );
    let waits = "Waiting on certificate issuance from order: \"pending\"";
    let pending = condition("Ready", "False", "Pending", waits);
    report(stage, name, json!({"conditions": [approved, pending]})).await;
}

/// A request for this Certificate that was signed by this authority, in PEM.
pub(crate) async fn signed(stage: &Intents, name: &str, certificate: &str, authority: &str) {
    requested(stage, name, certificate).await;
    sign(stage, name, authority).await;
}

/// What its CA issuer does to a request.
pub(crate) async fn sign(stage: &Intents, name: &str, authority: &str) {
    let leaf = TestKeyPair::signed_by_itself(&["localhost"]).unwrap();
    let leaf = leaf.certificate_pem();
    let fetched = "Certificate fetched from issuer successfully";
    let status = json!({
        "ca": STANDARD.encode(authority), "certificate": STANDARD.encode(leaf),
        "conditions": [
            condition("Approved", "True", "cert-manager.io",
                "Certificate request has been approved by cert-manager.io"),
            condition("Ready", "True", "Issued", fetched),
        ],
    });
    report(stage, name, status).await;
}

/// Only by its status are these fields written.
async fn report(stage: &Intents, name: &str, status: Value) {
    let api = stage.api(API_VERSION, KIND);
    let patch = Patch::Merge(json!({"status": status}));
    let by = PatchParams::default();
    let reported = api.patch_status(name, &by, &patch).await.unwrap();
    let reported = serde_json::to_value(reported).unwrap();
    // Nothing of it is unknown to the definition.
    for (field, value) in status.as_object().unwrap() {
        assert_eq!(&reported["status"][field], value);
    }
}

fn unknown(namespace: &str, certificate: &str) -> String {
    let certificate = format!("{namespace}/{certificate}");
    format!(
        "failed to authenticate: unable to find valid \"CertificateRequests\" for certificate \
         \"{certificate}\" configured in convention \"over-tls\""
    )
}

/// The annotation that names a Certificate.
fn annotated(certificate: &str) -> Value {
    json!({"metadata": {"annotations": {"conventions.carto.run/inject-ca-from": certificate}}})
}

#[tokio::test]
async fn a_request_counts_from_when_it_is_signed() {
    let mut stage = set().await;
    install(&stage).await;
    let (webhook, authority) = Webhook::start_tls(Does::AddsEnv("A", "b")).await;
    let namespace = stage.namespace.clone();
    let certificate = json!({"certificate": {"namespace": namespace, "name": "hook"}});
    let convention = webhook.convention("over-tls", json!({}), certificate);
    stage.apply(&convention).await;
    start(&mut stage, &[]);
    requested(&stage, "hook-1", "hook").await;
    stage.apply(&intent("app", "tls")).await;
    let message = unknown(&namespace, "hook");
    fails(&stage, "app", "CABundleResolutionFailed", &message).await;
    stage.idle().await;
    let place = stage.place_in_the_log();
    sign(&stage, "hook-1", &authority).await;
    applied(&stage, "app").await;
    stage.was_woken_since(place, "app").await;
    assert_eq!(webhook.asked(), ["app-over-tls"]);
}

/// Annotations are no part of the spec: there is no new generation that would tell of them.
#[tokio::test]
async fn an_annotation_names_the_certificate_too_and_is_looked_at_when_it_is_changed() {
    let mut stage = set().await;
    install(&stage).await;
    let (webhook, authority) = Webhook::start_tls(Does::AddsEnv("A", "b")).await;
    let (_other, other_authority) = Webhook::start_tls(Does::Hangs).await;
    let namespace = stage.namespace.clone();
    signed(&stage, "other-1", "other", &other_authority).await;
    signed(&stage, "hook-1", "hook", &authority).await;
    stage
        .apply(&webhook.convention("over-tls", json!({}), json!({})))
        .await;
    let other = annotated(&format!("{namespace}/other"));
    stage.edit_convention("over-tls", other).await;
    start(&mut stage, &[]);
    stage.apply(&intent("app", "tls")).await;
    let failed = stage.ready("app", "False", "ConventionsApplied").await;
    let told = &failed["status"]["conventions"][0]["error"];
    assert!(
        told.as_str()
            .unwrap()
            .contains("signed by another authority"),
        "{told}"
    );

    stage.edit_convention("over-tls", annotated("hook")).await;
    let message = "failed to authenticate: invalid certificate name; needs a namespace/ prefix";
    fails(&stage, "app", "CABundleResolutionFailed", message).await;
    let missing = annotated(&format!("{namespace}/missing"));
    stage.edit_convention("over-tls", missing).await;
    let message = unknown(&namespace, "missing");
    fails(&stage, "app", "CABundleResolutionFailed", &message).await;
    assert!(webhook.asked().is_empty());

    stage.idle().await;
    let place = stage.place_in_the_log();
    let right = annotated(&format!("{namespace}/hook"));
    stage.edit_convention("over-tls", right).await;
    applied(&stage, "app").await;
    stage.was_woken_since(place, "app").await;
    assert_eq!(webhook.asked(), ["app-over-tls"]);
}
