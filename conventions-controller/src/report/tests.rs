//! What follows from a status that was written or not, where the API server is scripted.

mod events;
mod large;
mod rests;

use std::convert::Infallible;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use clap::Parser as _;
use controller_kit::cluster::Cluster;
use controller_kit::metrics::Metrics;
use controller_kit::process::{Process, Reconciled};
use controller_kit::reflect::{Entry, Reflector};
use controller_kit::scheduler::Next;
use controller_kit::shutdown::Tasks;
use controller_kit::stamped::ObjectKey;
use futures::{StreamExt as _, stream};
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::SOON;
use crate::ConventionArgs;
use crate::controller::IntentController;

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    all: ConventionArgs,
}

/// What the API server does with requests for anything but events.
type Answers = Box<dyn FnMut(&Method, &str, Value) -> (u16, Value) + Send>;

struct Server {
    answers: Mutex<Answers>,
    asked: Mutex<Vec<(Method, String, Value)>>,
    /// It takes them all.
    events: Mutex<Vec<Value>>,
}

async fn serve(server: &Server, request: Request<kube::client::Body>) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(Body::new(body), usize::MAX)
        .await
        .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = head.uri.path();
    if path.ends_with("/events") || path.contains("/events/") {
        server.events.lock().push(body.clone());
        return (StatusCode::CREATED, axum::Json(body)).into_response();
    }
    let asked = (head.method.clone(), path.to_owned(), body.clone());
    server.asked.lock().push(asked);
    let (code, answer) = (server.answers.lock())(&head.method, path, body);
    let code = StatusCode::from_u16(code).unwrap();
    (code, axum::Json(answer)).into_response()
}

/// The controller, whose API server answers as it is told.
struct Scene {
    controller: IntentController,
    server: Arc<Server>,
    _images: tempfile::TempDir,
}

impl Scene {
    fn new(answers: impl FnMut(&Method, &str, Value) -> (u16, Value) + Send + 'static) -> Self {
        let server = Arc::new(Server {
            answers: Mutex::new(Box::new(answers)),
            asked: Mutex::default(),
            events: Mutex::default(),
        });
        let asked = server.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let server = asked.clone();
            async move { Ok::<_, Infallible>(serve(&server, request).await) }
        });
        let client = kube::Client::new(service, "default");
        let metrics = Arc::new(Metrics::new());
        let cluster = Cluster::new(client.clone(), client, metrics.clone());
        let process = Process::new(crate::PROGRAM, cluster, metrics, Tasks::new());
        let images = tempfile::tempdir().unwrap();
        let cache = format!("--image-cache={}", images.path().display());
        let flags = Flags::parse_from([
            "",
            &cache,
            "--resync-seconds=100",
            "--resolve-images-at-end",
        ]);
        Self {
            controller: crate::controller(&process, &flags.all, crate::events(&process), None)
                .unwrap(),
            server,
            _images: images,
        }
    }

    /// Has these objects be all that the watch of a kind has shown.
    async fn shows<E: Entry>(store: &Arc<Reflector<E>>, objects: &[Value]) {
        let shown = objects.iter().cloned().map(Event::InitApply);
        let events = [Event::Init].into_iter().chain(shown);
        let events: Vec<_> = events.chain([Event::InitDone]).map(Ok).collect();
        let (events, tasks) = (stream::iter(events).boxed(), Tasks::new());
        let cancel = tasks.token().clone();
        store.clone().follow(events, cancel, |_| {}).await;
    }

    async fn shows_intent(&self, intent: &Value) {
        Self::shows(&self.controller.stores.intents, slice::from_ref(intent)).await;
    }

    async fn shows_account(&self) {
        let account = json!({"metadata": {"namespace": "dev", "name": "sa"}});
        Self::shows(&self.controller.stores.accounts, &[account]).await;
    }

    async fn reconcile(&self) -> Reconciled {
        self.controller
            .reconcile(&ObjectKey::new("dev", "app"))
            .await
    }

    /// The events that were told, and counted up.
    fn events(&self) -> Vec<Value> {
        self.server.events.lock().clone()
    }

    /// The statuses that were to be written.
    fn statuses(&self) -> Vec<Value> {
        let asked = self.server.asked.lock();
        let writes = asked
            .iter()
            .filter(|(_, path, _)| path.ends_with("/status"));
        writes.map(|(_, _, patch)| status_of(patch)).collect()
    }
}

fn status_of(patch: &Value) -> Value {
    patch[1]["value"].clone()
}

