//! What is answered.

use axum::body::Bytes;
use convention_webhook_sdk::{
    Applied, Convention, ConventionError, Images, Limits, ServeError, Server, Template,
};
use serde_json::json as value;
use std::time::Duration;

use crate::scene::{NEVER, REQUEST, Scene, env, json, limits};

/// A convention that does what it is told.
struct Does(&'static str);

impl Convention for Does {
    async fn apply(&self, _: &mut Template, images: &Images) -> Result<Applied, ConventionError> {
        match self.0 {
            "fails" => Err(ConventionError::new(
                "set label example.com/team on the template",
            )),
            "panics" => panic!("the secret is 1234"),
            "hangs" => std::future::pending().await,
            "counts" => Ok(images.iter().map(|image| image.name().to_owned()).collect()),
            other => Ok(Applied::from(other)),
        }
    }
}

#[tokio::test]
async fn an_answer_has_the_template_and_the_receipts_and_nothing_of_the_request() {
    let scene = Scene::with_limits(limits()).await;
    let (status, body) = scene.post("/", REQUEST).await;
    assert_eq!(status, 200);
    let container = value!({"name": "web", "env": [{"name": "A", "value": "b"}]});
    assert_eq!(
        json(&body),
        value!({
            "apiVersion": "webhooks.conventions.carto.run/v1alpha1",
            "kind": "PodConventionContext",
            "metadata": {"name": "app-env"},
            "status": {
                "template": {"metadata": {}, "spec": {"containers": [container]}},
                "appliedConventions": ["env"],
            },
        })
    );
}

#[tokio::test]
async fn several_conventions_are_served_at_their_paths_whatever_these_hold() {
    let builder = Server::builder()
        .limits(limits())
        .convention("/one", Does("one"))
        .convention("/two;v={x}/*", Does("two"));
    let scene = Scene::new(builder).await;
    let mut client = scene.client().await;
    for (path, receipt) in [("/one?timeout=30s", "one"), ("/two;v={x}/*", "two")] {
        let (status, body) = client.post(path, REQUEST).await.unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        assert_eq!(
            json(&body)["status"]["appliedConventions"],
            value!([receipt])
        );
    }
    assert_eq!(client.post("/three", REQUEST).await.unwrap().0, 404);
    let get = client.ask("GET", "/one", Bytes::new()).await.unwrap();
    assert_eq!(get.0, 405);
    let health = client.ask("GET", "/healthz", Bytes::new()).await.unwrap();
    assert_eq!(health, (http_status(200), "ok\n".to_owned()));
}

fn http_status(code: u16) -> hyper::StatusCode {
    hyper::StatusCode::from_u16(code).unwrap()
}

#[tokio::test]
async fn an_error_is_a_status_whose_message_the_controller_tells() {
    let builder = Server::builder().limits(limits());
    let scene = Scene::new(builder.convention("/", Does("fails"))).await;
    let (status, body) = scene.post("/", REQUEST).await;
    assert_eq!(status, 500);
    let body = json(&body);
    assert_eq!(body["kind"], "Status");
    assert_eq!(
        body["message"],
        "set label example.com/team on the template"
    );
}

#[tokio::test]
async fn a_panic_is_an_error_that_tells_nothing_and_the_next_request_is_answered() {
    let builder = Server::builder()
        .limits(limits())
        .convention("/", Does("panics"))
        .convention("/well", Does("well"));
    let scene = Scene::new(builder).await;
    let mut client = scene.client().await;
    for _ in 0..3 {
        let (status, body) = client.post("/", REQUEST).await.unwrap();
        assert_eq!(status, 500);
        assert!(!body.contains("1234"), "{body}");
        assert_eq!(client.post("/well", REQUEST).await.unwrap().0, 200);
    }
}

#[tokio::test]
async fn a_convention_that_hangs_is_given_up() {
    let limits = Limits {
        convention: Duration::from_millis(20),
        ..limits()
    };
    let builder = Server::builder().limits(limits);
    let scene = Scene::new(builder.convention("/", Does("hangs"))).await;
    let (status, body) = scene.post("/", REQUEST).await;
    assert_eq!(status, 504);
    let message = json(&body)["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "the convention did not answer within 0.02 s");
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_a_reason() {
    let scene = Scene::with_limits(limits()).await;
    let mut client = scene.client().await;
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"spec": {{"template": {{"spec": {{"a": {open}1{close}}}}}}}}}"#);
    for (body, reason) in [
        (String::new(), "EOF while parsing"),
        ("<html>".to_owned(), "expected value"),
        ("{} {}".to_owned(), "trailing characters"),
        ("\"text\"".to_owned(), "invalid type"),
        (
            r#"{"kind": "Pod", "apiVersion": "v1"}"#.to_owned(),
            "it is a \"v1\" \"Pod\"",
        ),
        (
            r#"{"spec": {"template": {"spec": 5}}}"#.to_owned(),
            "invalid type",
        ),
        (
            r#"{"spec": {"imageConfig": [{"boms": [{"raw": "%"}]}]}}"#.to_owned(),
            "Invalid",
        ),
        (deep, "recursion limit exceeded"),
    ] {
        let (status, text) = client.post("/", body).await.unwrap();
        assert_eq!(status, 400, "{text}");
        assert!(text.contains(reason), "{text} does not say {reason}");
    }
    assert_eq!(client.post("/", REQUEST).await.unwrap().0, 200);
}

#[tokio::test]
async fn lists_that_are_null_are_empty() {
    let builder = Server::builder().limits(limits());
    let scene = Scene::new(builder.convention("/", Does("counts"))).await;
    let request = r#"{"metadata": {"name": "x", "creationTimestamp": null}, "spec": {"imageConfig": null,
        "template": {"metadata": {"labels": null}, "spec": {"containers": null}}},
        "status": {"template": {"metadata": {}, "spec": {"containers": null}}, "appliedConventions": null}}"#;
    let (status, body) = scene.post("/", request).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(json(&body)["status"]["appliedConventions"], value!([]));
}

