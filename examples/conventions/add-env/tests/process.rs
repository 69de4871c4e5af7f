//! The server as a process: what the environment says, and its end.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::process::Stdio;
use std::time::Duration;

use test_support::TestKeyPair;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_mins(3);

fn server(directory: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_add-env"));
    command.env_clear().env("TLS_DIRECTORY", directory);
    command.stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Reads the log until a line has this.
async fn logged(server: &mut Child, text: &str) -> String {
    let lines = BufReader::new(server.stderr.as_mut().unwrap());
    let mut lines = lines.lines();
    let found = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(text) {
                return line;
            }
        }
        panic!("the log ends without {text}");
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap()
}

#[tokio::test]
async fn it_serves_until_it_is_told_to_end() {
    let directory = tempfile::tempdir().unwrap();
    let key_pair = TestKeyPair::signed_by_itself(&["localhost"]).unwrap();
    key_pair.write_to(directory.path()).unwrap();
    let mut server = server(directory.path()).env("PORT", "0").spawn().unwrap();
    let line = logged(&mut server, "serving conventions").await;
    assert!(
        line.starts_with('{') && line.contains("\"address\":"),
        "{line}"
    );
    let id = server.id().unwrap().to_string();
    let told = Command::new("kill").args(["-TERM", &id]).status().await;
    assert!(told.unwrap().success());
    let ended = tokio::time::timeout(PATIENCE, server.wait()).await;
    assert!(ended.unwrap().unwrap().success());
}

#[tokio::test]
async fn without_a_key_pair_or_with_a_port_that_is_none_it_says_so_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    for (port, expected) in [("0", "tls.crt"), ("http", "PORT is \"http\"")] {
        let output = server(directory.path()).env("PORT", port).output();
        let output = tokio::time::timeout(PATIENCE, output)
            .await
            .unwrap()
            .unwrap();
        assert!(!output.status.success());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(expected), "{told}");
    }
}
