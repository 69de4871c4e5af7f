use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::certificate::{LoadedCertificate, ServingCertificate};
use super::super::pki::Authority;
use super::super::server::BODY_LIMIT;
use super::super::{
    Answer, Operation, Routes, Validate, Validating, follow_directory, routes, serve,
};
use crate::metrics::Metrics;
use crate::owner::ROUTES;
use crate::shutdown::Tasks;

const PATH: &str = "/validate-carto-run-v1alpha1-clustersupplychain";

/// Denies what says so, panics at what says so, and warns about updates.
struct Sample;

impl Validate for Sample {
    fn validate(&self, kind: &str, object: &Value, operation: Operation) -> Answer {
        assert!(object["spec"]["panic"].is_null(), "poisoned");
        let error = object["spec"]["deny"]
            .as_str()
            .map(|text| format!("{kind}: {text}"));
        let warnings = if operation == Operation::Update {
            vec!["careful".to_owned()]
        } else {
            Vec::new()
        };
        Answer {
            error,
            warnings,
            ..Answer::default()
        }
    }
}

pub(super) struct Scene {
    address: SocketAddr,
    certificate: Arc<ServingCertificate>,
    metrics: Arc<Metrics>,
    tasks: Tasks,
}

#[expect(
    clippy::disallowed_methods,
    reason = "rustls checks certificates against the real time"
)]
fn authority() -> Authority {
    Authority::maintained(None, &["localhost".to_owned()], Timestamp::now()).unwrap()
}

fn loaded(authority: &Authority) -> LoadedCertificate {
    LoadedCertificate::from_pem(
        authority.serving.certificate.as_bytes(),
        authority.serving.key.as_bytes(),
    )
    .unwrap()
}

async fn scene() -> Scene {
    scene_of(routes(&ROUTES, Validating::new(Sample))).await
}

async fn scene_of(routes: Routes) -> Scene {
    let (certificate, metrics, tasks) = (
        Arc::new(ServingCertificate::new()),
        Arc::new(Metrics::new()),
        Tasks::new(),
    );
    let address = serve(0, routes, certificate.clone(), metrics.clone(), &tasks)
        .await
        .unwrap();
    Scene {
        address: SocketAddr::from(([127, 0, 0, 1], address.port())),
        certificate,
        metrics,
        tasks,
    }
}

/// A scene that already serves a certificate, and who signed it.
async fn served() -> (Scene, Authority) {
    served_of(routes(&ROUTES, Validating::new(Sample))).await
}

pub(super) async fn served_of(routes: Routes) -> (Scene, Authority) {
    let (scene, authority) = (scene_of(routes).await, authority());
    scene
        .certificate
        .replace(&loaded(&authority), &scene.metrics);
    (scene, authority)
}

pub(super) struct Client(BufReader<TlsStream<TcpStream>>);

impl Client {
    pub(super) async fn connect(scene: &Scene, bundle: &str) -> std::io::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(
            CertificateDer::pem_slice_iter(bundle.as_bytes()).map(Result::unwrap),
        );
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let connector = TlsConnector::from(Arc::new(
            config.with_root_certificates(roots).with_no_client_auth(),
        ));
        let stream = TcpStream::connect(scene.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        Ok(Self(BufReader::new(connector.connect(name, stream).await?)))
    }

    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> std::io::Result<(u16, String)> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(head.as_bytes()).await?;
        // A server that refuses early may close before it has read everything.
        let _ = self.0.write_all(body).await;
        let _ = self.0.flush().await;
        self.receive().await
    }

    async fn receive(&mut self) -> std::io::Result<(u16, String)> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let code = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            line.clear();
            self.0.read_line(&mut line).await?;
            let header = line.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(text) = header.strip_prefix("content-length: ") {
                length = text.parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        Ok((code, String::from_utf8(body).unwrap()))
    }

    async fn review(&mut self, operation: &str, spec: &Value) -> Value {
        let body = review(operation, spec);
        let (code, text) = self
            .send("POST", PATH, body.to_string().as_bytes())
            .await
            .unwrap();
        assert_eq!(code, 200, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["response"].take()
    }
}

fn review(operation: &str, spec: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": operation, "object": {"spec": spec}}})
}

#[tokio::test]
async fn verdicts_are_given_over_one_connection() {
    let (scene, authority) = served().await;
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    assert_eq!(
        client.review("CREATE", &json!({})).await,
        json!({"uid": "u", "allowed": true})
    );
    let denied = client.review("UPDATE", &json!({"deny": "no"})).await;
    assert_eq!(
        (&denied["status"]["message"], &denied["warnings"]),
        (&json!("ClusterSupplyChain: no"), &json!(["careful"]))
    );
    assert_eq!(
        client.review("DELETE", &json!({"deny": "no"})).await["allowed"],
        true,
        "deletions are never validated"
    );
    let text = String::from_utf8(scene.metrics.render()).unwrap();
    assert!(
        text.contains(
            "carto_webhook_requests_total{kind=\"ClusterSupplyChain\",outcome=\"denied\"} 1"
        ),
        "{text}"
    );
    assert!(text.contains("carto_webhook_certificate_expiry_timestamp_seconds"));
}

