//! When a webhook is asked once more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convention_client::{CallErrorKind, Clients, DEFAULT_BUDGET, Settings};
use test_support::eventually;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use crate::server::{
    Authority, GOOD, Reply, Server, answer, body, call, clients, failed, failed_within, received,
    refusing, shown, target,
};

#[tokio::test]
async fn a_webhook_that_says_when_is_asked_again_then() {
    for status in ["429 x", "500 x", "503 x"] {
        let server = Server::plain(move |before, _| match before {
            0 => Reply::status(status, "retry-after: 1\n", "busy"),
            _ => Reply::good(),
        })
        .await;
        let began = Instant::now();
        call(&server.http()).await.unwrap();
        assert!(began.elapsed() >= Duration::from_secs(1));
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn one_that_does_not_say_when_is_not_asked_again() {
    for (status, headers) in [
        ("429 x", ""),
        ("503 x", ""),
        ("503 x", "retry-after: soon\n"),
        ("400 x", "retry-after: 0\n"),
    ] {
        let server = Server::plain(move |_, _| Reply::status(status, headers, "busy")).await;
        let (_, text) = failed(&server.http()).await;
        assert!(text.ends_with(": busy"), "{text}");
        assert_eq!(server.requests().len(), 1, "{status} {headers}");
    }
}

#[tokio::test]
async fn who_asks_for_more_time_than_there_is_gets_no_second_call() {
    let server = Server::plain(|_, _| Reply::status("503 x", "retry-after: 31\n", "")).await;
    let error = clients()
        .call(&server.http(), DEFAULT_BUDGET, &body())
        .await
        .unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(31)));
    assert_eq!(shown(&error).0, CallErrorKind::Connection);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn who_always_asks_to_be_asked_again_is_not_asked_for_ever() {
    let settings = Settings {
        jitter: Arc::new(|| 0.0),
        ..Settings::default()
    };
    let clients = Clients::new(settings).unwrap();
    let server = Server::plain(|_, _| Reply::status("429 x", "retry-after: 0\n", "no")).await;
    let error = clients.call(&server.http(), DEFAULT_BUDGET, &body()).await;
    let (_, text) = shown(&error.unwrap_err());
    assert!(text.ends_with("it answered with status 429: no"), "{text}");
    assert_eq!(server.requests().len(), 10);
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again() {
    let server = Server::plain(|before, _| match before {
        0 | 1 => Reply::Reset,
        _ => Reply::good(),
    })
    .await;
    call(&server.http()).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests
            .iter()
            .all(|request| request.body == requests[0].body)
    );
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_meanwhile_is_no_failure() {
    // It says that it keeps the connection, and closes it.
    let server = Server::plain(|_, _| Reply::Close(answer("200 x", "", b"{}"))).await;
    let clients = clients();
    for _ in 0..20 {
        clients
            .call(&server.http(), DEFAULT_BUDGET, &body())
            .await
            .unwrap();
    }
    assert_eq!(server.connections(), 20);
}

#[tokio::test]
async fn nobody_there_is_told_after_some_tries() {
    let (port, _held) = refusing();
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let settings = Settings {
        jitter: Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            0.0
        }),
        ..Settings::default()
    };
    let target = target(&format!("http://127.0.0.1:{port}/"), None);
    let clients = Clients::new(settings).unwrap();
    let error = clients.call(&target, DEFAULT_BUDGET, &body()).await;
    let (kind, text) = shown(&error.unwrap_err());
    assert_eq!(kind, CallErrorKind::Connection);
    assert!(text.contains("Connection refused"), "{text}");
    assert!(
        text.starts_with(&format!("calling http://127.0.0.1:{port}/: ")),
        "{text}"
    );
    assert_eq!(tries.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_host_that_nobody_knows_is_told() {
    // No server of names has to be asked about it.
    let host = "a".repeat(64);
    let (kind, text) = failed(&target(&format!("http://{host}/"), None)).await;
    assert_eq!(kind, CallErrorKind::Connection);
    let expected = format!("calling http://{host}:80/: dns error");
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test]
async fn a_server_that_is_up_in_a_moment_is_reached() {
    let (port, socket) = refusing();
    let socket = Mutex::new(Some(socket));
    let (up, mut listening) = tokio::sync::mpsc::channel(1);
    let settings = Settings {
        // It is asked for when the first try has failed.
        jitter: Arc::new(move || {
            if let Some(socket) = socket.lock().unwrap().take() {
                up.try_send(socket.listen(1).unwrap()).unwrap();
            }
            0.0
        }),
        ..Settings::default()
    };
    let clients = Clients::new(settings).unwrap();
    let (target, body) = (target(&format!("http://127.0.0.1:{port}/"), None), body());
    let serve = async {
        let (mut stream, _) = listening.recv().await.unwrap().accept().await.unwrap();
        received(&mut stream).await.unwrap();
        stream
            .write_all(&answer("200 x", "", GOOD.as_bytes()))
            .await
            .unwrap();
        std::future::pending::<()>().await;
    };
    // Should it give up, nobody would ever come to be served.
    let answer = tokio::select! {
        answer = clients.call(&target, DEFAULT_BUDGET, &body) => Some(answer),
        () = serve => None,
    };
    assert!(matches!(answer, Some(Ok(_))), "{answer:?}");
}

#[tokio::test]
async fn a_call_that_waits_to_be_asked_again_keeps_no_other_waiting() {
    let server = Server::plain(|before, _| match before {
        0 => Reply::status("503 x", "retry-after: 25\n", ""),
        _ => Reply::good(),
    })
    .await;
    let settings = Settings {
        most_calls_to_one_target: 1,
        ..Settings::default()
    };
    let (clients, target, body) = (Clients::new(settings).unwrap(), server.http(), body());
    let others = async {
        let is_begun = || async { server.requests().len() == 1 };
        eventually("the first call", Duration::from_mins(1), is_begun).await;
        clients.call(&target, Duration::from_secs(20), &body).await
    };
    let answer = tokio::select! {
        first = clients.call(&target, DEFAULT_BUDGET, &body) => first,
        others = others => others,
    };
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn what_failed_before_is_told_when_time_is_over() {
    let server = Server::plain(|before, _| match before {
        0 => Reply::status("503 x", "retry-after: 0\n", "too busy"),
        _ => Reply::Hang(Vec::new()),
    })
    .await;
    let (kind, text) = failed_within(&server.http(), Duration::from_secs(2)).await;
    assert_eq!(kind, CallErrorKind::Connection);
    assert!(
        text.contains("there was no answer within 2s; the try before: "),
        "{text}"
    );
    assert!(
        text.ends_with("it answered with status 503: too busy"),
        "{text}"
    );
}

#[tokio::test]
async fn a_server_that_takes_a_connection_and_says_nothing_does_not_take_all_the_time() {
    let authority = Authority::new();
    let tls = Some(authority.server(&["localhost"]));
    let server = Server::start_after(2, tls, |_, _| Reply::good()).await;
    let settings = Settings {
        connect: Duration::from_secs(1),
        ..Settings::default()
    };
    let clients = Clients::new(settings).unwrap();
    let target = server.https(&authority.pem());
    clients
        .call(&target, DEFAULT_BUDGET, &body())
        .await
        .unwrap();
    assert!(server.connections() >= 3);

    let server = Server::start_after(9, None, |_, _| Reply::good()).await;
    let target = server.https(&authority.pem());
    let error = clients.call(&target, DEFAULT_BUDGET, &body()).await;
    let (kind, text) = shown(&error.unwrap_err());
    assert_eq!(kind, CallErrorKind::Connection);
    assert!(text.ends_with("no connection within 1s"), "{text}");
}
