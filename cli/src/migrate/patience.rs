//! An API server that does not answer ends the command, whatever it is at.
//!
//! A walk over many owners asks for much, one after the other. If each request gave up alone, the walk would go on and tell of
//! every step that it cannot be judged, an hour later. So the first answer that is not there in time, to its last byte, is told to
//! whoever waits for the whole command.

use std::future::pending;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::{Body, ClientBuilder, DynBody};
use kube::{Client, Config};
use tokio::sync::mpsc;
use tower::{BoxError, Layer, Service};

/// How long an answer may take, and who is told of one that takes longer.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    limit: Duration,
    over: mpsc::Sender<String>,
}

impl Patience {
    /// The receiver gets the request that was not answered.
    pub(super) fn new(limit: Duration) -> (Self, mpsc::Receiver<String>) {
        let (over, told) = mpsc::channel(1);
        (Self { limit, over }, told)
    }

    /// A client whose requests wait no longer. None of them may be a watch, whose answer never ends.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub(super) fn client(&self, config: Config) -> kube::Result<Client> {
        Ok(ClientBuilder::try_from(config)?.with_layer(self).build())
    }
}

impl<S> Layer<S> for Patience {
    type Service = Patient<S>;

    fn layer(&self, inner: S) -> Patient<S> {
        let patience = self.clone();
        Patient { inner, patience }
    }
}

/// What sends requests, and waits for whole answers.
pub(super) struct Patient<S> {
    inner: S,
    patience: Patience,
}

impl<S> Service<Request<Body>> for Patient<S>
where
    S: Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = format!("{} {}", request.method(), request.uri().path());
        let answer = self.inner.call(request);
        let Patience { limit, over } = self.patience.clone();
        let whole = async move {
            let (head, body) = answer.await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(Response::from_parts(head, Body::from(body)))
        };
        async move {
            if let Ok(answered) = tokio::time::timeout(limit, whole).await {
                return answered;
            }
            // One that was told before is enough.
            let _ = over.try_send(asked);
            pending().await
        }
        .boxed()
    }
}
