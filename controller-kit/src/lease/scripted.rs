//! An API server with one Lease, for tests on a paused clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A server that keeps one Lease, checks resourceVersions, and can be cut off.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) lease: Mutex<Option<Value>>,
    version: AtomicUsize,
    requests: Mutex<BTreeMap<String, usize>>,
    pub(crate) away: AtomicBool,
    pub(crate) hangs: AtomicBool,
    /// Carries out a write of somebody else after the next read.
    pub(crate) late: AtomicBool,
}

impl Server {
    async fn answer(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<Body>, std::io::Error> {
        let method = request.method().clone();
        *self.requests.lock().entry(method.to_string()).or_default() += 1;
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.away.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("connection refused"));
        }
        let bytes = request.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(self.handle(&method, body))
    }

    fn handle(&self, method: &Method, mut body: Value) -> Response<Body> {
        let mut lease = self.lease.lock();
        let current = lease
            .as_ref()
            .map(|lease| lease["metadata"]["resourceVersion"].clone());
        match (method, &current) {
            (&Method::GET | &Method::PUT, None) => {
                return failure(StatusCode::NOT_FOUND, "NotFound");
            }
            (&Method::GET, Some(_)) => {}
            (&Method::POST, Some(_)) => return failure(StatusCode::CONFLICT, "AlreadyExists"),
            (&Method::PUT, Some(version)) if body["metadata"]["resourceVersion"] != *version => {
                return failure(StatusCode::CONFLICT, "Conflict");
            }
            _ => {
                let version = self.version.fetch_add(1, Ordering::SeqCst) + 1;
                body["metadata"]["resourceVersion"] = json!(version.to_string());
                *lease = Some(body);
            }
        }
        let text = lease.as_ref().unwrap().to_string();
        drop(lease);
        if *method == Method::GET && self.late.swap(false, Ordering::SeqCst) {
            self.touch();
        }
        Response::new(Body::from(text.into_bytes()))
    }

    pub(crate) fn client(self: &Arc<Self>) -> kube::Client {
        self.client_unless(&Arc::default())
    }

    /// For whom the server is away while this is so.
    pub(crate) fn client_unless(self: &Arc<Self>, is_cut_off: &Arc<AtomicBool>) -> kube::Client {
        let (server, is_cut_off) = (self.clone(), is_cut_off.clone());
        let answer = move |request| {
            let (server, is_cut_off) = (server.clone(), is_cut_off.clone());
            async move {
                if is_cut_off.load(Ordering::SeqCst) {
                    return Err(std::io::Error::other("no route to host"));
                }
                server.answer(request).await
            }
        };
        kube::Client::new(tower::service_fn(answer), "default")
    }

    pub(crate) fn spec(&self) -> Value {
        self.lease.lock().as_ref().unwrap()["spec"].clone()
    }

    /// Somebody changes something that is not the holder.
    pub(crate) fn touch(&self) {
        let version = self.version.fetch_add(1, Ordering::SeqCst) + 1;
        let mut lease = self.lease.lock();
        let metadata = &mut lease.as_mut().unwrap()["metadata"];
        metadata["annotations"] = json!({"touched": "by kubectl"});
        metadata["resourceVersion"] = json!(version.to_string());
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests.lock().get(method).copied().unwrap_or(0)
    }
}

fn failure(code: StatusCode, reason: &str) -> Response<Body> {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": reason});
    Response::builder()
        .status(code)
        .body(Body::from(status.to_string().into_bytes()))
        .unwrap()
}
