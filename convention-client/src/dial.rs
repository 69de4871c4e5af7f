//! How a connection is made: directly, or through a proxy.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::{Service, ServiceExt as _};

/// After how long of silence it is asked whether the other side is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long what was sent may be unacknowledged: a kept connection to a node that is gone ends so, and
/// there is time for another one. Not shorter, as a server that is busy and reads nothing looks the same.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Makes TCP connections.
#[derive(Clone)]
pub(crate) struct Dial {
    tcp: HttpConnector,
    proxies: Option<Arc<Matcher>>,
}

/// Makes connections over TLS, or without.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<Dial>,
    /// How long one try takes at most, TLS included.
    longest: Duration,
}

/// Nobody answered in TLS.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
struct Silent(Duration);

impl Connector {
    pub(crate) fn new(dial: Dial, tls: ClientConfig, longest: Duration) -> Self {
        Self {
            https: HttpsConnector::from((dial, tls)),
            longest,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let longest = self.longest;
        let connected = timeout(longest, self.https.call(uri));
        async move { connected.await.map_err(|_| Silent(longest))? }.boxed()
    }
}

/// A proxy that is not one of http.
#[derive(Debug, thiserror::Error)]
#[error("the environment names a proxy of {0:?}; only those of http can be used")]
struct ProxyScheme(String);

impl Dial {
    pub(crate) fn new(proxies: Option<Arc<Matcher>>, longest: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Shared out among the addresses of a host.
        tcp.set_connect_timeout(Some(longest));
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE / 3));
        tcp.set_keepalive_retries(Some(3));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        Self { tcp, proxies }
    }

    fn proxy(&self, uri: &Uri) -> Option<Intercept> {
        let is_encrypted = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        let proxies = self.proxies.as_ref().filter(|_| is_encrypted)?;
        proxies.intercept(uri)
    }
}

impl Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tcp = self.tcp.clone();
        let Some(proxy) = self.proxy(&uri) else {
            return async move { Ok(tcp.oneshot(uri).await?) }.boxed();
        };
        let scheme = proxy.uri().scheme_str().unwrap_or_default();
        if scheme != "http" {
            let error = ProxyScheme(scheme.to_owned());
            return async move { Err(error.into()) }.boxed();
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        async move { Ok(tunnel.oneshot(uri).await?) }.boxed()
    }
}
