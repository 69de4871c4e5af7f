use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use submission::openapi::conform;
use tower_test::mock;

use super::*;

/// A document with one kind.
fn document() -> Value {
    json!({"openapi": "3.0.0", "components": {"schemas": {
        "run.carto.v1.App": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "test.run", "version": "v1", "kind": "App"}],
            "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
        },
    }}})
}

#[tokio::test(start_paused = true)]
async fn a_schema_is_read_once_and_again_when_it_may_be_old() {
    let (service, mut server) = mock::pair::<Request<Body>, Response<Body>>();
    let client = kube::Client::new(service, "default");
    let cache = Arc::new(SchemaCache::default());
    let ask = |cache: Arc<SchemaCache>, client: kube::Client| async move {
        let mut object = json!({"spec": {"bogus": 1}});
        let schema = cache.schema(&client, "test.run/v1", "App").await?;
        Ok::<_, SchemaError>(conform(&mut object, &schema))
    };
    let answer = async |server: &mut mock::Handle<Request<Body>, Response<Body>>| {
        let (request, send) = server.next_request().await.unwrap();
        assert_eq!(request.uri().path(), "/openapi/v3/apis/test.run/v1");
        send.send_response(Response::new(Body::from(
            document().to_string().into_bytes(),
        )));
    };
    let (first, second, ()) = tokio::join!(
        ask(cache.clone(), client.clone()),
        ask(cache.clone(), client.clone()),
        answer(&mut server)
    );
    assert_eq!(
        (first.unwrap(), second.unwrap()),
        (vec!["spec.bogus".to_owned()], vec!["spec.bogus".to_owned()])
    );
    tokio::time::advance(LIFETIME + Duration::from_secs(1)).await;
    let (again, ()) = tokio::join!(ask(cache.clone(), client.clone()), answer(&mut server));
    assert!(again.is_ok());
}

#[tokio::test]
async fn a_missing_schema_names_the_kind() {
    let (service, mut server) = mock::pair::<Request<Body>, Response<Body>>();
    let client = kube::Client::new(service, "default");
    let cache = SchemaCache::default();
    let (outcome, ()) = tokio::join!(cache.schema(&client, "v1", "Gone"), async {
        let (request, send) = server.next_request().await.unwrap();
        assert_eq!(request.uri().path(), "/openapi/v3/api/v1");
        send.send_response(Response::new(Body::from(
            document().to_string().into_bytes(),
        )));
    });
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "the API server publishes no schema for Gone in v1"
    );
}

/// The first document hangs; those of other groups, and whoever asked for the same one, do not wait for it longer than once.
#[tokio::test(start_paused = true)]
async fn a_document_that_does_not_come_holds_nobody_for_long() {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let hangs = request.uri().path().contains("hanging");
        count.fetch_add(usize::from(hangs), std::sync::atomic::Ordering::Relaxed);
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            let body = Body::from(document().to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(Response::new(body))
        }
    });
    let client = kube::Client::new(service, "default");
    let cache = SchemaCache::default();
    let began = Instant::now();
    let hanging = async || {
        let error = cache.schema(&client, "hanging.run/v1", "App").await;
        (error.unwrap_err().to_string(), began.elapsed())
    };
    let other = async {
        // The one that hangs is asked for first.
        tokio::time::sleep(Duration::from_millis(1)).await;
        cache.schema(&client, "test.run/v1", "App").await.unwrap();
        began.elapsed()
    };
    let (one, two, three, other) = tokio::join!(hanging(), hanging(), hanging(), other);
    assert!(other < DEADLINE, "{other:?}");
    for (error, after) in [one, two, three] {
        assert!(error.contains("no answer within 10 s"), "{error}");
        assert!(after < DEADLINE + Duration::from_secs(1), "{after:?}");
    }
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    // Later, it is asked for again.
    let (_, after) = hanging().await;
    assert!(after >= DEADLINE * 2, "{after:?}");
}

/// A document that is too long is not held, and not read again and again.
#[tokio::test(start_paused = true)]
async fn a_document_that_is_too_long_is_read_no_further_and_rests() {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_long = request.uri().path().contains("long");
        count.fetch_add(usize::from(is_long), std::sync::atomic::Ordering::Relaxed);
        // Spaces around a document are part of it.
        let filler = if is_long { LONGEST_DOCUMENT } else { 5 << 20 };
        let mut text = document().to_string().into_bytes();
        text.resize(text.len() + filler, b' ');
        async move { Ok::<_, std::convert::Infallible>(Response::new(Body::from(text))) }
    });
    let client = kube::Client::new(service, "default");
    let cache = SchemaCache::default();
    cache.schema(&client, "test.run/v1", "App").await.unwrap();
    let ask = async || {
        let error = cache.schema(&client, "long.run/v1", "App").await;
        error.unwrap_err().to_string()
    };
    for _ in 0..3 {
        assert_eq!(
            ask().await,
            "fetch schema of long.run/v1: the answer to [GET /openapi/v3/apis/long.run/v1] is longer than 16 MiB, and no \
             more is read of one"
        );
    }
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    tokio::time::advance(LIFETIME).await;
    ask().await;
    assert_eq!(
        asked.load(std::sync::atomic::Ordering::Relaxed),
        2,
        "it may be shorter now"
    );
}
