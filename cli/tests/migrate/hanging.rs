//! An API server that takes requests and answers none.

use std::process::Output;
use std::time::{Duration, Instant};

use test_support::stage::PATIENCE;
use test_support::{BlackHole, eventually};

use crate::installation::Installation;

/// What the command is given, and what a busy machine takes besides.
const LIMIT: &str = "2s";
const AT_MOST: Duration = Duration::from_secs(20);

fn said(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn an_api_server_that_answers_nothing_ends_the_command_and_is_named() {
    let installation = Installation::of(1).await;
    let hole = BlackHole::before(&installation.stage.plane).await.unwrap();
    let command = |arguments: &[&str]| Installation::command_at(hole.kubeconfig(), arguments);

    hole.close();
    let begun = Instant::now();
    let output = command(&["plan", "--timeout", LIMIT])
        .output()
        .await
        .unwrap();
    let text = said(&output);
    assert!(begun.elapsed() < AT_MOST, "{:?}", begun.elapsed());
    assert!(
        text.contains("has not answered GET /") && text.contains("kubectl get --raw=/readyz"),
        "{text}"
    );
    assert!(output.stdout.is_empty());

    // In the midst of a takeover: what was stopped stays so, and nothing else is started.
    hole.open();
    let file = installation.state_file();
    let path = file.to_str().unwrap();
    let apply = ["apply", "--state", path, "--timeout", LIMIT];
    let old = ("cartographer-system", "cartographer-controller");
    let pods = crate::ways::pod(&installation, old.0, old.1).await;
    let running = command(&[&apply[..3], &["--timeout", "6s"]].concat())
        .spawn()
        .unwrap();
    eventually("it is scaled down", PATIENCE, async || {
        installation.replicas(old.0, old.1).await == 0
    })
    .await;
    hole.close();
    let begun = Instant::now();
    let output = running.wait_with_output().await.unwrap();
    let text = said(&output);
    assert!(begun.elapsed() < AT_MOST, "{:?}", begun.elapsed());
    assert!(text.contains("within 6 s"), "{text}");
    assert!(text.contains("run this again"), "{text}");
    let ours = installation.replicas("carto-system", "supplychain-controller");
    assert_eq!(ours.await, 0);

    // Once it answers, what was begun is ended.
    hole.open();
    pods.delete("last", &crate::ways::at_once()).await.unwrap();
    let again = command(&apply[..3]).spawn().unwrap();
    for (name, replicas) in crate::ways::WANTED {
        installation
            .becomes_ready("carto-system", name, replicas)
            .await;
    }
    assert!(again.wait_with_output().await.unwrap().status.success());
}
