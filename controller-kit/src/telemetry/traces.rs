//! Traces for a collector of OpenTelemetry, if one is named (docs/behaviour/process.md#traces).
//!
//! Only spans are sent, and of ours only: what they say are names, codes and times. Best effort, like events: finished spans
//! wait in a queue that is bounded, a thread of its own sends them, and what does not fit is left out. So a collector that
//! hangs or is away costs spans and nothing else.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, info, warn};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{Layer, Registry};

/// The target of spans that only traces show. Lines name the owner by the span that they are in, so none of these may
/// stand between.
pub(crate) const TRACED: &str = "carto::trace";

/// The span of one reconcile, which lines show as well.
const RECONCILE: &str = "reconcile";

/// A collector that takes longer does not get these spans.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is left at the end is sent within this time.
const LAST_SPANS: Duration = Duration::from_secs(1);
/// What is read of an answer, which says nothing that counts.
const LONGEST_ANSWER: usize = 64 << 10;

/// Where spans go.
pub(crate) type Traces = Box<dyn Layer<Registry> + Send + Sync>;

/// What sends them.
pub(crate) struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Sends what is left, if it is taken within a second.
    pub(crate) async fn end(self) {
        // It waits for the thread that sends. That the collector is away has been logged.
        let ending = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(LAST_SPANS));
        let _ = ending.await;
    }
}

/// Sends the spans of a service to `<endpoint>/v1/traces`, as OTLP in protobuf. Call it within the runtime.
///
/// # Errors
/// When the endpoint cannot be used, or no certificate authority is known for a secure one; the operator must correct it.
pub(crate) fn exporting(
    endpoint: &Uri,
    service: &'static str,
    version: &'static str,
) -> anyhow::Result<(Traces, Exporter)> {
    let is_secure = endpoint.scheme_str() == Some("https");
    let sender = Sender {
        runtime: Handle::current(),
        client: Client::builder(TokioExecutor::new()).build(connector(is_secure)?),
        is_failing: AtomicBool::new(false),
    };
    let endpoint = endpoint.to_string();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(sender)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_timeout(PATIENCE)
        .build()?;
    let resource = Resource::builder()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", version))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("carto"))
        .with_context_activation(false)
        .with_location(false)
        .with_target(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(is_traced).with_max_level_hint(LevelFilter::DEBUG));
    Ok((layer.boxed(), Exporter(provider)))
}

/// What happens in a span is for logs: spans are asked for by many who may not read those.
pub(super) fn is_traced(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && (metadata.target() == TRACED || metadata.name() == RECONCILE)
}

/// To a collector beside us, or to one that is verified by the authorities that the machine trusts.
fn connector(is_secure: bool) -> io::Result<HttpsConnector<HttpConnector>> {
    let connecting = HttpsConnectorBuilder::new();
    let connecting = if is_secure {
        connecting.with_native_roots()?
    } else {
        let trusts_nobody = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
        connecting.with_tls_config(trusts_nobody.with_no_client_auth())
    };
    Ok(connecting.https_or_http().enable_http1().build())
}

/// Sends for the thread of the exporter, which is none of the runtime's.
#[derive(Debug)]
struct Sender {
    runtime: Handle,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    is_failing: AtomicBool,
}

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.request(request.map(Full::new));
        let sending = async {
            let (head, body) = answer.await?.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await?;
            Ok::<_, HttpError>(Response::from_parts(head, body.to_bytes()))
        };
        let sending = async { tokio::time::timeout(PATIENCE, sending).await? };
        let sent = self.runtime.spawn(sending).await;
        let sent = sent.map_err(HttpError::from).flatten();
        self.tell(&sent);
        sent
    }
}

impl Sender {
    /// Says once that spans are not taken, and once that they are taken again.
    fn tell(&self, sent: &Result<Response<Bytes>, HttpError>) {
        let error = match sent {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(answer.status().to_string()),
            Err(error) => Some(crate::cluster::chain(&**error)),
        };
        let was_failing = self.is_failing.swap(error.is_some(), Ordering::Relaxed);
        match error {
            Some(error) if !was_failing => {
                warn!(%error, "the collector of --otlp-endpoint does not take spans; they are left out");
            }
            None if was_failing => info!("the collector takes spans again"),
            _ => {}
        }
    }
}