fn intent() -> Value {
    json!({
        "metadata": {"namespace": "dev", "name": "app", "uid": "u", "resourceVersion": "10", "generation": 1},
        "spec": {"serviceAccountName": "sa", "template": {"spec": {"containers": [{"name": "web"}]}}},
    })
}

impl Scene {
    /// Reason and message of Ready, as they were written last.
    fn told(&self) -> [String; 2] {
        let status = self.statuses().pop().unwrap();
        let ready = &status["conditions"][1];
        ["reason", "message"].map(|field| ready[field].as_str().unwrap().to_owned())
    }
}

/// The object as it is after a status was written.
fn written(intent: &Value, patch: &Value) -> Value {
    let mut written = intent.clone();
    written["status"] = status_of(patch);
    written["metadata"]["resourceVersion"] = "12".into();
    written["metadata"]["managedFields"] = json!([{"manager": "carto-conventions"}]);
    written
}

#[tokio::test]
async fn a_change_that_comes_with_the_reply_to_our_own_write_is_looked_at_at_once() {
    for (place, value, is_change) in [
        ("/metadata/generation", json!(1), false),
        (
            "/spec/template/spec/containers/0/name",
            json!("other"),
            true,
        ),
        ("/metadata/labels", json!({"a": "b"}), true),
        ("/metadata/uid", json!("u"), false),
    ] {
        let mut latest = intent();
        if place == "/metadata/labels" {
            latest["metadata"]["labels"] = value;
        } else {
            *latest.pointer_mut(place).unwrap() = value;
        }
        let scene = Scene::new(move |_, _, patch| (200, written(&latest, &patch)));
        scene.shows_intent(&intent()).await;
        scene.shows_account().await;
        let next = scene.reconcile().await.next;
        let is_at_once = next == Next::After(Duration::ZERO);
        assert_eq!(is_at_once, is_change, "{place}: {next:?}");
        assert_eq!(scene.statuses().len(), 1);
    }
}

/// A refusal of the API server.
fn refusal(code: u16, message: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "code": code, "message": message, "reason": ""}),
    )
}

const TOO_LARGE: &str = "etcdserver: request is too large";

#[tokio::test]
async fn of_a_status_that_is_too_large_for_the_store_it_is_said_that_it_is() {
    let scene = Scene::new(|_, _, patch| {
        if patch[1]["value"]["inputsDigest"].is_string() {
            return refusal(500, TOO_LARGE);
        }
        (200, written(&intent(), &patch))
    });
    scene.shows_intent(&intent()).await;
    scene.shows_account().await;
    let reconciled = scene.reconcile().await;
    assert!(matches!(reconciled.next, Next::After(_)), "{reconciled:?}");
    let written = scene.statuses().pop().unwrap();
    assert_eq!(written["observedGeneration"], 1);
    let ready = &written["conditions"][1];
    let message = format!("the template cannot be stored: status.template: Too long: {TOO_LARGE}");
    let told = json!([
        ready["type"],
        ready["status"],
        ready["reason"],
        ready["message"]
    ]);
    assert_eq!(
        told,
        json!(["Ready", "False", "TemplateNotStorable", message])
    );
}

#[tokio::test]
async fn a_status_that_is_too_large_in_any_case_is_tried_again_with_back_off() {
    let scene = Scene::new(|_, _, _| refusal(500, TOO_LARGE));
    scene.shows_intent(&intent()).await;
    scene.shows_account().await;
    assert_eq!(scene.reconcile().await.next, Next::Backoff);
    assert_eq!(scene.statuses().len(), 2);
}

#[tokio::test]
async fn a_status_that_the_api_server_could_not_take_is_tried_again_ever_less_often_but_soon() {
    let scene = Scene::new(|_, _, _| refusal(503, "not now"));
    scene.shows_intent(&intent()).await;
    scene.shows_account().await;
    let next = scene.reconcile().await.next;
    assert_eq!(next, Next::BackoffWithin(SOON));
}

