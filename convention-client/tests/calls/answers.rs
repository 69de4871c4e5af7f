//! What is an answer, and what is told of the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use convention_client::{CallErrorKind, Clients, DEFAULT_BUDGET, Settings};
use futures::future::join_all;

use crate::server::{
    GOOD, Reply, Server, answer, body, call, clients, failed, failed_within, shown,
};

const SOON: Duration = Duration::from_secs(2);

/// What a call ends with if the server always answers so.
async fn told(reply: impl Fn() -> Reply + Send + Sync + 'static) -> (CallErrorKind, String) {
    let server = Server::plain(move |_, _| reply()).await;
    let (kind, text) = failed(&server.http()).await;
    let prefix = format!("calling http://127.0.0.1:{}/hook: ", server.port);
    let cause = text.strip_prefix(&prefix).expect(&text);
    (kind, cause.to_owned())
}

#[tokio::test]
async fn every_status_from_200_to_206_with_a_body_is_an_answer() {
    for code in [200, 201, 202, 203, 206] {
        let status = format!("{code} x");
        let server = Server::plain(move |_, _| Reply::status(&status, "", GOOD)).await;
        assert_eq!(
            call(&server.http()).await.unwrap().applied,
            ["env"],
            "{code}"
        );
    }
    let (_, none) = told(|| Reply::Send(b"HTTP/1.1 204 x\r\n\r\n".to_vec())).await;
    assert_eq!(none, "the answer is empty");
    let (kind, many) = told(|| Reply::status("207 x", "", GOOD)).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert!(many.starts_with("it answered with status 207"), "{many}");
}

#[tokio::test]
async fn the_type_of_an_answer_is_not_asked() {
    for headers in ["", "content-type: text/plain\n", "content-type: ;;\n"] {
        let server = Server::plain(move |_, _| Reply::status("200 x", headers, GOOD)).await;
        assert!(call(&server.http()).await.is_ok(), "{headers}");
    }
    let yaml = "status:\n  template: {spec: {containers: []}}\n";
    let server = Server::plain(move |_, _| Reply::status("200 x", "", yaml)).await;
    assert!(call(&server.http()).await.is_ok());
}

