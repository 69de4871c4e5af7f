//! What a client may take.

use std::time::Duration;

use axum::body::Bytes;
use convention_webhook_sdk::Limits;
use test_support::eventually;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::scene::{PATIENCE, REQUEST, Scene, handshake, limits, trusting};

/// What an answer to these bytes is; nothing if the server ends the connection.
async fn answer_to(scene: &Scene, parts: &[&[u8]]) -> String {
    let connector = trusting([&scene.identity.certificate], &[&rustls::version::TLS13]);
    let mut stream = handshake(scene.address, &connector).await.unwrap();
    for part in parts {
        stream.write_all(part).await.unwrap();
    }
    stream.flush().await.unwrap();
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer));
        match read.await.expect("an answer or the end") {
            Ok(0) | Err(_) => break,
            Ok(read) => text.extend_from_slice(&buffer[..read]),
        }
        if text.windows(4).any(|end| end == b"\r\n\r\n") {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn head(length: usize) -> String {
    format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n")
}

#[tokio::test]
async fn a_request_of_64_mebibytes_is_answered_and_one_byte_more_is_refused() {
    const LIMIT: usize = 64 << 20;
    let scene = Scene::with_limits(limits()).await;
    let mut body = REQUEST.as_bytes().to_vec();
    body.resize(LIMIT, b' ');
    assert_eq!(scene.post("/", body).await.0, 200);
    let answer = answer_to(&scene, &[head(LIMIT + 1).as_bytes()]).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn a_body_that_does_not_say_its_length_is_refused_as_soon_as_it_is_too_long() {
    let scene = Scene::with_limits(Limits {
        body_bytes: 1000,
        ..limits()
    })
    .await;
    let head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("3e9\r\n{}\r\n", " ".repeat(1001));
    let answer = answer_to(&scene, &[head, chunk.as_bytes()]).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn lengths_that_are_none_are_refused() {
    let scene = Scene::with_limits(limits()).await;
    for length in ["18446744073709551616", "-1", "99999999999999999999999"] {
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        let answer = answer_to(&scene, &[head.as_bytes()]).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{length}: {answer}");
    }
    assert_eq!(scene.post("/", REQUEST).await.0, 200);
}

#[tokio::test]
async fn who_says_nothing_or_never_ends_the_head_is_left() {
    let scene = Scene::with_limits(Limits {
        opening: Duration::from_millis(500),
        ..limits()
    })
    .await;
    let mut silent = TcpStream::connect(scene.address).await.unwrap();
    let read = tokio::time::timeout(PATIENCE, silent.read_u8()).await;
    assert!(read.expect("the end").is_err());
    let connector = trusting([&scene.identity.certificate], &[&rustls::version::TLS13]);
    // On a busy machine the handshake alone may take longer than there is time.
    eventually("half a head is left alone", PATIENCE, async || {
        let mut slow = handshake(scene.address, &connector).await?;
        slow.write_all(b"POST / HTTP/1.1\r\nHost: loc").await?;
        let mut text = Vec::new();
        let read = tokio::time::timeout(PATIENCE, slow.read_to_end(&mut text)).await;
        let _ = read.expect("the end");
        assert_eq!(String::from_utf8_lossy(&text), "");
        anyhow::Ok(())
    })
    .await;
}

#[tokio::test]
async fn who_never_ends_the_head_of_a_later_request_is_left_too() {
    let scene = Scene::with_limits(Limits {
        idle: Duration::from_millis(500),
        ..limits()
    })
    .await;
    let first = format!("{}{REQUEST}", head(REQUEST.len()));
    let connector = trusting([&scene.identity.certificate], &[&rustls::version::TLS13]);
    // On a busy machine the first head may come too late, too.
    eventually("one answer, and the end", PATIENCE, async || {
        let mut stream = handshake(scene.address, &connector).await?;
        stream.write_all(first.as_bytes()).await?;
        stream.write_all(b"POST / HTTP/1.1\r\n").await?;
        let mut text = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await;
        let _ = read.expect("the end");
        let text = String::from_utf8_lossy(&text);
        anyhow::ensure!(text.matches("HTTP/1.1 200").count() == 1, "{text}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_body_that_never_ends_is_given_up() {
    let scene = Scene::with_limits(Limits {
        body: Duration::from_millis(100),
        ..limits()
    })
    .await;
    let answer = answer_to(&scene, &[head(100).as_bytes(), b"{"]).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 1"), "{answer}");
}

#[tokio::test]
async fn who_fills_the_room_for_bodies_does_not_hold_up_small_ones() {
    let scene = Scene::with_limits(Limits {
        body_bytes: 1 << 20,
        all_bodies_bytes: 1 << 20,
        ..limits()
    })
    .await;
    let connector = trusting([&scene.identity.certificate], &[&rustls::version::TLS13]);
    let mut hog = handshake(scene.address, &connector).await.unwrap();
    hog.write_all(head(1 << 20).as_bytes()).await.unwrap();
    hog.write_all(&vec![b' '; (1 << 20) - 1]).await.unwrap();
    hog.flush().await.unwrap();
    eventually("the room is full", PATIENCE, async || {
        let mut client = scene.client().await;
        let (_, text) = client.ask("GET", "/metrics", Bytes::new()).await.unwrap();
        text.contains("carto_convention_body_bytes 1047552\n")
    })
    .await;
    for length in [2 << 10, 60 << 10] {
        assert_eq!(scene.post("/", long_request(length)).await.0, 200);
    }
}

#[tokio::test]
async fn who_only_says_that_much_will_come_takes_no_room() {
    let scene = Scene::with_limits(Limits {
        body_bytes: 1 << 20,
        all_bodies_bytes: 1 << 20,
        ..limits()
    })
    .await;
    let connector = trusting([&scene.identity.certificate], &[&rustls::version::TLS13]);
    let head = head(1 << 20).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    let mut silent = Vec::new();
    for _ in 0..5 {
        let mut stream = handshake(scene.address, &connector).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut line = [0; 12];
        let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut line));
        read.await.expect("the body is awaited").unwrap();
        assert_eq!(&line, b"HTTP/1.1 100");
        silent.push(stream);
    }
    assert_eq!(scene.post("/", long_request(900 << 10)).await.0, 200);
}

/// A request whose answer is as long.
fn long_request(length: usize) -> String {
    let text = "x".repeat(length);
    format!(r#"{{"spec": {{"template": {{"spec": {{"a": "{text}", "containers": []}}}}}}}}"#)
}

#[tokio::test]
async fn who_does_not_take_the_answer_is_left_and_its_room_is_free_again() {
    let scene = Scene::with_limits(Limits {
        body_bytes: 8 << 20,
        all_bodies_bytes: 8 << 20,
        body: Duration::from_secs(2),
        ..limits()
    })
    .await;
    // More than what the sockets of both sides hold.
    let body = long_request(7 << 20);
    let connector = trusting([&scene.identity.certificate], &[&rustls::version::TLS13]);
    let mut deaf = handshake(scene.address, &connector).await.unwrap();
    deaf.write_all(head(body.len()).as_bytes()).await.unwrap();
    deaf.write_all(body.as_bytes()).await.unwrap();
    deaf.flush().await.unwrap();
    eventually("there is room for another", PATIENCE, async || {
        scene.post("/", body.clone()).await.0 == 200
    })
    .await;
    eventually("the connection is closed", PATIENCE, async || {
        let mut client = scene.client().await;
        let (_, text) = client.ask("GET", "/metrics", Bytes::new()).await.unwrap();
        text.contains("carto_convention_connections 1\n")
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_small_and_would_be_large_in_memory_is_refused() {
    let scene = Scene::with_limits(limits()).await;
    for (value, times) in [("0", 5 << 20), ("0", 200_000), (r#"{"":0}"#, 100_000)] {
        let values = vec![value; times].join(",");
        let body = format!(r#"{{"spec": {{"template": {{"spec": {{"a": [{values}]}}}}}}}}"#);
        let (status, text) = scene.post("/", body).await;
        assert_eq!(status, 400, "{value}");
        assert!(text.contains("more than 200000 values"), "{text}");
    }
    let (status, text) = scene
        .post("/", format!(r#"{{"spec": "{}"}}"#, "x".repeat(1 << 20)))
        .await;
    assert_eq!(status, 400);
    assert!(text.len() < 2000);
}

#[tokio::test]
async fn clients_that_only_keep_places_lose_them_to_those_with_requests() {
    let scene = Scene::with_limits(Limits {
        connections: 4,
        ..limits()
    })
    .await;
    let mut idle = Vec::new();
    for _ in 0..50 {
        idle.push(TcpStream::connect(scene.address).await.unwrap());
    }
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = scene.client().await;
        assert_eq!(client.post("/", Bytes::from(REQUEST)).await.unwrap().0, 200);
        clients.push(client);
    }
}