#[tokio::test]
async fn every_kind_has_its_path_and_nothing_else_is_served() {
    let (scene, authority) = served().await;
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    for route in ROUTES {
        let body = review("CREATE", &json!({"deny": "x"})).to_string();
        let (code, text) = client
            .send("POST", route.path, body.as_bytes())
            .await
            .unwrap();
        assert!(
            code == 200 && text.contains(&format!("\"{}: x\"", route.kind)),
            "{text}"
        );
    }
    // What is refused unread ends the connection.
    assert_eq!(
        client
            .send("POST", "/validate-other", b"{}")
            .await
            .unwrap()
            .0,
        404
    );
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    assert_eq!(client.send("GET", PATH, b"").await.unwrap().0, 405);
}

#[tokio::test]
async fn bad_input_is_refused_with_a_reason_and_the_connection_goes_on() {
    let (scene, authority) = served().await;
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"\xff\xfe",
        b"{\"kind\": \"AdmissionReview\"}",
    ] {
        let (code, text) = client.send("POST", PATH, body).await.unwrap();
        assert!(code == 400 && text.len() > 10, "{code} {text}");
    }
    assert_eq!(client.review("CREATE", &json!({})).await["allowed"], true);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let (scene, authority) = served().await;
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    let large = vec![b' '; BODY_LIMIT + 1];
    assert_eq!(client.send("POST", PATH, &large).await.unwrap().0, 413);
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    let mut fitting = review("CREATE", &json!({})).to_string().into_bytes();
    fitting.resize(BODY_LIMIT, b' ');
    assert_eq!(client.send("POST", PATH, &fitting).await.unwrap().0, 200);
}

#[tokio::test]
async fn a_validator_that_panics_fails_one_request_only() {
    let (scene, authority) = served().await;
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    let body = review("CREATE", &json!({"panic": true})).to_string();
    assert_eq!(
        client.send("POST", PATH, body.as_bytes()).await.unwrap().0,
        500
    );
    assert_eq!(client.review("CREATE", &json!({})).await["allowed"], true);
}

#[tokio::test]
async fn without_a_certificate_there_is_no_handshake_and_with_one_there_is() {
    let (scene, authority) = (scene().await, authority());
    assert!(!scene.certificate.is_loaded());
    assert!(Client::connect(&scene, &authority.trusted()).await.is_err());
    scene
        .certificate
        .replace(&loaded(&authority), &scene.metrics);
    assert!(scene.certificate.is_loaded());
    assert!(Client::connect(&scene, &authority.trusted()).await.is_ok());
}

#[tokio::test]
async fn who_speaks_no_tls_harms_nobody() {
    let (scene, authority) = served().await;
    let mut plain = TcpStream::connect(scene.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest).await;
    let _silent = TcpStream::connect(scene.address).await.unwrap();
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    assert_eq!(client.review("CREATE", &json!({})).await["allowed"], true);
}

