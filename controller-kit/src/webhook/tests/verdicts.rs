//! What is served says what the rules say, from the bytes of the question to those of the answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use test_support::admission_corpus::{Case, cases};
use tower::ServiceExt as _;

use super::super::judges::JUDGES;
use super::super::server::router;
use super::super::{Answer, Operation, Validate, Validating, routes};
use crate::metrics::Metrics;
use crate::owner::ROUTES;
use crate::owner::blueprint_admission::Rules;

/// The question of the API server, as it sends it for an object of the corpus.
fn question(case: &Case, operation: &str) -> Request<Body> {
    let old = (operation == "UPDATE").then_some(&case.object);
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": operation, "object": case.object, "oldObject": old, "name": "case"}});
    let route = ROUTES.iter().find(|route| route.kind == case.kind).unwrap();
    Request::post(route.path)
        .body(Body::from(review.to_string()))
        .unwrap()
}

fn expected(case: &Case) -> Value {
    let mut response = json!({"uid": "u-1", "allowed": case.error.is_none()});
    if let Some(error) = &case.error {
        response["status"] = json!({"code": 403, "reason": "Forbidden", "message": error});
    }
    if !case.warnings.is_empty() {
        response["warnings"] = json!(case.warnings);
    }
    response
}

#[tokio::test]
async fn every_case_of_the_corpus_gets_its_verdict() {
    let routes = routes(&ROUTES, Validating::new(Rules));
    let router = router(routes, &Arc::new(Metrics::new()));
    for case in cases() {
        for operation in ["CREATE", "UPDATE"] {
            let answer = router.clone().oneshot(question(&case, operation)).await;
            let answer = answer.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(answer["response"], expected(&case), "{case:?}");
        }
    }
}

/// More than are judged at a time.
const ASKED: usize = 3 * JUDGES;

/// Takes its time with each object until it is told to go on.
struct Slow {
    going: AtomicUsize,
    most: AtomicUsize,
    go: Mutex<Receiver<()>>,
}

impl Validate for Slow {
    fn validate(&self, _: &str, _: &Value, _: Operation) -> Answer {
        let going = self.going.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(going, Ordering::SeqCst);
        // Whoever holds up the thread that the test runs on waits for the test in vain.
        let told = self
            .go
            .lock()
            .unwrap()
            .recv_timeout(Duration::from_secs(20));
        self.going.fetch_sub(1, Ordering::SeqCst);
        told.unwrap();
        Answer::default()
    }
}

#[tokio::test]
async fn a_large_object_holds_up_nothing_but_its_own_answer() {
    let (tell, go) = channel();
    let slow = Arc::new(Slow {
        going: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        go: Mutex::new(go),
    });
    let routes = routes(&ROUTES, Validating::by(slow.clone()));
    let router = router(routes, &Arc::new(Metrics::new()));
    let case = cases().into_iter().next().unwrap();
    let answers = (0..ASKED).map(|_| router.clone().oneshot(question(&case, "CREATE")));
    let answers = futures::future::join_all(answers);
    let meanwhile = async {
        // This runs while the first ones are being judged.
        test_support::eventually("objects are judged", Duration::from_secs(10), async || {
            (slow.going.load(Ordering::SeqCst) > 0).then_some(())
        })
        .await;
        for _ in 0..ASKED {
            tell.send(()).unwrap();
        }
    };
    let (answers, ()) = tokio::join!(answers, meanwhile);
    for answer in answers {
        assert_eq!(answer.unwrap().status(), StatusCode::OK);
    }
    assert!(slow.most.load(Ordering::SeqCst) <= JUDGES);
}
