//! Other places that a webhook names.

use convention_client::CallErrorKind;

use crate::server::{Authority, Reply, Server, call, failed, target};

fn to(status: &'static str, location: String) -> impl Fn(usize, &crate::server::Received) -> Reply {
    move |_, _| Reply::status(status, &format!("location: {location}\n"), "")
}

#[tokio::test]
async fn a_redirect_that_keeps_the_request_is_followed_with_it() {
    for status in ["307 x", "308 x"] {
        let there = Server::plain(|_, _| Reply::good()).await;
        let here = Server::plain(to(
            status,
            format!("http://127.0.0.1:{}/there?x=y", there.port),
        ))
        .await;
        call(&here.http()).await.unwrap();
        let (first, second) = (here.requests().remove(0), there.requests().remove(0));
        assert!(
            second.head.starts_with("POST /there?x=y HTTP/1.1\r\n"),
            "{}",
            second.head
        );
        assert_eq!(first.body, second.body);
        assert!(!first.body.is_empty());
    }
}

#[tokio::test]
async fn a_redirect_that_loses_the_request_is_refused() {
    for status in ["301 x", "302 x", "303 x"] {
        let there = Server::plain(|_, _| Reply::good()).await;
        let here = Server::plain(to(status, format!("http://127.0.0.1:{}/", there.port))).await;
        let (kind, text) = failed(&here.http()).await;
        assert_eq!(kind, CallErrorKind::Webhook);
        assert!(
            text.contains(&status[..3]) && text.contains("only 307 and 308"),
            "{text}"
        );
        assert_eq!(there.requests().len(), 0);
    }
    let (_, text) = failed(
        &Server::plain(|_, _| Reply::status("304 x", "", ""))
            .await
            .http(),
    )
    .await;
    assert!(text.ends_with("it answered with status 304"), "{text}");
}

#[tokio::test]
async fn nothing_goes_from_https_to_http() {
    let authority = Authority::new();
    let there = Server::plain(|_, _| Reply::good()).await;
    let script = to("307 x", format!("http://127.0.0.1:{}/", there.port));
    let here = Server::start(Some(authority.server(&["localhost"])), script).await;
    let (kind, text) = failed(&here.https(&authority.pem())).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert!(text.contains("a redirect to http"), "{text}");
    assert_eq!(there.connections(), 0);
}

#[tokio::test]
async fn the_place_that_is_named_is_trusted_for_the_same_authorities_only() {
    let (authority, other) = (Authority::new(), Authority::new());
    let there = Server::start(Some(other.server(&["localhost"])), |_, _| Reply::good()).await;
    let script = to("307 x", format!("https://localhost:{}/", there.port));
    let here = Server::start(Some(authority.server(&["localhost"])), script).await;
    let (_, text) = failed(&here.https(&authority.pem())).await;
    assert!(text.contains("another authority"), "{text}");
    assert!(
        text.contains(&format!("calling https://localhost:{}/", there.port)),
        "{text}"
    );
    call(&here.https(&(authority.pem() + &other.pem())))
        .await
        .unwrap();
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let server = Server::plain(to("308 x", "/hook".to_owned())).await;
    let (kind, text) = failed(&server.http()).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert!(text.ends_with("after 5 other redirects"), "{text}");
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn a_redirect_from_http_to_https_is_followed() {
    let authority = Authority::new();
    let there = Server::start(Some(authority.server(&["localhost"])), |_, _| Reply::good()).await;
    let location = format!("https://localhost:{}/", there.port);
    let here = Server::plain(to("307 x", location)).await;
    let url = format!("http://127.0.0.1:{}/", here.port);
    call(&target(&url, Some(&authority.pem()))).await.unwrap();
}
