use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower_test::mock;

use super::super::certificate::ServingCertificate;
use super::super::pki::Authority;
use super::super::self_managed::SelfManaged;
use crate::metrics::Metrics;
use crate::shutdown::Tasks;

const START: i64 = 1_800_000_000;
/// An hour of the test is some 80 days of the calendar: a certificate is due at the first or second look.
const HASTE: i32 = 2_000;

fn answer(status: StatusCode, body: &Value) -> Response<Body> {
    Response::builder()
        .status(status)
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap()
}

/// The incident: the server answered every watch with an error, each of which put the next look off by an hour, and the
/// certificate expired.
#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_failing_does_not_put_the_renewal_off() {
    let started = Instant::now();
    let clock = move || {
        let passed = SignedDuration::try_from(started.elapsed()).unwrap();
        Timestamp::from_second(START).unwrap() + passed * HASTE
    };
    let names = vec!["localhost".to_owned()];
    let authority = Authority::maintained(None, &names, clock()).unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": authority.to_data(),
        "metadata": {"name": "webhook", "namespace": "ns", "uid": "u", "resourceVersion": "1"}});

    let (service, mut server) = mock::pair::<Request<Body>, Response<Body>>();
    let (certificate, tasks) = (Arc::new(ServingCertificate::new()), Tasks::new());
    let managed = SelfManaged {
        namespace: "ns".into(),
        secret: "webhook".into(),
        names,
        configurations: Vec::new(),
        clock: Arc::new(clock),
    };
    let client = kube::Client::new(service, "ns");
    let _is_trusted = managed.start(
        &client,
        certificate.clone(),
        Arc::new(Metrics::new()),
        &tasks,
    );

    let serve = async {
        let mut failures = 0;
        loop {
            let (request, reply) = server.next_request().await.unwrap();
            let query = request.uri().query().unwrap_or_default().to_owned();
            if request.method() == Method::PUT {
                let written = request.into_body().collect().await.unwrap().to_bytes();
                let written: Value = serde_json::from_slice(&written).unwrap();
                reply.send_response(answer(StatusCode::OK, &written));
                return (failures, written);
            }
            if query.contains("watch=") {
                failures += 1;
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                    "reason": "InternalError", "message": "etcdserver: leader changed"});
                reply.send_response(answer(StatusCode::INTERNAL_SERVER_ERROR, &status));
            } else {
                let list = json!({"kind": "SecretList", "apiVersion": "v1",
                    "metadata": {"resourceVersion": "1"}, "items": [secret]});
                reply.send_response(answer(StatusCode::OK, &list));
            }
        }
    };
    let (failures, written) = tokio::time::timeout(Duration::from_hours(4), serve)
        .await
        .expect("the certificate is renewed");
    assert!(failures > 60, "{failures}");
    assert!(certificate.is_loaded());
    assert_ne!(written["data"]["tls.crt"], secret["data"]["tls.crt"]);
    tasks.token().cancel();
    tasks.join(Duration::from_mins(1)).await.unwrap();
}
