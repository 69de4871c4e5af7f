//! Watches over an API server that answers as a test says.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::mapper::{Kind, Mapper, Served};
use crate::metrics::Metrics;
use crate::share::MayShare;
use crate::shutdown::Tasks;
use crate::stamped::{Projection, STALE_AFTER, StampedWatches, WatchSettings};

pub(super) type Answer = Response<Body>;

/// What watches of Workloads have in common; nobody is told of anything.
pub(super) fn settings() -> WatchSettings {
    WatchSettings {
        share: MayShare::default(),
        label: "carto.run/workload-name",
        field_manager: "m",
        owner_kind: "Workload",
        wake: Arc::new(|_, _| {}),
        moved: Arc::new(|_, _| {}),
        stale_after: STALE_AFTER,
        hears_others: Arc::new(|_| true),
        clock: Arc::new(|| Timestamp::UNIX_EPOCH),
    }
}

/// Watches over an API server that answers a request for a path with what this gives, or never.
pub(super) fn watches_over<F>(
    tasks: &Tasks,
    settings: WatchSettings,
    answer: impl Fn(String) -> F + Clone + Send + Sync + 'static,
) -> Arc<StampedWatches>
where
    F: Future<Output = Option<Answer>> + Send + 'static,
{
    let client = || {
        let answer = answer.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = answer(request.uri().to_string());
            async move {
                match answer.await {
                    Some(answer) => Ok::<_, Infallible>(answer),
                    None => std::future::pending().await,
                }
            }
        });
        kube::Client::new(service, "default")
    };
    let cluster = Cluster::new(client(), client(), Arc::new(Metrics::new()));
    let mapper = Arc::new(Mapper::new(cluster.clone()));
    StampedWatches::new(cluster, mapper, settings, tasks.clone())
}

/// The same, where each answer is given at once.
pub(super) fn scripted(
    tasks: &Tasks,
    settings: WatchSettings,
    answer: impl Fn(&str) -> Option<Answer> + Clone + Send + Sync + 'static,
) -> Arc<StampedWatches> {
    watches_over(tasks, settings, move |path| {
        std::future::ready(answer(&path))
    })
}

pub(super) fn json_answer(code: u16, body: &Value) -> Answer {
    let body = Body::from(body.to_string().into_bytes());
    Response::builder().status(code).body(body).unwrap()
}

/// An answer that says no, and why.
pub(super) fn failure(code: u16, message: &str) -> Answer {
    let reason = match code {
        403 => "Forbidden",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": message});
    json_answer(code, &status)
}

/// All objects of the kind.
pub(super) fn listing(names: &[&str]) -> Answer {
    page(names, None)
}

/// Some objects of the kind, and by what the rest is asked for. Each has an owner that is named
/// after it.
pub(super) fn page(names: &[&str], more: Option<&str>) -> Answer {
    let object = |name: &&str| {
        json!({"metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "5",
            "ownerReferences": [{"apiVersion": "carto.run/v1alpha1", "kind": "Workload",
                "name": format!("of-{name}"), "uid": "o", "controller": true}]}})
    };
    let items: Vec<Value> = names.iter().map(object).collect();
    let metadata = json!({"resourceVersion": "9", "continue": more});
    json_answer(200, &json!({"metadata": metadata, "items": items}))
}

/// Plain text, as from whoever stands before the API server.
pub(super) fn text(code: u16, text: &'static str) -> Answer {
    let body = Body::from(text.as_bytes().to_vec());
    Response::builder().status(code).body(body).unwrap()
}

/// A watch in which nothing happens, and that has ended.
pub(super) fn nothing() -> Answer {
    text(200, "")
}

pub(super) fn is_watch(path: &str) -> bool {
    path.contains("watch=true")
}

pub(super) fn served(kind: &str) -> Arc<Served> {
    Arc::new(Served {
        kind: Kind::new("test.run/v1", kind),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
        status_subresource: true,
    })
}

pub(super) fn path(path: &str) -> Projection {
    Projection::new([path.split('.').map(str::to_owned).collect()])
}
