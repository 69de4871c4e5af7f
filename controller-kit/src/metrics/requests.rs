//! Counts requests to the API server where they are sent, so that none is left out: what a watch, a lease, an event or a token
//! asks for passes here, too.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tokio::time::Instant;
use tower::{Layer, Service};

use super::Metrics;
use super::asked::Asked;
use super::bounded::Bounded;
use super::build::Build;
use super::define::metrics;
use super::watches::{OpenWatch, Watches};

/// An answer on the same machine takes a millisecond, one of a congested server seconds.
const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
/// Most resources that are counted by name. One installation stamps a few dozen kinds.
const MOST_RESOURCES: usize = 100;
/// The code of a request that was never answered: the connection failed.
const NO_ANSWER: &str = "error";
/// The code of a request that nobody waited for any longer: it took too long, or the process ends.
const GIVEN_UP: &str = "given_up";

metrics! {
    struct Counted {
        /// All requests to the API server, by whose rights were used, verb, resource and status
        /// code; error: the connection failed, given_up: nobody waited for the answer any longer.
        total: counters("carto_api_requests_total", &["client", "verb", "resource", "code"]),
        /// Time until the API server began to answer; without watches.
        seconds: histograms(
            "carto_api_request_duration_seconds",
            &["client", "verb", "resource"],
            SECONDS
        ),
    }
}

/// What is counted of requests.
pub(super) struct Requests {
    counted: Counted,
    resources: Bounded,
    pub(super) watches: Watches,
}

impl Metrics {
    /// Whether anything has arrived of late on an open watch of another resource than this one.
    pub fn hears_others(&self, resource: &str) -> bool {
        let requests = &self.requests;
        requests.watches.hears_others(requests.resource(resource))
    }
}

impl Requests {
    pub(super) fn new(build: &Build<'_>) -> Self {
        Self {
            counted: Counted::new(build),
            resources: Bounded::new(MOST_RESOURCES),
            watches: Watches::new(build),
        }
    }

    /// The label for a resource.
    pub(super) fn resource<'r>(&self, resource: &'r str) -> &'r str {
        self.resources.label(resource)
    }

    fn count(&self, client: &str, asked: &Asked, code: &str, seconds: f64) {
        let resource = self.resource(&asked.resource);
        let labels = [client, asked.verb, resource];
        let Counted {
            total,
            seconds: taken,
        } = &self.counted;
        total
            .with_label_values(&[client, asked.verb, resource, code])
            .inc();
        if asked.verb != "WATCH" {
            taken.with_label_values(&labels).observe(seconds);
        }
    }
}

/// With whose rights a client's requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The controller's own.
    Controller,
    /// Those of owners' service accounts.
    Owner,
}

impl Sender {
    fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Owner => "owner",
        }
    }
}

/// Counts what a client sends.
#[derive(Clone)]
pub(crate) struct CountRequests {
    metrics: Arc<Metrics>,
    sender: Sender,
}

impl CountRequests {
    /// Of a client that sends with these rights.
    pub(crate) fn new(metrics: &Arc<Metrics>, sender: Sender) -> Self {
        Self {
            metrics: metrics.clone(),
            sender,
        }
    }
}

impl<S> Layer<S> for CountRequests {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting {
            inner,
            counted: self.clone(),
        }
    }
}

/// Sends requests and counts them.
#[derive(Clone)]
pub(crate) struct Counting<S> {
    inner: S,
    counted: CountRequests,
}

impl<S, B> Service<Request<Body>> for Counting<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<Seen<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut under_way = UnderWay::begin(&self.counted, &request);
        let answer = self.inner.call(request);
        Box::pin(async move {
            match answer.await {
                Ok(answer) => {
                    under_way.ends(code(answer.status()));
                    let watch = under_way.opened(answer.status());
                    Ok(answer.map(|inner| Seen { inner, watch }))
                }
                Err(error) => {
                    under_way.ends(NO_ANSWER);
                    Err(error)
                }
            }
        })
    }
}

