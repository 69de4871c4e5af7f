//! What is sent.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use convention_client::{CallErrorKind, Clients, DEFAULT_BUDGET, RequestBody, Settings, StoredBom};
use convention_protocol::{Bom, ImageConfig, PodConventionContext, PodTemplate};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::server::{Reply, Server, answer, body, clients, header, shown, target};

#[tokio::test]
async fn a_webhook_sees_what_the_api_server_would_send() {
    let server = Server::plain(|_, _| Reply::good()).await;
    let settings = Settings {
        user_agent: "conventions-controller/1.2.3".to_owned(),
        ..Settings::default()
    };
    let clients = Clients::new(settings).unwrap();
    let answer = clients
        .call(&server.http(), DEFAULT_BUDGET, &body())
        .await
        .unwrap();
    assert_eq!(answer.applied, ["env"]);
    assert_eq!(answer.template.unwrap().containers(), 0);

    let request = server.requests().remove(0);
    assert!(
        request
            .head
            .starts_with("POST /hook?timeout=30s HTTP/1.1\r\n"),
        "{}",
        request.head
    );
    let host = format!("127.0.0.1:{}", server.port);
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json, */*"),
        ("user-agent", "conventions-controller/1.2.3"),
        ("content-length", &request.body.len().to_string()),
        ("host", &host),
    ] {
        assert_eq!(
            header(&request.head, name).as_deref(),
            Some(value),
            "{name}"
        );
    }
    for name in [
        "authorization",
        "transfer-encoding",
        "expect",
        "accept-encoding",
    ] {
        assert_eq!(header(&request.head, name), None);
    }
    let sent: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(sent["kind"], "PodConventionContext");
    assert_eq!(sent["metadata"]["name"], "app-env");
}

#[tokio::test]
async fn credentials_of_a_url_are_not_sent() {
    let server = Server::plain(|_, _| Reply::status("500 x", "", "")).await;
    let url = format!("http://user:word@127.0.0.1:{}/hook?a=b#c", server.port);
    let error = clients()
        .call(&target(&url, None), DEFAULT_BUDGET, &body())
        .await;
    let (_, text) = shown(&error.unwrap_err());
    assert!(!text.contains("word"), "{text}");
    let head = server.requests().remove(0).head;
    assert_eq!(header(&head, "authorization"), None);
    assert!(
        head.starts_with("POST /hook?timeout=30s HTTP/1.1"),
        "{head}"
    );
}

#[tokio::test]
async fn the_budget_is_told_in_whole_seconds() {
    let server = Server::plain(|_, _| Reply::good()).await;
    let budget = Duration::from_millis(90_500);
    clients()
        .call(&server.http(), budget, &body())
        .await
        .unwrap();
    assert!(server.requests()[0].head.contains("?timeout=90s "));
}

/// A request with a bill of materials of so many bytes, in memory and in a file.
fn large(length: usize) -> (Vec<u8>, RequestBody) {
    let raw: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[1]).collect();
    let image = |boms| ImageConfig {
        image: "web".to_owned(),
        boms,
        config: Value::Null,
    };
    let context = |boms| {
        let template = PodTemplate::default();
        PodConventionContext::request("app-env".to_owned(), template, vec![image(boms)])
    };
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&raw).unwrap();
    let stored = StoredBom {
        name: "sbom".to_owned(),
        file: Arc::new(file),
        offset: 0,
        length: length.try_into().unwrap(),
    };
    let stored = BTreeMap::from([("web".to_owned(), vec![stored])]);
    let body = RequestBody::new(&context(Vec::new()), &stored).unwrap();
    let bom = Bom {
        name: "sbom".to_owned(),
        raw,
    };
    (serde_json::to_vec(&context(vec![bom])).unwrap(), body)
}

#[tokio::test]
async fn bills_of_materials_arrive_whole_however_often_they_are_sent() {
    let (expected, body) = large(5_000_001);
    let server = Server::plain(|before, _| match before {
        0 => Reply::status("503 busy", "retry-after: 0\n", ""),
        1 => Reply::status("307 there", "location: /other\n", ""),
        _ => Reply::good(),
    })
    .await;
    clients()
        .call(&server.http(), DEFAULT_BUDGET, &body)
        .await
        .unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.body == expected));
    assert!(requests[2].head.starts_with("POST /other HTTP"));
}

#[tokio::test]
async fn a_file_that_was_cut_is_no_fault_of_the_webhook() {
    let server = Server::plain(|_, _| Reply::good()).await;
    let stored = StoredBom {
        name: "sb\nom".to_owned(),
        file: Arc::new(tempfile::tempfile().unwrap()),
        offset: 0,
        length: 1 << 20,
    };
    let image = ImageConfig {
        image: "web".to_owned(),
        ..ImageConfig::default()
    };
    let context =
        PodConventionContext::request("a".to_owned(), PodTemplate::default(), vec![image]);
    let stored = BTreeMap::from([("web".to_owned(), vec![stored])]);
    let body = RequestBody::new(&context, &stored).unwrap();
    let error = clients().call(&server.http(), DEFAULT_BUDGET, &body).await;
    let (kind, text) = shown(&error.unwrap_err());
    assert_eq!(kind, CallErrorKind::Request, "{text}");
    assert!(text.contains("cannot read the bill of materials"), "{text}");
    assert_eq!(server.requests().len(), 0);
}

/// A server that limits requests answers before it has read them.
#[tokio::test]
async fn an_answer_that_comes_before_the_request_was_read_is_heard() {
    let (_, body) = large(20_000_000);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut some = [0; 1000];
            stream.read_exact(&mut some).await.unwrap();
            let refused = answer("413 too large", "connection: close\n", b"at most 1 MiB");
            stream.write_all(&refused).await.unwrap();
            // As servers do, it reads on for a while, so that its answer is not lost with the rest.
            let mut rest = vec![0; 1 << 20];
            while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        }
    });
    let target = target(&format!("http://127.0.0.1:{port}/"), None);
    let error = clients().call(&target, DEFAULT_BUDGET, &body).await;
    let (kind, text) = shown(&error.unwrap_err());
    assert_eq!(kind, CallErrorKind::Webhook, "{text}");
    assert!(
        text.ends_with("it answered with status 413: at most 1 MiB"),
        "{text}"
    );
}
