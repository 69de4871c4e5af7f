//! Webhooks over TLS whose authority cert-manager tells of: it may not be installed, be late, or
//! have signed anew.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::PATIENCE;

use crate::cert_manager::{install, signed};
use crate::stage::{Intents, applied, fails, intent, set, start};
use crate::webhook::{Does, Webhook};

/// For those with the label `app: tls`.
fn convention(webhook: &Webhook, namespace: &str) -> String {
    let of_tls = json!({"selectors": [{"matchLabels": {"app": "tls"}}]});
    let certificate = json!({"certificate": {"namespace": namespace, "name": "hook"}});
    webhook.convention("over-tls", of_tls, certificate)
}

async fn until_it_has(stage: &Intents, name: &str, value: &str) {
    let has = |intent: &Value| {
        let env = &intent["status"]["template"]["spec"]["containers"][0]["env"];
        env[0]["value"] == value
    };
    stage.until(name, &format!("it has {value}"), has).await;
}

#[tokio::test]
async fn an_authority_that_is_late_harms_only_those_it_is_for_and_nobody_has_to_touch_them() {
    let mut stage = set().await;
    let (first, authority) = Webhook::start_tls(Does::AddsEnv("A", "first")).await;
    let namespace = stage.namespace.clone();
    stage.apply(&convention(&first, &namespace)).await;
    start(&mut stage, &[]);
    stage.apply(&intent("app", "tls")).await;
    stage.apply(&intent("other", "other")).await;
    applied(&stage, "other").await;
    let message = format!(
        r#"failed to authenticate: unable to find valid "CertificateRequests" for certificate "{namespace}/hook" configured in convention "over-tls""#
    );
    fails(&stage, "app", "CABundleResolutionFailed", &message).await;

    // cert-manager is installed, and signs.
    install(&stage).await;
    signed(&stage, "hook-1", "hook", &authority).await;
    applied(&stage, "app").await;
    until_it_has(&stage, "app", "first").await;
    assert_eq!(first.asked(), ["app-over-tls"]);

    // Another authority signs another certificate.
    let (second, other_authority) = Webhook::start_tls(Does::AddsEnv("A", "second")).await;
    stage.apply(&convention(&second, &namespace)).await;
    signed(&stage, "hook-2", "hook", &other_authority).await;
    until_it_has(&stage, "app", "second").await;
    applied(&stage, "app").await;
    stage.idle().await;
    let of_app = || {
        second
            .asked()
            .iter()
            .filter(|it| *it == "app-over-tls")
            .count()
    };
    let asked = of_app();

    // The requests are cleaned up: their Secret says who signed.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "hook-tls", "annotations": {"cert-manager.io/certificate-name": "hook"}},
        "data": {"ca.crt": STANDARD.encode(&other_authority)},
    });
    stage.apply(&secret.to_string()).await;
    for name in ["hook-1", "hook-2"] {
        stage
            .delete("cert-manager.io/v1", "CertificateRequest", name)
            .await;
    }
    stage.apply(&intent("later", "tls")).await;
    until_it_has(&stage, "later", "second").await;
    eventually("app is asked for again, untouched", PATIENCE, async || {
        let again = of_app();
        if again > asked { Ok(()) } else { Err(again) }
    })
    .await;
    stage.idle().await;
    applied(&stage, "app").await;
    let others = second.asked();
    assert!(
        others.iter().all(|it| it != "other-over-tls"),
        "it is not for all: {others:?}"
    );
}

#[tokio::test]
async fn who_shows_a_certificate_of_somebody_else_is_not_spoken_to() {
    let mut stage = set().await;
    install(&stage).await;
    let (webhook, _) = Webhook::start_tls(Does::AddsEnv("A", "b")).await;
    let (_other, authority) = Webhook::start_tls(Does::Hangs).await;
    let namespace = stage.namespace.clone();
    stage.apply(&convention(&webhook, &namespace)).await;
    signed(&stage, "hook-1", "hook", &authority).await;
    start(&mut stage, &[]);
    stage.apply(&intent("app", "tls")).await;
    let failed = stage.ready("app", "False", "ConventionsApplied").await;
    let told = failed["status"]["conventions"][0]["error"]
        .as_str()
        .unwrap();
    assert!(told.contains("certificate"), "{told}");
    assert!(webhook.asked().is_empty());
}
