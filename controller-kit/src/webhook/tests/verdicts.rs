//! What is served says what the rules say, from the bytes of the question to those of the answer.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use test_support::admission_corpus::{Case, cases};
use tower::ServiceExt as _;

use super::super::admission::Rules;
use super::super::server::router;
use super::super::{ROUTES, Validate};
use crate::metrics::Metrics;

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
    let rules: Arc<dyn Validate> = Arc::new(Rules);
    let router = router(&ROUTES, &rules, &Arc::new(Metrics::new()));
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
