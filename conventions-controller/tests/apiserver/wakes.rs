//! Whom a change wakes: those PodIntents that it concerns, once, and nobody else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{NOTHING, PATIENCE};

use crate::cert_manager::{install, sign, signed};
use crate::stage::{Intents, applied, set, start};
use crate::webhook::{Does, Webhook};

/// Each has a convention, a service account and Secrets of its own; all are made in the same way.
const NAMES: [&str; 2] = ["user", "bystander"];

/// A Secret with credentials that nobody asks for.
fn secret(name: &str) -> Value {
    let config = json!({"auths": {}}).to_string();
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": STANDARD.encode(config)},
    })
}

/// Another content.
fn rotated(round: usize) -> Value {
    let config = json!({"auths": {"registry.example": {"username": round.to_string()}}});
    json!({"data": {".dockerconfigjson": STANDARD.encode(config.to_string())}})
}

/// Its convention is the one that is named like it.
fn intent(name: &str) -> String {
    json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": name},
        "spec": {
            "serviceAccountName": format!("sa-{name}"),
            "imagePullSecrets": [{"name": format!("own-{name}")}],
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web"}]}},
        },
    })
    .to_string()
}

async fn apply_all_of(stage: &Intents, name: &str, convention: &str) {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": format!("sa-{name}")},
        "imagePullSecrets": [{"name": format!("account-{name}")}],
    });
    stage.apply(convention).await;
    stage.apply(&account.to_string()).await;
    for secret_name in ["own", "account", "more"] {
        let secret = secret(&format!("{secret_name}-{name}"));
        stage.apply(&secret.to_string()).await;
    }
    stage.apply(&intent(name)).await;
    applied(stage, name).await;
}

fn of(name: &str) -> Value {
    json!({"selectors": [{"matchLabels": {"app": name}}]})
}

/// Makes a change that is for one of the two, and then the same for the other: by then the first
/// change has woken whomever it wakes.
async fn wakes_only_its_own(stage: &Intents, webhook: &Webhook, change: impl AsyncFn(&str)) {
    stage.idle().await;
    let place = stage.place_in_the_log();
    let asked = webhook.asked().len();
    let runs = || NAMES.map(|name| stage.runs_since(place, name).len());
    let mut expected = [0, 0];
    for (index, name) in NAMES.into_iter().enumerate() {
        change(name).await;
        eventually(&format!("{name} is looked at"), PATIENCE, async || {
            let runs = runs();
            if runs[index] > 0 { Ok(()) } else { Err(runs) }
        })
        .await;
        stage.idle().await;
        expected[index] = 1;
        assert_eq!(runs(), expected, "after the change for {name}");
    }
    let calls = NAMES.map(|name| format!("{name}-for-{name}"));
    assert_eq!(webhook.asked()[asked..], calls);
}

#[tokio::test]
async fn a_change_of_what_a_podintent_depends_on_is_one_look_at_it_and_none_at_others() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    start(&mut stage, &[]);
    for name in NAMES {
        let convention = webhook.convention(&format!("for-{name}"), of(name), json!({}));
        apply_all_of(&stage, name, &convention).await;
    }
    for (round, place) in ["own", "account"].into_iter().enumerate() {
        wakes_only_its_own(&stage, &webhook, async |name| {
            let secret = format!("{place}-{name}");
            stage.edit("v1", "Secret", &secret, rotated(round)).await;
        })
        .await;
    }
    wakes_only_its_own(&stage, &webhook, async |name| {
        let names = ["account", "more"].map(|it| json!({"name": format!("{it}-{name}")}));
        let patch = json!({"imagePullSecrets": names});
        stage
            .edit("v1", "ServiceAccount", &format!("sa-{name}"), patch)
            .await;
    })
    .await;
    wakes_only_its_own(&stage, &webhook, async |name| {
        let patch = json!({"spec": {"webhook": {"timeoutSeconds": 20}}});
        stage.edit_convention(&format!("for-{name}"), patch).await;
    })
    .await;
}

#[tokio::test]
async fn another_authority_is_one_look_at_those_whose_convention_trusts_it() {
    let mut stage = set().await;
    install(&stage).await;
    let (webhook, authority) = Webhook::start_tls(Does::AddsEnv("A", "b")).await;
    let (_other, other_authority) = Webhook::start_tls(Does::Hangs).await;
    let namespace = stage.namespace.clone();
    start(&mut stage, &[]);
    for name in NAMES {
        signed(&stage, name, name, &authority).await;
        let certificate = json!({"certificate": {"namespace": namespace, "name": name}});
        let convention = webhook.convention(&format!("for-{name}"), of(name), certificate);
        apply_all_of(&stage, name, &convention).await;
    }
    let both = format!("{authority}{other_authority}");
    wakes_only_its_own(&stage, &webhook, async |name| {
        sign(&stage, name, &both).await;
    })
    .await;
}

/// Labels are no part of the spec: there is no new generation that would tell of them.
#[tokio::test]
async fn labels_that_a_convention_selects_by_are_looked_at_when_they_are_edited() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let of_intents = json!({
        "selectorTarget": "PodIntent", "selectors": [{"matchLabels": {"team": "a"}}],
    });
    let convention = webhook.convention("for-team", of_intents, json!({}));
    stage.apply(&convention).await;
    start(&mut stage, &[]);
    for name in NAMES {
        apply_all_of(&stage, name, &convention).await;
    }
    stage.idle().await;
    assert_eq!(webhook.asked(), NOTHING);
    let place = stage.place_in_the_log();
    let env = |intent: &Value| {
        intent["status"]["template"]["spec"]["containers"][0]["env"][0]["value"].clone()
    };
    for (team, value) in [(json!("a"), json!("b")), (Value::Null, Value::Null)] {
        let labels = json!({"metadata": {"labels": {"team": team}}});
        stage.edit_owner("user", labels).await;
        let what = format!("of team {team} its variable is {value}");
        let intent = stage
            .until("user", &what, |intent| env(intent) == value)
            .await;
        assert_eq!(intent["metadata"]["generation"], 1);
    }
    stage.idle().await;
    assert_eq!(webhook.asked(), ["user-for-team"]);
    let runs = NAMES.map(|name| stage.runs_since(place, name).len());
    assert_eq!(runs, [2, 0]);
}