/// What was asked anew counts as done when it is written down, and not before.
#[tokio::test(start_paused = true)]
async fn a_pass_that_was_due_is_due_until_its_status_is_written() {
    let fails = Arc::new(AtomicBool::new(false));
    let is_failing = fails.clone();
    let scene = Scene::new(move |_, _, patch| {
        if is_failing.load(Ordering::SeqCst) {
            return refusal(422, "no");
        }
        (200, written(&intent(), &patch))
    });
    scene.shows_intent(&intent()).await;
    scene.shows_account().await;
    let key = ObjectKey::new("dev", "app");
    assert!(matches!(scene.reconcile().await.next, Next::After(_)));
    assert!(!scene.controller.resync.is_due(&key));
    tokio::time::advance(Duration::from_secs(200)).await;
    assert!(scene.controller.resync.is_due(&key));
    fails.store(true, Ordering::SeqCst);
    // Its status was changed by somebody meanwhile, so there is something to write.
    scene.shows_intent(&intent()).await;
    assert_eq!(scene.reconcile().await.next, Next::Backoff);
    assert!(scene.controller.resync.is_due(&key));
    fails.store(false, Ordering::SeqCst);
    assert!(matches!(scene.reconcile().await.next, Next::After(_)));
    assert!(!scene.controller.resync.is_due(&key));
}

fn forbidden() -> (u16, Value) {
    refusal(403, "secrets is forbidden: no right")
}

/// No event tells of a right that is granted.
#[tokio::test]
async fn a_secret_that_may_not_be_read_is_told_and_asked_for_again_now_and_then() {
    let mut intent = intent();
    intent["spec"]["imagePullSecrets"] = json!([{"name": "pull"}]);
    intent["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/app".into();
    let stored = intent.clone();
    let scene = Scene::new(move |_, path, patch| {
        if path.ends_with("/status") {
            (200, written(&stored, &patch))
        } else {
            forbidden()
        }
    });
    scene.shows_intent(&intent).await;
    scene.shows_account().await;
    let secret = json!({"metadata": {"namespace": "dev", "name": "pull", "resourceVersion": "1",
        "annotations": {"cert-manager.io/certificate-name": "hook"}}});
    Scene::shows(&scene.controller.stores.secrets, &[secret]).await;
    assert_eq!(scene.reconcile().await.next, Next::Slow);
    let told = scene.told();
    assert_eq!(told[0], "ImageResolutionFailed");
    assert!(told[1].ends_with("no right"), "{told:?}");

    // The same of a Secret that says whom to trust.
    let convention = json!({"metadata": {"name": "a", "uid": "c", "generation": 1}, "spec": {"webhook": {
        "certificate": {"namespace": "dev", "name": "hook"}, "clientConfig": {"url": "https://localhost:1"}}}});
    Scene::shows(&scene.controller.stores.conventions, &[convention]).await;
    assert_eq!(scene.reconcile().await.next, Next::Slow);
    let told = scene.told();
    assert_eq!(told[0], "CABundleResolutionFailed");
    assert!(
        told[1].contains("may not be read") && told[1].ends_with("no right"),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_convention_that_is_left_out_for_a_right_is_tried_again_within_a_minute() {
    let (intent, stored) = (intent(), intent());
    let scene = Scene::new(move |_, path, patch| {
        if path.ends_with("/status") {
            (200, written(&stored, &patch))
        } else {
            forbidden()
        }
    });
    scene.shows_intent(&intent).await;
    scene.shows_account().await;
    let secret = json!({"metadata": {"namespace": "dev", "name": "hook", "resourceVersion": "1",
        "annotations": {"cert-manager.io/certificate-name": "hook"}}});
    Scene::shows(&scene.controller.stores.secrets, &[secret]).await;
    let ignored = json!({"metadata": {"name": "a", "uid": "c", "generation": 1}, "spec": {"webhook": {
        "certificate": {"namespace": "dev", "name": "hook"}, "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://localhost:1"}}}});
    Scene::shows(&scene.controller.stores.conventions, &[ignored]).await;
    let within = Next::BackoffWithin(Duration::from_secs(55));
    assert_eq!(scene.reconcile().await.next, within);
    let status = scene.statuses().pop().unwrap();
    let error = status["conventions"][0]["error"].as_str().unwrap();
    assert!(error.contains("may not be read"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_was_due_before_another_replica_worked_is_not_due_any_more() {
    let scene = Scene::new(|_, _, patch| (200, written(&intent(), &patch)));
    scene.shows_intent(&intent()).await;
    scene.shows_account().await;
    let key = ObjectKey::new("dev", "app");
    assert!(matches!(scene.reconcile().await.next, Next::After(_)));
    let is_due = || {
        scene.controller.begin_term();
        scene.controller.resync.is_due(&key)
    };
    tokio::time::advance(Duration::from_secs(200)).await;
    assert!(is_due());
    scene.controller.replica.leader(false);
    assert!(is_due(), "nothing is done meanwhile");
    scene.controller.replica.leader(true);
    assert!(!is_due());
}