/// Counts a request when dropped, also one that nobody waits for any longer.
struct UnderWay {
    counted: CountRequests,
    asked: Asked,
    begun: Instant,
    code: &'static str,
}

impl UnderWay {
    fn begin(counted: &CountRequests, request: &Request<Body>) -> Self {
        let asked = Asked::of(request);
        if asked.verb == "LIST" && counted.sender == Sender::Controller {
            let requests = &counted.metrics.requests;
            let resource = requests.resource(&asked.resource);
            requests.watches.listed(resource, request);
        }
        Self {
            counted: counted.clone(),
            asked,
            begun: Instant::now(),
            code: GIVEN_UP,
        }
    }

    fn ends(&mut self, code: &'static str) {
        self.code = code;
    }

    /// A watch that is open from now on.
    fn opened(&self, code: http::StatusCode) -> Option<OpenWatch> {
        if self.asked.verb != "WATCH" || !code.is_success() {
            return None;
        }
        let requests = &self.counted.metrics.requests;
        let resource = requests.resource(&self.asked.resource);
        Some(requests.watches.opened(resource))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let sender = self.counted.sender.as_str();
        let requests = &self.counted.metrics.requests;
        requests.count(sender, &self.asked, self.code, seconds);
    }
}

/// The codes that API servers send; any other is counted by its class.
const CODES: [&str; 19] = [
    "200", "201", "202", "204", "400", "401", "403", "404", "405", "409", "410", "413", "415",
    "422", "429", "500", "502", "503", "504",
];

fn code(status: http::StatusCode) -> &'static str {
    let known = CODES.into_iter().find(|code| *code == status.as_str());
    known.unwrap_or(match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    })
}

