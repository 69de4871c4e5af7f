//! The way through a proxy that the environment names. The environment of a process is set when it
//! begins, so the test runs itself a second time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use conventions::credentials::Keyring;
use image_registry::{Cause, FaultKind, Images, Pass, Settings, Unobserved};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;

const LIMIT: Duration = Duration::from_mins(1);
/// Is there in the second run.
const SECOND: &str = "CARTO_TEST_PROXY_SECOND";

const IMAGES: [&str; 2] = ["127.0.0.1:1/app", "registry.example:8443/app"];

/// Asks for both images, neither of which is there.
async fn ask(hosts_folder: Option<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        tries: 1,
        budget: Duration::from_secs(20),
        hosts_folder,
        ..Settings::new(folder.path())
    };
    let images = Images::new(settings, Arc::new(Unobserved)).unwrap();
    for image in IMAGES {
        let resolved = images
            .resolve(image, &Keyring::default(), &Pass::default())
            .await;
        let error = resolved.unwrap_err();
        assert_eq!(error.kind(), FaultKind::Infrastructure, "{error}");
        assert!(!matches!(error.cause(), Cause::Installation(_)), "{error}");
    }
}

/// A folder in which both registries have the same file of authorities.
fn hosts() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, "").unwrap();
    for host in ["127.0.0.1:1", "registry.example:8443"] {
        let of_host = folder.path().join(host);
        std::fs::create_dir(&of_host).unwrap();
        let text = format!("server = \"https://{host}\"\nca = \"{}\"\n", file.display());
        std::fs::write(of_host.join("hosts.toml"), text).unwrap();
    }
    folder
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it is about the environment")]
async fn registries_are_asked_by_the_proxy_of_the_environment_and_loopback_is_not() {
    if std::env::var_os(SECOND).is_some() {
        let hosts = hosts();
        ask(None).await;
        ask(Some(hosts.path().to_owned())).await;
        return;
    }
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let mut second = Command::new(std::env::current_exe().unwrap())
        .env(SECOND, "1")
        .env("HTTPS_PROXY", &address)
        .env("HTTP_PROXY", &address)
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .env_remove("https_proxy")
        .env_remove("http_proxy")
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // All that comes is for the registry: once as it is, and once with authorities of its own.
    for _ in 0..2 {
        let accepted = tokio::time::timeout(LIMIT, proxy.accept()).await;
        let (mut connection, _) = accepted.unwrap().unwrap();
        let mut line = String::new();
        BufReader::new(&mut connection)
            .read_line(&mut line)
            .await
            .unwrap();
        let refusal = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n";
        connection.write_all(refusal).await.unwrap();
        drop(connection);
        assert_eq!(line.trim(), "CONNECT registry.example:8443 HTTP/1.1");
    }
    let ended = tokio::time::timeout(LIMIT, second.wait()).await;
    assert!(ended.unwrap().unwrap().success());
}