#[tokio::test]
async fn garbage_is_told_to_whoever_runs_the_webhook() {
    for (body, cause) in [
        ("", "the answer is empty"),
        ("<html>no</html>", "the answer cannot be decoded"),
        ("{} {}", "the answer cannot be decoded"),
        (
            "{\"kind\": \"St\\natus\"}",
            r#"the answer is a "" "St\natus", not a"#,
        ),
    ] {
        let (kind, text) = told(move || Reply::status("200 x", "", body)).await;
        assert_eq!(kind, CallErrorKind::Webhook, "{body}");
        assert!(text.starts_with(cause), "{body}: {text}");
    }
    for bytes in [
        "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 x\r\n\u{1}: \r\n\r\n",
    ] {
        let (kind, text) = told(move || Reply::Close(bytes.into())).await;
        assert_eq!(kind, CallErrorKind::Webhook, "{bytes:?}");
        assert!(
            text.starts_with("it does not answer as HTTP/1.1 asks"),
            "{bytes:?}: {text}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_packed_unasked_is_told_so() {
    let (kind, text) = told(|| Reply::status("200 x", "content-encoding: gzip\n", "x")).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert_eq!(
        text,
        r#"the answer is encoded as "gzip", which was not asked for"#
    );
    let identity = |_, _: &_| Reply::status("200 x", "content-encoding: Identity\n", GOOD);
    let server = Server::plain(identity).await;
    assert!(call(&server.http()).await.is_ok());
}

#[tokio::test]
async fn an_error_says_what_the_webhook_says() {
    let plain = "content-type: text/plain; charset=utf-8\n";
    let json = "content-type: application/json\n";
    for (status, headers, body, text) in [
        ("500 x", plain, " no\r\nway\n", r"500: no\r\nway"),
        ("500 x", "", "no way", "500: no way"),
        (
            "400 x",
            json,
            r#"{"kind": "Status", "message": "bad\u001b\npod"}"#,
            r"400: bad\u{1b}\npod",
        ),
        ("418 x", json, r#"{"message": 5}"#, "418"),
        ("500 x", json, "{", "500"),
        ("500 x", "content-type: text/html\n", "<h1>no</h1>", "500"),
        ("500 x", "content-encoding: gzip\n", "\u{1f}", "500"),
        ("404 x", plain, "", "404"),
    ] {
        let (_, told) = told(move || Reply::status(status, headers, body)).await;
        let expected = format!("it answered with status {text}");
        assert_eq!(told, expected, "{status} {body}");
    }
}

#[tokio::test]
async fn of_a_long_error_the_beginning_is_told() {
    let (_, text) = told(|| Reply::status("500 x", "", &"é".repeat(1 << 20))).await;
    assert!(
        text.len() < 2200 && text.ends_with("é…"),
        "{} bytes",
        text.len()
    );
    let status = format!(r#"{{"message": "{}"}}"#, "x".repeat(5000));
    let (_, text) = told(move || Reply::status("500 x", "", &status)).await;
    assert!(
        text.len() < 2200 && text.ends_with("x…"),
        "{} bytes",
        text.len()
    );
}

#[tokio::test]
async fn for_whom_an_error_is_follows_from_its_status() {
    for (code, kind) in [
        (400, CallErrorKind::Webhook),
        (401, CallErrorKind::Webhook),
        (404, CallErrorKind::Webhook),
        (408, CallErrorKind::Connection),
        (413, CallErrorKind::Webhook),
        (429, CallErrorKind::Connection),
        (500, CallErrorKind::Webhook),
        (501, CallErrorKind::Webhook),
        (502, CallErrorKind::Connection),
        (503, CallErrorKind::Connection),
        (504, CallErrorKind::Connection),
    ] {
        let (told, text) = told(move || Reply::status(&format!("{code} x"), "", "")).await;
        assert_eq!(
            (told, text),
            (kind, format!("it answered with status {code}"))
        );
    }
}

#[tokio::test]
async fn an_answer_of_five_megabytes_is_read() {
    let long = format!("{}{}", GOOD, " ".repeat(5 << 20));
    let server = Server::plain(move |_, _| Reply::status("200 x", "", &long)).await;
    assert!(call(&server.http()).await.is_ok());
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused_before_it_is_read() {
    let limited = |most_answer_bytes| {
        Clients::new(Settings {
            most_answer_bytes,
            ..Settings::default()
        })
        .unwrap()
    };
    let server = Server::plain(|_, _| Reply::good()).await;
    let most = GOOD.len();
    let fits = limited(most)
        .call(&server.http(), DEFAULT_BUDGET, &body())
        .await;
    assert!(fits.is_ok());
    let too_long = limited(most - 1)
        .call(&server.http(), DEFAULT_BUDGET, &body())
        .await;
    let text = too_long.unwrap_err().to_string();
    assert!(
        text.ends_with(&format!("the answer has more than {} bytes", most - 1)),
        "{text}"
    );
    // It only says so, and sends nothing.
    let announced = "HTTP/1.1 200 x\r\ncontent-length: 99999999999\r\n\r\n";
    let (kind, text) = told(|| Reply::Hang(announced.into())).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert_eq!(text, "the answer has more than 8388608 bytes");
}

#[tokio::test]
async fn an_answer_without_end_is_cut() {
    let head = b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let chunk = [&b"1000\r\n"[..], &[b' '; 0x1000], b"\r\n"].concat();
    let (kind, text) = told(move || Reply::Endless(head.clone(), chunk.clone())).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert_eq!(text, "the answer has more than 8388608 bytes");
    let head = b"HTTP/1.1 200 x\r\n".to_vec();
    let (kind, text) = told(move || Reply::Endless(head.clone(), b"a: b\r\n".to_vec())).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert!(
        text.starts_with("it does not answer as HTTP/1.1 asks"),
        "{text}"
    );
}

#[tokio::test]
async fn an_answer_that_hangs_ends_with_the_budget() {
    let replies = [
        ("", "there was no answer within 2s"),
        ("HTTP/1.1 200 x\r\n", "there was no answer within 2s"),
        (
            "HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\n{",
            "its answer had no end within 2s",
        ),
        ("HTTP/1.1 200 x\r\n\r\n", "its answer had no end within 2s"),
    ];
    let calls = replies.map(|(reply, cause)| async move {
        let server = Server::plain(move |_, _| Reply::Hang(reply.into())).await;
        let (kind, text) = failed_within(&server.http(), SOON).await;
        assert_eq!(kind, CallErrorKind::Connection);
        assert!(text.ends_with(cause), "{reply:?}: {text}");
    });
    join_all(calls).await;
}

#[tokio::test]
async fn an_error_whose_text_hangs_is_told_without_it() {
    let head = "HTTP/1.1 400 x\r\ncontent-length: 9\r\n\r\nno";
    let (kind, text) = told(move || Reply::Hang(head.into())).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert_eq!(text, "it answered with status 400: no");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again() {
    let cut = b"HTTP/1.1 200 x\r\ncontent-length: 99\r\n\r\n{";
    let server = Server::plain(move |before, _| match before {
        0 => Reply::Close(cut.to_vec()),
        _ => Reply::Close(answer("200 x", "", GOOD.as_bytes())),
    })
    .await;
    assert!(
        clients()
            .call(&server.http(), DEFAULT_BUDGET, &body())
            .await
            .is_ok()
    );
    assert_eq!(server.requests().len(), 2);
    let (kind, text) = told(move || Reply::Close(cut.to_vec())).await;
    assert_eq!(kind, CallErrorKind::Connection);
    assert!(text.starts_with("its answer broke off: "), "{text}");
}

/// Pieces of answers, put together in any order.
const PIECES: [&[u8]; 16] = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 503 \x1b[31m\r\n",
    b"HTTP/1.1 400 \xff\r\n",
    b"HTTP/1.1 307 x\r\n",
    b"location: \xe2\x80\xaehttps://\x07/\r\n",
    b"content-type: text/plain\r\n",
    b"content-length: 9\r\n",
    b"content-length: -1\r\n",
    b"content-encoding: \xff\r\n",
    b"transfer-encoding: chunked\r\n",
    b"retry-after: 0\r\n",
    b"\r\n",
    b"\r\n{\"message\": \"a\\u0000\\u202e\"}",
    b"ffffffffffffffffff\r\n",
    b"\x00\x1b]0;x\x07\xc2\x85",
    b"{\"kind\": \"\\u0007\"}",
];

#[tokio::test]
async fn whatever_a_server_sends_the_call_ends_with_a_text_that_is_fit_for_a_condition() {
    let mut random = fastrand::Rng::with_seed(7);
    let settings = Settings {
        jitter: Arc::new(|| 0.0),
        ..Settings::default()
    };
    let clients = Clients::new(settings).unwrap();
    let (body, mut calls) = (body(), Vec::new());
    for _ in 0..300 {
        let pieces = (0..random.usize(1..7)).map(|_| random.choice(PIECES).unwrap_or_default());
        let mut bytes: Vec<u8> = pieces.flatten().copied().collect();
        if random.bool() {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        let (clients, body) = (&clients, &body);
        calls.push(async move {
            let server = Server::plain(move |_, _| Reply::Close(bytes.clone())).await;
            let budget = Duration::from_secs(20);
            clients.call(&server.http(), budget, body).await
        });
    }
    let ended = join_all(calls).await;
    let texts: BTreeSet<_> = ended
        .iter()
        .filter_map(|it| Some(shown(it.as_ref().err()?)))
        .collect();
    assert!(texts.len() > 10, "{texts:?}");
}