#[tokio::test]
async fn requests_are_counted_by_path_and_outcome() {
    let builder = Server::builder()
        .limits(limits())
        .convention("/", env)
        .convention("/fails", Does("fails"));
    let scene = Scene::new(builder).await;
    let mut client = scene.client().await;
    for path in ["/", "/", "/fails"] {
        client.post(path, REQUEST).await.unwrap();
    }
    let (_, text) = client.ask("GET", "/metrics", Bytes::new()).await.unwrap();
    for line in [
        "carto_convention_requests_total{outcome=\"applied\",path=\"/\"} 2",
        "carto_convention_requests_total{outcome=\"failed\",path=\"/fails\"} 1",
        "carto_convention_connections 1",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn paths_that_cannot_be_served_are_told_before_serving() {
    let refused = async |paths: &[&str]| {
        let builder = paths.iter().fold(Server::builder(), |builder, path| {
            builder.convention(*path, env)
        });
        let scene = crate::scene::Identity::new();
        let directory = tempfile::tempdir().unwrap();
        scene.mount(directory.path(), "first");
        let bound = builder.tls_directory(directory.path()).bind().await;
        bound.err().unwrap()
    };
    assert!(matches!(refused(&[]).await, ServeError::NoConvention));
    assert!(matches!(
        refused(&["/a", "/a"]).await,
        ServeError::TwoConventions(_)
    ));
    for path in ["", "a", "/healthz", "/metrics", "/a?b", "/a b"] {
        assert!(
            matches!(refused(&[path]).await, ServeError::Path(_)),
            "{path}"
        );
    }
}

#[test]
fn the_limits_of_tests_do_not_strike() {
    let limits = limits();
    assert!(
        [limits.opening, limits.idle, limits.body, limits.convention]
            .iter()
            .all(|it| *it == NEVER)
    );
}
