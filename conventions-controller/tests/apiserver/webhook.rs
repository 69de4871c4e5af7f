//! A webhook in the test's own process, which counts what it is asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::Listener;
use serde_json::{Value, json};
use test_support::TestAuthority;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What it does with a request.
#[derive(Clone)]
pub(crate) enum Does {
    /// Adds a variable to each container, and says so.
    AddsEnv(&'static str, &'static str),
    /// Adds a container with this image.
    AddsContainer(String),
    /// Admits a pod with one container more.
    AdmitsWithSidecar,
    /// Adds a label to the template that nobody has seen before.
    Random,
    /// Answers with this status and body.
    Answers(u16, String),
    /// Wants to be left alone for so many seconds.
    Throttles(u32),
    /// Leads to this place, with this status.
    Leads(u16, String),
    /// Says nothing.
    Hangs,
    /// Says nothing of PodIntents whose names begin so, and adds a variable `A` to all others.
    HangsFor(&'static str),
}

impl Does {
    fn hangs_for(&self, name: &str) -> bool {
        match self {
            Self::Hangs => true,
            Self::HangsFor(beginning) => name.starts_with(beginning),
            _ => false,
        }
    }
}

/// It stops when it is dropped.
pub(crate) struct Webhook {
    pub(crate) url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    does: watch::Sender<Does>,
    asked: parking_lot::Mutex<Vec<Value>>,
    times: parking_lot::Mutex<Vec<Instant>>,
}

impl Webhook {
    pub(crate) async fn start(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        Self::serve(listener, url, does)
    }

    /// Over TLS, with a certificate of an authority of its own, in PEM.
    pub(crate) async fn start_tls(does: Does) -> (Self, String) {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "https://localhost:{}/hook",
            tcp.local_addr().unwrap().port()
        );
        let (acceptor, authority) = acceptor();
        let listener = TlsListener { tcp, acceptor };
        (Self::serve(listener, url, does), authority)
    }

    fn serve<L>(listener: L, url: String, does: Does) -> Self
    where
        L: Listener,
        L::Addr: std::fmt::Debug,
    {
        let shared = Arc::new(Shared {
            does: watch::Sender::new(does),
            asked: parking_lot::Mutex::default(),
            times: parking_lot::Mutex::default(),
        });
        let router = Router::new()
            .route("/hook", post(answer))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(shared.clone());
        #[expect(clippy::disallowed_methods, reason = "it is aborted with the webhook")]
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            shared,
            serving,
        }
    }

    /// What it does from now on, also with what is hanging.
    pub(crate) fn does(&self, does: Does) {
        self.shared.does.send_replace(does);
    }

    /// The names of the requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = self.shared.asked.lock();
        let names = asked
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    /// When each request came.
    pub(crate) fn times(&self) -> Vec<Instant> {
        self.shared.times.lock().clone()
    }

    /// The last request.
    pub(crate) fn last(&self) -> Value {
        self.shared.asked.lock().last().cloned().unwrap()
    }

    /// A ClusterPodConvention that calls it, with more in its spec and in its webhook.
    pub(crate) fn convention(&self, name: &str, spec: Value, webhook: Value) -> String {
        let mut convention = json!({
            "apiVersion": "conventions.carto.run/v1alpha1", "kind": "ClusterPodConvention",
            "metadata": {"name": name},
            "spec": {"webhook": {"clientConfig": {"url": self.url}}},
        });
        let mut add = |place: &str, more: Value| {
            let fields = convention.pointer_mut(place).unwrap().as_object_mut();
            fields.unwrap().extend(more.as_object().unwrap().clone());
        };
        add("/spec", spec);
        add("/spec/webhook", webhook);
        convention.to_string()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Accepts connections over TLS.
struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, peer) = self.tcp.accept().await.unwrap();
            // Who does not trust it goes again.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// With a certificate for `localhost`, and the authority that signed it.
fn acceptor() -> (TlsAcceptor, String) {
    let authority = TestAuthority::new("authority of a webhook").unwrap();
    let config = authority.sign(&["localhost"]).unwrap().server_config();
    (
        TlsAcceptor::from(Arc::new(config.unwrap())),
        authority.pem(),
    )
}

async fn answer(State(shared): State<Arc<Shared>>, body: axum::body::Bytes) -> Response {
    let context: Value = serde_json::from_slice(&body).unwrap();
    shared.asked.lock().push(context.clone());
    shared.times.lock().push(Instant::now());
    let mut does = shared.does.subscribe();
    let name = context["metadata"]["name"].as_str().unwrap_or_default();
    let does = does
        .wait_for(|does| !does.hangs_for(name))
        .await
        .unwrap()
        .clone();
    match does {
        Does::AddsEnv(name, value) => axum::Json(with_env(&context, name, value)).into_response(),
        Does::AddsContainer(image) => axum::Json(with_container(&context, &image)).into_response(),
        Does::AdmitsWithSidecar => axum::Json(admitted_with_sidecar(&context)).into_response(),
        Does::Random => axum::Json(with_random(&context)).into_response(),
        Does::Answers(status, body) => {
            (StatusCode::from_u16(status).unwrap(), body).into_response()
        }
        Does::Throttles(seconds) => {
            let after = [(RETRY_AFTER, seconds.to_string())];
            (StatusCode::TOO_MANY_REQUESTS, after, "too much").into_response()
        }
        Does::Leads(status, to) => {
            (StatusCode::from_u16(status).unwrap(), [(LOCATION, to)]).into_response()
        }
        Does::HangsFor(_) => axum::Json(with_env(&context, "A", "b")).into_response(),
        Does::Hangs => unreachable!("it was waited for"),
    }
}

fn with_env(context: &Value, name: &str, value: &str) -> Value {
    let mut template = context["spec"]["template"].clone();
    for container in template["spec"]["containers"].as_array_mut().unwrap() {
        let env = container.as_object_mut().unwrap().entry("env");
        let env = env.or_insert_with(|| json!([])).as_array_mut().unwrap();
        env.push(json!({"name": name, "value": value}));
    }
    answered(&template, &format!("add-{name}"))
}

fn with_container(context: &Value, image: &str) -> Value {
    let mut template = context["spec"]["template"].clone();
    let containers = template["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({"name": "sidecar", "image": image}));
    answered(&template, "add-sidecar")
}

fn admitted_with_sidecar(review: &Value) -> Value {
    let request = &review["request"];
    let mut response = json!({"uid": request["uid"], "allowed": true});
    let containers = request["object"]["spec"]["containers"].as_array().unwrap();
    if containers.iter().all(|it| it["name"] != "sidecar") {
        let sidecar = json!({"name": "sidecar", "image": "sidecar"});
        let patch = json!([{"op": "add", "path": "/spec/containers/0", "value": sidecar}]);
        let patch = patch.to_string().into_bytes();
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(k8s_openapi::ByteString(patch));
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

fn with_random(context: &Value) -> Value {
    let mut template = context["spec"]["template"].clone();
    let labels = template["metadata"]
        .as_object_mut()
        .unwrap()
        .entry("labels");
    let seen = Duration::from_nanos(context["metadata"]["seen"].as_u64().unwrap_or(0));
    let number = std::collections::hash_map::RandomState::new();
    let number = std::hash::BuildHasher::hash_one(&number, seen);
    labels.or_insert_with(|| json!({}))["random"] = format!("r{number}").into();
    answered(&template, "random")
}

fn answered(template: &Value, receipt: &str) -> Value {
    json!({"status": {"template": template, "appliedConventions": [receipt]}})
}
