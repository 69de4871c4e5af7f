use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tower_test::mock;

use super::*;

type Server = mock::Handle<Request<Body>, Response<Body>>;

struct Scene {
    keys: StatusKeys,
    server: Server,
    tasks: Tasks,
}

fn scene() -> Scene {
    let (service, server) = mock::pair::<Request<Body>, Response<Body>>();
    let tasks = Tasks::new();
    let client = kube::Client::new(service, "ns");
    Scene {
        keys: start(&client, "ns", "key", &tasks),
        server,
        tasks,
    }
}

fn answer(status: StatusCode, body: &Value) -> Response<Body> {
    Response::builder()
        .status(status)
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap()
}

fn failure(code: StatusCode) -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(),
        "reason": "Any", "message": "no"});
    answer(code, &status)
}

fn secret(version: u32, key: Option<&[u8]>) -> Value {
    let data = key.map(|key| json!({"key": ByteString(key.to_owned())}));
    json!({"apiVersion": "v1", "kind": "Secret", "data": data,
        "metadata": {"name": "key", "namespace": "ns", "uid": "u", "resourceVersion": version.to_string(),
            "labels": {"kept": "yes"}}})
}

impl Scene {
    /// The next request: its method, its query and what it carries.
    async fn asked(&mut self) -> (Method, String, Value, mock::SendResponse<Response<Body>>) {
        let (request, reply) = self.server.next_request().await.unwrap();
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        (parts.method, query, body, reply)
    }

    async fn list(&mut self, items: &[Value]) {
        let (method, query, _, reply) = self.asked().await;
        assert_eq!(method, Method::GET);
        assert!(query.contains("fieldSelector=metadata.name"), "{query}");
        reply.send_response(answer(
            StatusCode::OK,
            &json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}),
        ));
    }

    /// What was written, when it was answered with this; watches in between are left without an answer.
    async fn written(&mut self, method: &Method, status: StatusCode) -> Value {
        loop {
            let (asked, query, body, reply) = self.asked().await;
            if query.contains("watch=true") {
                std::mem::forget(reply);
                continue;
            }
            assert_eq!(asked, *method);
            let sent = if status.is_success() {
                answer(status, &body)
            } else {
                failure(status)
            };
            reply.send_response(sent);
            return body;
        }
    }
}

fn key_of(written: &Value) -> StatusKey {
    let secret: Secret = serde_json::from_value(written.clone()).unwrap();
    key_in(&secret).expect("a key was written")
}

#[tokio::test(start_paused = true)]
async fn an_empty_secret_is_filled_and_the_key_is_used() {
    for before in [None, Some(&b"too short"[..])] {
        let mut scene = scene();
        scene.list(&[secret(7, before)]).await;
        let written = scene.written(&Method::PUT, StatusCode::OK).await;
        assert_eq!(
            written["metadata"]["resourceVersion"], "7",
            "of two one wins"
        );
        assert_eq!(written["metadata"]["labels"]["kept"], "yes");
        scene.keys.known().await;
        assert_eq!(scene.keys.now(), key_of(&written));
        scene.tasks.token().cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_secret_is_made() {
    let mut scene = scene();
    scene.list(&[]).await;
    let written = scene.written(&Method::POST, StatusCode::CREATED).await;
    scene.keys.known().await;
    assert_eq!(scene.keys.now(), key_of(&written));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_there_is_used_as_it_is() {
    let mut scene = scene();
    scene.list(&[secret(7, Some(&[5; 32]))]).await;
    scene.keys.known().await;
    assert_eq!(scene.keys.now(), StatusKey::new(&[5; 32]));
}

#[tokio::test(start_paused = true)]
async fn without_rights_there_is_no_key_and_nobody_waits_for_one() {
    let mut scene = scene();
    let (_, _, _, reply) = scene.asked().await;
    reply.send_response(failure(StatusCode::FORBIDDEN));
    scene.keys.known().await;
    assert!(scene.keys.now().is_none());

    let mut scene = self::scene();
    scene.list(&[secret(7, None)]).await;
    let _ = scene.written(&Method::PUT, StatusCode::FORBIDDEN).await;
    scene.keys.known().await;
    assert!(scene.keys.now().is_none());
    // Once it is allowed, the key is made without anything having happened to the Secret.
    let written = scene.written(&Method::PUT, StatusCode::OK).await;
    let mut before = StatusKey::NONE;
    assert!(scene.keys.replaced(&mut before).await);
    assert_eq!(before, key_of(&written));
}

#[tokio::test(start_paused = true)]
async fn who_was_slower_uses_the_key_of_the_other() {
    let mut scene = scene();
    scene.list(&[secret(7, None)]).await;
    let _ = scene.written(&Method::PUT, StatusCode::CONFLICT).await;
    let (_, query, _, watch) = scene.asked().await;
    assert!(query.contains("watch=true"), "{query}");
    let event = json!({"type": "MODIFIED", "object": secret(8, Some(&[6; 32]))});
    watch.send_response(answer(StatusCode::OK, &event));
    scene.keys.known().await;
    assert_eq!(scene.keys.now(), StatusKey::new(&[6; 32]));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_taken_out_is_replaced_and_everybody_is_told() {
    let mut scene = scene();
    scene.list(&[secret(7, Some(&[5; 32]))]).await;
    scene.keys.known().await;
    let mut key = scene.keys.now();
    let (_, query, _, watch) = scene.asked().await;
    assert!(query.contains("watch=true"), "{query}");
    let event = json!({"type": "MODIFIED", "object": secret(8, None)});
    watch.send_response(answer(StatusCode::OK, &event));
    let written = scene.written(&Method::PUT, StatusCode::OK).await;
    assert!(scene.keys.replaced(&mut key).await);
    assert_eq!(key, key_of(&written));
    assert_ne!(key, StatusKey::new(&[5; 32]));
}

#[tokio::test]
async fn outside_a_cluster_it_is_known_at_once_that_there_is_none() {
    let mut keys = StatusKeys::none();
    keys.known().await;
    assert!(keys.now().is_none());
    let mut none = StatusKey::NONE;
    assert!(!keys.replaced(&mut none).await);
}

#[test]
fn no_two_keys_are_the_same() {
    assert_ne!(random().unwrap(), random().unwrap());
}