/// An answer's body; of a watch, each piece that arrives is noted.
pub(crate) struct Seen<B> {
    inner: B,
    watch: Option<OpenWatch>,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Seen<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if let (Poll::Ready(Some(Ok(_))), Some(watch)) = (&polled, &self.watch) {
            watch.heard();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use futures::StreamExt as _;
    use http_body_util::combinators::UnsyncBoxBody;
    use http_body_util::{BodyExt as _, Empty, StreamBody};
    use kube::client::ClientBuilder;
    use tower_test::mock;

    use super::*;

    type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;
    type Server = mock::Handle<Request<Body>, Answer>;

    fn client(sender: Sender) -> (kube::Client, Server, Arc<Metrics>) {
        let metrics = Arc::new(Metrics::new());
        let (service, server) = mock::pair::<Request<Body>, Answer>();
        let client = ClientBuilder::new(service, "default")
            .with_layer(&CountRequests::new(&metrics, sender))
            .build();
        (client, server, metrics)
    }

    fn request(uri: &str) -> Request<Body> {
        Request::get(uri).body(Body::empty()).unwrap()
    }

    fn has(metrics: &Metrics, line: &str) {
        let text = String::from_utf8(metrics.render()).unwrap();
        assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
    }

    async fn answer(server: &mut Server, code: u16) {
        let (_, reply) = server.next_request().await.unwrap();
        let body = Empty::new().boxed_unsync();
        reply.send_response(Response::builder().status(code).body(body).unwrap());
    }

    #[tokio::test]
    async fn every_request_is_counted_with_its_code_and_how_long_it_took() {
        let (client, mut server, metrics) = client(Sender::Owner);
        for code in [200, 429, 418] {
            let sent = client.send(request("/api/v1/namespaces/dev/configmaps/app"));
            let (answered, ()) = tokio::join!(sent, answer(&mut server, code));
            assert_eq!(answered.unwrap().status().as_u16(), code);
        }
        for code in ["200", "429", "4xx"] {
            has(
                &metrics,
                &format!(
                    "carto_api_requests_total{{client=\"owner\",code=\"{code}\",resource=\"configmaps\",verb=\"GET\"}} 1"
                ),
            );
        }
        has(
            &metrics,
            "carto_api_request_duration_seconds_count{client=\"owner\",resource=\"configmaps\",verb=\"GET\"} 3",
        );
    }

    #[tokio::test]
    async fn a_request_that_is_not_answered_is_counted_all_the_same() {
        let (client, mut server, metrics) = client(Sender::Controller);
        let refused = async {
            let (_, reply) = server.next_request().await.unwrap();
            reply.send_error(std::io::Error::other("connection refused"));
        };
        let (answered, ()) = tokio::join!(client.send(request("/apis/apps/v1")), refused);
        assert!(answered.is_err());
        has(
            &metrics,
            "carto_api_requests_total{client=\"controller\",code=\"error\",resource=\"discovery\",verb=\"GET\"} 1",
        );
        let waiting = tokio::time::timeout(
            Duration::from_millis(10),
            client.send(request("/apis/apps/v1")),
        );
        let (gave_up, held) = tokio::join!(waiting, server.next_request());
        assert!(gave_up.is_err() && held.is_some());
        test_support::eventually("it is counted", Duration::from_secs(30), async || {
            let text = String::from_utf8(metrics.render()).unwrap();
            text.contains("code=\"given_up\"")
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_open_as_long_as_its_answer_is_read_and_its_age_is_that_of_the_last_event() {
        let (client, mut server, metrics) = client(Sender::Controller);
        let (events, pieces) = futures::channel::mpsc::unbounded::<Bytes>();
        let stream = StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece))));
        let serve = async {
            let (_, reply) = server.next_request().await.unwrap();
            reply.send_response(Response::new(stream.boxed_unsync()));
        };
        let uri = "/apis/apps/v1/deployments?watch=true";
        let (answered, ()) = tokio::join!(client.send(request(uri)), serve);
        let mut body = answered.unwrap().into_body();
        has(&metrics, "carto_watches{resource=\"deployments.apps\"} 1");
        tokio::time::advance(Duration::from_secs(30)).await;
        has(
            &metrics,
            "carto_watch_last_event_age_seconds{resource=\"deployments.apps\"} 30",
        );
        events.unbounded_send(Bytes::from_static(b"{}\n")).unwrap();
        body.frame().await.unwrap().unwrap();
        tokio::time::advance(Duration::from_secs(7)).await;
        has(
            &metrics,
            "carto_watch_last_event_age_seconds{resource=\"deployments.apps\"} 7",
        );
        assert!(metrics.hears_others("tests.test.run"));
        assert!(!metrics.hears_others("deployments.apps"), "itself only");
        tokio::time::advance(Duration::from_mins(3)).await;
        assert!(!metrics.hears_others("tests.test.run"), "too long ago");
        events.unbounded_send(Bytes::from_static(b"{}\n")).unwrap();
        body.frame().await.unwrap().unwrap();
        assert!(metrics.hears_others("tests.test.run"));
        drop(body);
        assert!(!metrics.hears_others("tests.test.run"), "it is closed");
        has(&metrics, "carto_watches{resource=\"deployments.apps\"} 0");
        let text = String::from_utf8(metrics.render()).unwrap();
        assert!(
            !text.contains("last_event_age_seconds{"),
            "nothing is awaited: {text}"
        );
    }

    #[tokio::test]
    async fn only_a_listing_that_begins_again_is_a_restart() {
        let (client, mut server, metrics) = client(Sender::Controller);
        for uri in [
            "/api/v1/configmaps?labelSelector=a&limit=100",
            "/api/v1/configmaps?labelSelector=a&limit=100&continue=x",
            "/api/v1/configmaps?labelSelector=b&limit=100",
        ] {
            let _ = tokio::join!(client.send(request(uri)), answer(&mut server, 200));
        }
        has(
            &metrics,
            "carto_watch_restarts_total{resource=\"configmaps\"} 0",
        );
        let again = "/api/v1/configmaps?labelSelector=a&limit=100&resourceVersion=0";
        let _ = tokio::join!(client.send(request(again)), answer(&mut server, 500));
        has(
            &metrics,
            "carto_watch_restarts_total{resource=\"configmaps\"} 1",
        );
    }
}
