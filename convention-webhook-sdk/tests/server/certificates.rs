//! Certificates.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use convention_webhook_sdk::{ServeError, Server};
use rustls::pki_types::CertificateDer;
use test_support::eventually;
use tokio::task::JoinSet;

use crate::scene::{Client, Identity, PATIENCE, REQUEST, Scene, env, handshake, limits, trusting};

#[tokio::test]
async fn tls_1_2_is_refused() {
    let scene = Scene::with_limits(limits()).await;
    let old = trusting([&scene.identity.certificate], &[&rustls::version::TLS12]);
    let refused = handshake(scene.address, &old).await.unwrap_err();
    assert!(refused.to_string().contains("ProtocolVersion"), "{refused}");
    assert_eq!(scene.post("/", REQUEST).await.0, 200);
}

#[tokio::test]
async fn http_without_tls_is_no_harm() {
    let scene = Scene::with_limits(limits()).await;
    let mut plain = tokio::net::TcpStream::connect(scene.address).await.unwrap();
    let request = b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut plain, request)
        .await
        .unwrap();
    assert_eq!(scene.post("/", REQUEST).await.0, 200);
}

/// The certificate that a new connection is shown.
async fn shown(scene: &Scene, known: &[CertificateDer<'static>]) -> CertificateDer<'static> {
    let connector = trusting(known, &[&rustls::version::TLS13]);
    let stream = handshake(scene.address, &connector).await.unwrap();
    let (_, session) = stream.get_ref();
    session.peer_certificates().unwrap()[0].clone()
}

/// Asks over new connections until it is told to stop, and counts.
async fn load(
    address: std::net::SocketAddr,
    known: Vec<CertificateDer<'static>>,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
) {
    let connector = trusting(&known, &[&rustls::version::TLS13]);
    let mut kept = Client::connect(address, &connector).await.unwrap();
    while !stop.load(Ordering::Relaxed) {
        let mut new = Client::connect(address, &connector).await.unwrap();
        for client in [&mut new, &mut kept] {
            assert_eq!(client.post("/", REQUEST).await.unwrap().0, 200);
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_exchanged_under_load_without_a_failed_request() {
    let scene = Scene::with_limits(limits()).await;
    let next: Vec<Identity> = (0..5).map(|_| Identity::new()).collect();
    let mut known = vec![scene.identity.certificate.clone()];
    known.extend(next.iter().map(|identity| identity.certificate.clone()));
    let (stop, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut clients = JoinSet::new();
    for _ in 0..3 {
        clients.spawn(load(
            scene.address,
            known.clone(),
            stop.clone(),
            answered.clone(),
        ));
    }
    for (number, identity) in next.iter().enumerate() {
        let before = answered.load(Ordering::Relaxed);
        identity.mount(scene.directory.path(), &number.to_string());
        eventually("the new certificate is shown", PATIENCE, async || {
            shown(&scene, &known).await == identity.certificate
        })
        .await;
        eventually("requests go on", PATIENCE, async || {
            answered.load(Ordering::Relaxed) > before + 5
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(client) = clients.join_next().await {
        client.expect("no request failed");
    }
}

#[tokio::test]
async fn files_that_do_not_belong_together_change_nothing_until_they_do() {
    let scene = Scene::with_limits(limits()).await;
    let (next, other) = (Identity::new(), Identity::new());
    let known = [scene.identity.certificate.clone(), next.certificate.clone()];
    let broken = Identity {
        key: other.key,
        ..Identity::new()
    };
    broken.mount(scene.directory.path(), "broken");
    eventually("the broken pair is refused", PATIENCE, async || {
        let mut client = scene.client().await;
        let (_, text) = client.ask("GET", "/metrics", "".into()).await.unwrap();
        text.contains("carto_convention_key_pairs_total{outcome=\"refused\"} 1")
    })
    .await;
    assert_eq!(shown(&scene, &known).await, scene.identity.certificate);
    next.mount(scene.directory.path(), "next");
    eventually("the next pair is shown", PATIENCE, async || {
        shown(&scene, &known).await == next.certificate
    })
    .await;
}

#[tokio::test]
async fn a_key_pair_that_cannot_be_read_is_told_before_serving_and_without_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let bind = async || {
        let builder = Server::builder().convention("/", env);
        builder
            .tls_directory(directory.path())
            .bind()
            .await
            .err()
            .unwrap()
    };
    let text = |error: ServeError| convention_webhook_sdk::ConventionError::from(error).to_string();
    assert!(text(bind().await).contains("tls.crt: No such file"));
    let identity = Identity::new();
    let write =
        |file: &str, bytes: &str| std::fs::write(directory.path().join(file), bytes).unwrap();
    write("tls.crt", "nothing");
    write("tls.key", "c2VjcmV0LWtleQ==");
    assert!(text(bind().await).contains("tls.crt has no certificate"));
    write("tls.crt", &identity.pem);
    let told = text(bind().await);
    assert!(told.contains("tls.key has no private key"), "{told}");
    assert!(!told.contains("c2VjcmV0"), "{told}");
    write("tls.key", &Identity::new().key);
    assert!(text(bind().await).contains("tls.key does not belong to tls.crt"));
}
