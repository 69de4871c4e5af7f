//! An API server with one Lease, for tests on a paused clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

type Sent = UnsyncBoxBody<Bytes, std::io::Error>;

/// A server that keeps one Lease, checks resourceVersions, tells who watches, and can be cut off.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) lease: Mutex<Option<Value>>,
    version: AtomicUsize,
    requests: Mutex<BTreeMap<String, usize>>,
    watches: Mutex<Vec<UnboundedSender<Value>>>,
    /// Nobody may watch the Lease.
    pub(crate) forbids_watches: AtomicBool,
    pub(crate) away: AtomicBool,
    pub(crate) hangs: AtomicBool,
    /// Carries out a write of somebody else after the next read.
    pub(crate) late: AtomicBool,
}

impl Server {
    async fn answer(
        self: Arc<Self>,
        request: Request<Body>,
        is_cut_off: Arc<AtomicBool>,
    ) -> Result<Response<Sent>, std::io::Error> {
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|it| it.contains("watch="));
        if is_watch {
            return Ok(self.watch(is_cut_off));
        }
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

    /// What changes from now on, until the server, or the way to it, is away.
    fn watch(self: Arc<Self>, is_cut_off: Arc<AtomicBool>) -> Response<Sent> {
        if self.forbids_watches.load(Ordering::SeqCst) {
            return failure(StatusCode::FORBIDDEN, "Forbidden");
        }
        let (sender, events) = unbounded();
        if let Some(lease) = &*self.lease.lock() {
            let _ = sender.unbounded_send(lease.clone());
        }
        self.watches.lock().push(sender);
        let frames = events.map(|lease| {
            let event = json!({"type": "MODIFIED", "object": lease});
            Ok::<_, std::io::Error>(Frame::data(Bytes::from(format!("{event}\n"))))
        });
        let is_there = move |_: &_| {
            let gone = [&*is_cut_off, &self.away, &self.hangs];
            std::future::ready(!gone.iter().any(|it| it.load(Ordering::SeqCst)))
        };
        let frames = Box::pin(frames.take_while(is_there));
        Response::new(StreamBody::new(frames).boxed_unsync())
    }

    fn tell(&self, lease: &Value) {
        let mut watches = self.watches.lock();
        watches.retain(|watch| watch.unbounded_send(lease.clone()).is_ok());
    }

    fn handle(&self, method: &Method, mut body: Value) -> Response<Sent> {
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
                self.tell(&body);
                *lease = Some(body);
            }
        }
        let text = lease.as_ref().unwrap().to_string();
        drop(lease);
        if *method == Method::GET && self.late.swap(false, Ordering::SeqCst) {
            self.touch();
        }
        Response::new(whole(text))
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
                server.answer(request, is_cut_off).await
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
        self.tell(lease.as_ref().unwrap());
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests.lock().get(method).copied().unwrap_or(0)
    }
}

fn whole(text: String) -> Sent {
    let body = Full::new(Bytes::from(text));
    body.map_err(|never| match never {}).boxed_unsync()
}

fn failure(code: StatusCode, reason: &str) -> Response<Sent> {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": reason});
    Response::builder()
        .status(code)
        .body(whole(status.to_string()))
        .unwrap()
}
