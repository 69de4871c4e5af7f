//! The authorities of the machine, beside those of a convention. The environment of a process is set
//! when it begins, so the test runs itself a second time.

use std::time::Duration;

use convention_client::CallErrorKind;
use tokio::process::Command;

use crate::server::{Authority, Reply, Server, call, failed, target};

const LIMIT: Duration = Duration::from_mins(1);
/// Is there in the second run, with the port of the server.
const PORT: &str = "CARTO_TEST_ROOTS_PORT";

/// What a machine does that trusts the authority of the server.
async fn where_it_is_trusted(port: &str) {
    let url = format!("https://localhost:{port}/hook");
    let (kind, text) = failed(&target(&url, Some(&Authority::new().pem()))).await;
    assert_eq!(kind, CallErrorKind::Webhook);
    assert!(text.contains("signed by another authority"), "{text}");
    call(&target(&url, None)).await.unwrap();
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it is about the environment")]
async fn a_bundle_takes_the_place_of_the_authorities_of_the_machine() {
    if let Ok(port) = std::env::var(PORT) {
        return where_it_is_trusted(&port).await;
    }
    let authority = Authority::new();
    let server = Server::start(Some(authority.server(&["localhost"])), |_, _| Reply::good()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authorities.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    let name = "roots::a_bundle_takes_the_place_of_the_authorities_of_the_machine";
    let second = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(PORT, server.port.to_string())
        .env("SSL_CERT_FILE", &file)
        .env_remove("SSL_CERT_DIR")
        .kill_on_drop(true)
        .output();
    let second = tokio::time::timeout(LIMIT, second).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&second.stdout).into_owned();
    assert!(second.status.success(), "{said}");
    // The first was refused before it could ask anything.
    assert_eq!(server.requests().len(), 1, "{said}");
    assert_eq!(server.connections(), 2, "{said}");
}
