//! Who is believed to be the webhook.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use convention_client::{CallErrorKind, Clients, DEFAULT_BUDGET, Settings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, date_time_ymd};
use test_support::TestKeyPair;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::server::{Authority, Reply, Server, body, call, clients, failed, target};

#[tokio::test]
async fn the_authority_of_the_convention_is_trusted() {
    let authority = Authority::new();
    let server = Server::start(Some(authority.server(&["localhost"])), |_, _| Reply::good()).await;
    call(&server.https(&authority.pem())).await.unwrap();
    // Also as one of several, without a line break between them.
    let several = format!("{}{}", Authority::new().pem().trim_end(), authority.pem());
    call(&server.https(&several)).await.unwrap();
}

#[tokio::test]
async fn another_authority_is_not_trusted_and_it_is_said_what_to_do() {
    let authority = Authority::new();
    let server = Server::start(Some(authority.server(&["localhost"])), |_, _| Reply::good()).await;
    let (kind, text) = failed(&server.https(&Authority::new().pem())).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert!(text.contains("signed by another authority"), "{text}");
    assert!(
        text.contains("clientConfig.caBundle") && text.contains("cert-manager"),
        "{text}"
    );
    assert_eq!(server.requests().len(), 0);
    // It is no trouble that passes.
    assert_eq!(server.connections(), 1);

    let url = format!("https://localhost:{}/hook", server.port);
    let (kind, text) = failed(&target(&url, None)).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert!(text.contains("clientConfig.caBundle"), "{text}");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let no_name =
        "has no subject alternative name, and is to have localhost; a common name does not count";
    for (names, cause) in [
        (
            &["hooks.team.svc", "127.0.0.1"][..],
            "is for hooks.team.svc, 127.0.0.1, not for localhost",
        ),
        (&["*.localhost"], "is for *.localhost, not for localhost"),
        (&[], no_name),
    ] {
        let tls = Some(authority.server(names));
        let server = Server::start(tls, |_, _| Reply::good()).await;
        let (kind, text) = failed(&server.https(&authority.pem())).await;
        assert_eq!(kind, CallErrorKind::Webhook);
        assert!(
            text.ends_with(&format!("its certificate {cause}")),
            "{text}"
        );
        assert_eq!(server.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_certificate_out_of_its_time_is_refused() {
    let authority = Authority::new();
    let tls = authority.server_with(&["localhost"], |params| {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let server = Server::start(Some(tls), |_, _| Reply::good()).await;
    let (kind, text) = failed(&server.https(&authority.pem())).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    // In the same words at any time: the condition changes only when something else does.
    let expected = "its certificate expired on Mon, 01 Jan 2001 00:00:00 GMT";
    assert!(text.ends_with(expected), "{text}");

    let tls = authority.server_with(&["localhost"], |params| {
        params.not_before = date_time_ymd(3000, 1, 1);
        params.not_after = date_time_ymd(3001, 1, 1);
    });
    let server = Server::start(Some(tls), |_, _| Reply::good()).await;
    let (_, text) = failed(&server.https(&authority.pem())).await;
    let expected = "its certificate is not valid before Wed, 01 Jan 3000 00:00:00 GMT";
    assert!(text.ends_with(expected), "{text}");
}

#[tokio::test]
async fn the_time_is_that_of_the_clock_that_is_given() {
    let authority = Authority::new();
    let tls = authority.server_with(&["localhost"], |params| {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let server = Server::start(Some(tls), |_, _| Reply::good()).await;
    let at = |days| Settings {
        // The authority itself is trusted at any time: nobody signed it.
        now: Arc::new(move || SystemTime::UNIX_EPOCH + Duration::from_hours(24) * days),
        ..Settings::default()
    };
    let in_2000 = Clients::new(at(11_000)).unwrap();
    let target = server.https(&authority.pem());
    in_2000
        .call(&target, DEFAULT_BUDGET, &body())
        .await
        .unwrap();
    let in_2002 = Clients::new(at(11_700)).unwrap();
    assert!(
        in_2002
            .call(&target, DEFAULT_BUDGET, &body())
            .await
            .is_err()
    );
}

/// Made by itself, and calling itself an authority, as `openssl req -x509` does it.
fn own_authority(name: &str, change: impl FnOnce(&mut CertificateParams)) -> (String, TestKeyPair) {
    let own = TestKeyPair::signed_by_itself_with(&[name], |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(params);
    });
    let own = own.unwrap();
    (own.certificate_pem(), own)
}

#[tokio::test]
async fn a_server_that_is_its_own_authority_is_trusted_if_the_bundle_has_it() {
    let (pem, own) = own_authority("localhost", |_| {});
    let server = Server::start(Some(own.server_config().unwrap()), |_, _| Reply::good()).await;
    call(&server.https(&pem)).await.unwrap();
    let (_, text) = failed(&server.https(&Authority::new().pem())).await;
    assert!(text.contains("certificate"), "{text}");

    // One that does not call itself an authority is none for others, and trusted all the same.
    let (pem, own) = own_authority("localhost", |params| params.is_ca = IsCa::NoCa);
    let server = Server::start(Some(own.server_config().unwrap()), |_, _| Reply::good()).await;
    call(&server.https(&pem)).await.unwrap();

    let (pem, own) = own_authority("other", |_| {});
    let server = Server::start(Some(own.server_config().unwrap()), |_, _| Reply::good()).await;
    let (_, text) = failed(&server.https(&pem)).await;
    assert!(text.contains("not for localhost"), "{text}");

    let (pem, own) = own_authority("localhost", |params| {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let server = Server::start(Some(own.server_config().unwrap()), |_, _| Reply::good()).await;
    let (_, text) = failed(&server.https(&pem)).await;
    assert!(text.contains("expired"), "{text}");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn another_authority_means_another_connection() {
    let (one, other) = (Authority::new(), Authority::new());
    let server = Server::start(Some(one.server(&["localhost"])), |_, _| Reply::good()).await;
    let clients = clients();
    let (old, both) = (
        server.https(&one.pem()),
        server.https(&(one.pem() + &other.pem())),
    );
    for _ in 0..2 {
        clients.call(&old, DEFAULT_BUDGET, &body()).await.unwrap();
        clients.call(&both, DEFAULT_BUDGET, &body()).await.unwrap();
    }
    assert_eq!(server.connections(), 2);
    // The connection that is there does not make somebody trusted who is not any more.
    let new = server.https(&other.pem());
    assert!(clients.call(&new, DEFAULT_BUDGET, &body()).await.is_err());
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_server_without_tls_is_told_to_its_operator() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // What a server of HTTP says to what it cannot read.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let url = format!("https://localhost:{port}/");
    let (kind, text) = failed(&target(&url, Some(&Authority::new().pem()))).await;
    assert_eq!(kind, CallErrorKind::Webhook, "{text}");
    assert!(text.contains("does not speak TLS"), "{text}");
}

#[tokio::test]
async fn only_http_1_is_spoken() {
    let authority = Authority::new();
    let mut tls = authority.server(&["localhost"]);
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let server = Server::start(Some(tls), |_, _| Reply::good()).await;
    call(&server.https(&authority.pem())).await.unwrap();
    assert!(server.requests()[0].head.contains(" HTTP/1.1\r\n"));
}
