//! Traces for a collector of OpenTelemetry (docs/behaviour/process.md#traces).

use std::collections::BTreeMap;
use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};
use test_support::eventually;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::stage::{PATIENCE, Stage};

type Received = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

/// Has a collector listen here, as long as the set lives; what it has received.
fn collector(listener: TcpListener, serving: &mut JoinSet<std::io::Result<()>>) -> Received {
    let received = Received::default();
    let take = async |State(received): State<Received>, body: Bytes| {
        let sent = ExportTraceServiceRequest::decode(body).unwrap();
        received.lock().unwrap().push(sent);
    };
    let router = Router::new().route("/v1/traces", post(take));
    let router = router.with_state(received.clone());
    serving.spawn(axum::serve(listener, router).into_future());
    received
}

/// Where a collector may listen, as a flag.
async fn place() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let flag = format!("--otlp-endpoint=http://{}", listener.local_addr().unwrap());
    (listener, flag)
}

fn spans(received: &Received) -> Vec<Span> {
    let received = received.lock().unwrap();
    let resources = received.iter().flat_map(|sent| &sent.resource_spans);
    let scopes = resources.flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

fn attributes(span: &Span) -> BTreeMap<&str, Value> {
    let texts = span.attributes.iter().filter_map(|attribute| {
        let value = match attribute.value.as_ref()?.value.as_ref()? {
            Attribute::StringValue(text) => json!(text),
            Attribute::IntValue(number) => json!(number),
            other => json!(format!("{other:?}")),
        };
        Some((&*attribute.key, value))
    });
    texts.collect()
}

fn told(span: &Span) -> String {
    format!("{} {:?}", span.name, attributes(span))
}

/// The spans from the outermost to this one.
fn path<'s>(spans: &'s [Span], span: &'s Span) -> Vec<&'s Span> {
    let mut path = vec![span];
    while let Some(above) = spans.iter().find(|above| {
        let inner = path[0];
        above.trace_id == inner.trace_id && above.span_id == inner.parent_span_id
    }) {
        path.insert(0, above);
    }
    path
}

/// Whether a trace leads over spans with these names and attributes.
fn shows(spans: &[Span], expected: &[(&str, Value)]) -> bool {
    spans.iter().any(|span| {
        let path = path(spans, span);
        let is = |(span, (name, wanted)): (&&Span, &(&str, Value))| {
            let has = attributes(span);
            let mut wanted = wanted.as_object().unwrap().iter();
            span.name == *name && wanted.all(|(key, value)| has.get(&**key) == Some(value))
        };
        path.len() == expected.len() && path.iter().zip(expected).all(is)
    })
}

#[tokio::test]
async fn one_trace_leads_from_an_owner_over_its_steps_and_requests_to_ready() {
    let (listener, flag) = place().await;
    let mut serving = JoinSet::new();
    let received = collector(listener, &mut serving);
    let mut stage = Stage::set().await;
    stage.apply(crate::chain::CHAIN).await;
    let mut controller = stage.another_controller_with(&[&flag]);
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let owner = || {
        let named = json!({"workload": format!("{}/app", stage.namespace)});
        ("reconcile", named)
    };
    let apply = |resource: &str| {
        let asked = json!({"verb": "APPLY", "resource": resource, "code": 201});
        ("request", asked)
    };
    let status = json!({"verb": "PATCH", "resource": "workloads.carto.run/status", "code": 200});
    let expected = [
        vec![
            owner(),
            ("submit", json!({"step": "fetch"})),
            apply("tests.test.run"),
        ],
        vec![
            owner(),
            ("submit", json!({"step": "publish"})),
            apply("configmaps"),
        ],
        vec![
            owner(),
            ("report", json!({"ready": "True", "reason": "Ready"})),
            ("request", status),
        ],
    ];
    eventually("the traces are there", PATIENCE, async || {
        let spans = spans(&received);
        let is_shown = |expected: &&Vec<_>| shows(&spans, expected);
        let shown = expected.iter().filter(is_shown).count();
        if shown == expected.len() {
            Ok(())
        } else {
            let told = |span| path(&spans, span).into_iter().map(told).collect::<Vec<_>>();
            Err(spans.iter().map(told).collect::<Vec<_>>())
        }
    })
    .await;
    // What was sent says nothing of what is in an object, and the log is as without.
    let sent = format!("{:?}", received.lock().unwrap());
    assert!(!sent.contains("git.example"), "{sent}");
    assert!(sent.contains("\"supplychain-controller\""), "{sent}");
    let log = controller.log();
    assert!(log.contains("\"name\":\"reconcile\""), "{log}");
    for span in ["submit", "report", "request"] {
        assert!(!log.contains(&format!("\"name\":\"{span}\"")), "{log}");
    }
    // The last spans are sent before the end.
    received.lock().unwrap().clear();
    let edit = json!({"spec": {"source": {"git": {"url": "https://git.example/other"}}}});
    stage.edit_workload("app", edit).await;
    eventually("the edit is applied", PATIENCE, async || {
        let made = stage.get("test.run/v1alpha1", "Test", "app-src").await?;
        (made["spec"]["value"]["url"] == "https://git.example/other").then_some(())
    })
    .await;
    stage.idle_of(&controller).await;
    controller.signal("TERM");
    controller.ended().await;
    let asked = json!({"verb": "APPLY", "resource": "tests.test.run", "code": 200});
    let expected = [
        owner(),
        ("submit", json!({"step": "fetch"})),
        ("request", asked),
    ];
    assert!(shows(&spans(&received), &expected));
}

#[tokio::test]
async fn a_collector_that_hangs_or_is_away_delays_neither_owners_nor_the_end() {
    let (hanging, flag) = place().await;
    let mut stage = Stage::set().await;
    stage.apply(crate::chain::CHAIN).await;
    let mut controller = stage.another_controller_with(&[&flag]);
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    // It is asked, and says nothing.
    let (asked, _) = hanging.accept().await.unwrap();
    let edit = json!({"spec": {"source": {"git": {"url": "https://git.example/other"}}}});
    stage.edit_workload("app", edit).await;
    stage
        .until("app", "the edit is reconciled", |app| {
            app["status"]["observedGeneration"] == app["metadata"]["generation"]
        })
        .await;
    eventually("that is said", PATIENCE, async || {
        controller.log().contains("does not take spans")
    })
    .await;
    controller.signal("TERM");
    controller.ended().await;
    drop((asked, hanging));
    // Nobody listens there any more.
    let mut controller = stage.another_controller_with(&[&flag]);
    let edit = json!({"spec": {"source": {"git": {"url": "https://git.example/third"}}}});
    stage.edit_workload("app", edit).await;
    eventually("the edit is applied", PATIENCE, async || {
        let made = stage.get("test.run/v1alpha1", "Test", "app-src").await?;
        (made["spec"]["value"]["url"] == "https://git.example/third").then_some(())
    })
    .await;
    eventually("that is said", PATIENCE, async || {
        controller.log().contains("does not take spans")
    })
    .await;
    controller.signal("TERM");
    controller.ended().await;
}