/// The certificate is exchanged a hundred times while clients come and go; no request fails.
#[tokio::test]
async fn certificates_change_under_traffic() {
    let (scene, first) = served().await;
    let authorities = [first, authority(), authority()];
    let bundle: String = authorities.iter().map(Authority::trusted).collect();
    let (scene, answered) = (Arc::new(scene), Arc::new(AtomicUsize::new(0)));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (scene, bundle, answered) = (scene.clone(), bundle.clone(), answered.clone());
        clients.spawn(async move {
            let mut lasting = Client::connect(&scene, &bundle).await.unwrap();
            for _ in 0..25 {
                let mut fresh = Client::connect(&scene, &bundle).await.unwrap();
                for client in [&mut lasting, &mut fresh] {
                    assert_eq!(client.review("CREATE", &json!({})).await["allowed"], true);
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
    }
    let mut turns = 0;
    while !clients.is_empty() {
        scene
            .certificate
            .replace(&loaded(&authorities[turns % 3]), &scene.metrics);
        turns += 1;
        tokio::select! {
            Some(ended) = clients.join_next() => ended.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
    assert!(turns > 3, "{turns}");
    assert_eq!(answered.load(Ordering::SeqCst), 200);
    let only_the_last: String = authorities[(turns - 1) % 3].trusted();
    assert!(Client::connect(&scene, &only_the_last).await.is_ok());
    assert!(
        Client::connect(&scene, &authorities[turns % 3].trusted())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn shutdown_closes_idle_connections_and_ends() {
    let (scene, authority) = served().await;
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    client.review("CREATE", &json!({})).await;
    let _handshaking = TcpStream::connect(scene.address).await.unwrap();
    scene.tasks.token().cancel();
    scene.tasks.join(Duration::from_mins(1)).await.unwrap();
    assert!(client.receive().await.is_err());
}

/// Its Service sends requests to a pod until every node knows that it ends.
#[tokio::test]
async fn who_comes_at_the_end_is_still_answered() {
    let (scene, authority) = served().await;
    let mut kept = Client::connect(&scene, &authority.trusted()).await.unwrap();
    kept.review("CREATE", &json!({})).await;
    scene.tasks.token().cancel();
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    for client in [&mut kept, &mut client] {
        assert_eq!(client.review("CREATE", &json!({})).await["allowed"], true);
        assert!(client.receive().await.is_err(), "it is to leave");
    }
    scene.tasks.join(Duration::from_mins(1)).await.unwrap();
}

/// The head of a review whose body is yet to come.
async fn begun(scene: &Scene, authority: &Authority) -> Client {
    let mut client = Client::connect(scene, &authority.trusted()).await.unwrap();
    let head =
        format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7000000\r\n\r\n{{");
    client.0.write_all(head.as_bytes()).await.unwrap();
    client.0.flush().await.unwrap();
    client
}

#[tokio::test]
async fn slow_clients_keep_nobody_out_and_nobody_from_ending() {
    let (scene, authority) = served().await;
    let mut slow = Vec::new();
    for _ in 0..63 {
        slow.push(begun(&scene, &authority).await);
    }
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    assert_eq!(client.review("CREATE", &json!({})).await["allowed"], true);
    // One more than there are places: whoever is slow is told so in time.
    let mut late = Client::connect(&scene, &authority.trusted()).await.unwrap();
    assert_eq!(late.review("CREATE", &json!({})).await["allowed"], true);
    for client in &mut slow {
        let answer = tokio::time::timeout(Duration::from_mins(1), client.receive());
        // Otherwise the place was needed.
        if let Ok((code, _)) = answer.await.expect("an answer or the end") {
            assert_eq!(code, 408);
        }
    }
    let _hanging = begun(&scene, &authority).await;
    scene.tasks.token().cancel();
    scene.tasks.join(Duration::from_mins(1)).await.unwrap();
}

fn write(directory: &std::path::Path, authority: &Authority) {
    // As the kubelet does: new files in a new directory, then the symlink is swapped.
    let fresh = tempfile::tempdir_in(directory).unwrap().keep();
    std::fs::write(fresh.join("tls.crt"), &authority.serving.certificate).unwrap();
    std::fs::write(fresh.join("tls.key"), &authority.serving.key).unwrap();
    let (link, temporary) = (directory.join("..data"), directory.join("..data_tmp"));
    std::os::unix::fs::symlink(&fresh, &temporary).unwrap();
    std::fs::rename(&temporary, &link).unwrap();
    for name in ["tls.crt", "tls.key"] {
        let _ = std::os::unix::fs::symlink(format!("..data/{name}"), directory.join(name));
    }
}

pub(super) fn leaf(authority: &Authority) -> Vec<u8> {
    CertificateDer::from_pem_slice(authority.serving.certificate.as_bytes())
        .unwrap()
        .to_vec()
}

/// Time is paused: nothing here waits for the network.
#[tokio::test(start_paused = true)]
async fn a_mounted_secret_is_read_again_when_it_changes() {
    let (certificate, tasks) = (Arc::new(ServingCertificate::new()), Tasks::new());
    let directory = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new());
    let following = follow_directory(directory.path().to_owned(), certificate.clone(), metrics);
    tasks.spawn_until_stopped("certificate", following);
    let (one, two) = (authority(), authority());
    let minute = Duration::from_mins(1);
    tokio::time::sleep(minute).await;
    assert!(
        !certificate.is_loaded(),
        "an empty directory is no error, only not ready"
    );
    write(directory.path(), &one);
    tokio::time::sleep(minute).await;
    assert_eq!(certificate.leaf(), Some(leaf(&one)));
    std::fs::write(directory.path().join("..data/tls.key"), "damaged").unwrap();
    tokio::time::sleep(minute).await;
    assert_eq!(
        certificate.leaf(),
        Some(leaf(&one)),
        "the old certificate stays in use"
    );
    write(directory.path(), &two);
    tokio::time::sleep(minute).await;
    assert_eq!(certificate.leaf(), Some(leaf(&two)));
    tasks.token().cancel();
    tasks.join(minute).await.unwrap();
}
