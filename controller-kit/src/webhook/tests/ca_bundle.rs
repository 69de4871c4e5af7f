use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::ca_bundle::{Trust, WebhookConfiguration, keep_ca_bundle};
use crate::shared_secret::SharedSecret;

const NAME: &str = "carto";
/// `bundle`, as JSON has bytes.
const BUNDLE: &str = "YnVuZGxl";

fn configuration(version: &str, bundle: Option<&str>) -> Value {
    json!({"metadata": {"name": NAME, "resourceVersion": version},
        "webhooks": [{"name": "one.carto.run", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": "https://x", "caBundle": bundle}}]})
}

fn answer(code: u16, body: &Value) -> Response<Body> {
    let body = Body::from(body.to_string().into_bytes());
    Response::builder().status(code).body(body).unwrap()
}

fn refusal(code: u16, text: &str) -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": text});
    answer(code, &status)
}

/// With this for the authority, if anything; as JSON has bytes.
fn secrets(bundle: Option<&str>) -> Value {
    let secret = |bundle| {
        json!({"metadata": {"name": "webhook"}, "data":
            {"ca.crt": bundle, "ca.key": "eA==", "tls.crt": "eA==", "tls.key": "eA=="}})
    };
    let items: Vec<Value> = bundle.into_iter().map(secret).collect();
    json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

/// The rights of the install manifest: it may be listed, watched and patched, and not read. Says what was asked.
struct Server {
    asked: Arc<Mutex<Vec<String>>>,
    client: kube::Client,
    trust: Trust,
}

/// Patches are answered by `patched`, given how many came before. The Secret has the bundle that is to be written.
fn server(patched: fn(usize) -> Response<Body>) -> Server {
    server_with(Some(BUNDLE), patched)
}

fn server_with(in_secret: Option<&'static str>, patched: fn(usize) -> Response<Body>) -> Server {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, patches) = (asked.clone(), Arc::new(AtomicUsize::new(0)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch="));
        let is_list = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("fieldSelector"));
        let is_secret = request.uri().path() == "/api/v1/namespaces/ns/secrets";
        let (verb, reply) = match *request.method() {
            Method::GET if is_secret && is_list => {
                ("secret", Some(answer(200, &secrets(in_secret))))
            }
            Method::PATCH => (
                "patch",
                Some(patched(patches.fetch_add(1, Ordering::Relaxed))),
            ),
            Method::GET if is_watch => ("watch", None),
            Method::GET if is_list => {
                let list = json!({"kind": "ValidatingWebhookConfigurationList", "metadata": {"resourceVersion": "1"},
                    "apiVersion": "admissionregistration.k8s.io/v1", "items": [configuration("1", None)]});
                ("list", Some(answer(200, &list)))
            }
            _ => ("get", Some(refusal(403, "may not get"))),
        };
        log.lock().unwrap().push(verb.to_owned());
        async move {
            match reply {
                Some(reply) => Ok::<_, std::convert::Infallible>(reply),
                None => std::future::pending().await,
            }
        }
    });
    Server {
        asked,
        client: kube::Client::new(service, "default"),
        trust: Trust::default(),
    }
}

impl Server {
    /// Keeps the configuration for so long, with what is said to be trusted.
    async fn keep<K: WebhookConfiguration>(&self, time: Duration, bundle: &watch::Sender<String>) {
        let keeping = keep_ca_bundle::<K>(
            self.client.clone(),
            NAME.to_owned(),
            bundle.subscribe(),
            self.trust.clone(),
            SharedSecret::new(&self.client, "ns", "webhook"),
        );
        let _ = tokio::time::timeout(time, keeping).await;
    }

    /// What is asked within this time.
    async fn asked_within<K: WebhookConfiguration>(&self, time: Duration) -> Vec<String> {
        let bundle = watch::Sender::new("bundle".to_owned());
        self.keep::<K>(time, &bundle).await;
        self.asked.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_fails_is_tried_ever_less_often_and_nothing_is_read() {
    let server = server(|_| refusal(422, "the list has changed meanwhile"));
    let hour = Duration::from_hours(1);
    let asked = server
        .asked_within::<ValidatingWebhookConfiguration>(hour)
        .await;
    let of = |verb: &str| asked.iter().filter(|asked| *asked == verb).count();
    assert_eq!(of("get"), 0, "{asked:?}");
    // Waits of 5, 10, 20 … s up to 5 minutes.
    assert!((10..=25).contains(&of("patch")), "{}", of("patch"));
    assert!(!server.trust.is_given());
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_failed_once_is_repeated() {
    repeats_a_patch_that_failed::<ValidatingWebhookConfiguration>().await;
}

#[tokio::test(start_paused = true)]
async fn a_mutating_configuration_is_kept_like_a_validating_one() {
    repeats_a_patch_that_failed::<MutatingWebhookConfiguration>().await;
}

async fn repeats_a_patch_that_failed<K: WebhookConfiguration>() {
    let server = server(|before| match before {
        0 => refusal(503, "not now"),
        _ => answer(200, &configuration("2", Some(BUNDLE))),
    });
    let asked = server.asked_within::<K>(Duration::from_hours(1)).await;
    let (secret, patch) = ("secret", "patch");
    assert_eq!(asked, ["list", "watch", secret, patch, secret, patch]);
    assert!(server.trust.is_given());
}

/// Another replica was faster after the Secret was lost, or nobody has made it anew yet.
#[tokio::test(start_paused = true)]
async fn an_authority_that_is_not_in_the_secret_is_never_written() {
    for in_secret in [Some("b3RoZXI="), None] {
        let server = server_with(in_secret, |_| answer(200, &configuration("2", None)));
        let hour = Duration::from_hours(1);
        let asked = server
            .asked_within::<ValidatingWebhookConfiguration>(hour)
            .await;
        let of = |verb: &str| asked.iter().filter(|asked| *asked == verb).count();
        assert_eq!(of("patch"), 0, "{asked:?}");
        assert!((10..=25).contains(&of("secret")), "{}", of("secret"));
        assert!(!server.trust.is_given());
    }
}

#[tokio::test(start_paused = true)]
async fn who_was_behind_writes_what_is_in_the_secret_once_told_of_it() {
    let written = |_| answer(200, &configuration("2", Some(BUNDLE)));
    let server = server_with(Some(BUNDLE), written);
    let bundle = watch::Sender::new("of before".to_owned());
    let hour = Duration::from_hours(1);
    let telling = async {
        tokio::time::sleep(hour / 2).await;
        assert!(!server.asked.lock().unwrap().contains(&"patch".to_owned()));
        bundle.send_replace("bundle".to_owned());
    };
    let keeping = server.keep::<ValidatingWebhookConfiguration>(hour, &bundle);
    tokio::join!(keeping, telling);
    let asked = server.asked.lock().unwrap().clone();
    assert_eq!(asked.iter().filter(|asked| *asked == "patch").count(), 1);
    assert!(server.trust.is_given());
}
