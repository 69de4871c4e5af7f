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

/// The rights of the install manifest: it may be listed, watched and patched, and not read. Says what was asked.
struct Server {
    asked: Arc<Mutex<Vec<String>>>,
    client: kube::Client,
    trust: Trust,
}

/// Patches are answered by `patched`, given how many came before.
fn server(patched: fn(usize) -> Response<Body>) -> Server {
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
        let (verb, reply) = match *request.method() {
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
    /// What is asked within this time.
    async fn asked_within<K: WebhookConfiguration>(&self, time: Duration) -> Vec<String> {
        let (bundle, trusted) = watch::channel("bundle".to_owned());
        let keeping = keep_ca_bundle::<K>(
            self.client.clone(),
            NAME.to_owned(),
            trusted,
            self.trust.clone(),
        );
        let _ = tokio::time::timeout(time, keeping).await;
        drop(bundle);
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
    assert_eq!(asked, ["list", "watch", "patch", "patch"]);
    assert!(server.trust.is_given());
}
