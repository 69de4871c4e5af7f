//! A disk that is full or not there, and logs that nobody takes: a fault of the machine, which harms nobody who does not need it.

use std::io::Read as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use test_support::stage::Particulars;
use test_support::{documents, eventually};

use crate::immutable::branch;
use crate::stage::{PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;
use crate::ytt::{GOOD, PREFIX, failure};

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data: {branch: $(workload.spec.source.git.ref.branch)$}
";

/// A step that needs no file, and one that ytt renders.
fn chain() -> String {
    let made = documents(&crate::ytt::chain(GOOD)).unwrap().remove(0);
    let plain = blueprint_of(&[("plain", CONFIG)]);
    let step = "    - {name: make, templateRef: {kind: ClusterTemplate, name: made}}\n";
    format!("{made}\n---\n{plain}{step}")
}

async fn holds(stage: &Stage, name: &str, field: &str, value: &str) {
    eventually(&format!("{name} holds {value}"), PATIENCE, async || {
        let config = stage.get("v1", "ConfigMap", name).await?;
        (config["data"][field] == value).then_some(())
    })
    .await;
}

async fn infrastructure(stage: &Stage) -> f64 {
    let ended = ["kind=\"Workload\"", "outcome=\"infrastructure\""];
    let seen = stage.metric("carto_reconcile_total", &ended).await;
    seen.unwrap()
}

fn message(workload: &Value) -> Value {
    condition(&workload["status"], "Ready")["message"].clone()
}

fn source(url: &str) -> Value {
    json!({"spec": {"source": {"git": {"url": url}}}})
}

#[tokio::test]
async fn without_room_for_files_only_what_needs_one_waits_and_goes_on_by_itself() {
    let mut stage = Stage::set().await;
    let folder = stage.plane.folder().join("temporary");
    stage.start_controller_with(&Particulars {
        environment: vec![("TMPDIR", folder.clone())],
        // As a full disk has it: the write fails, and there is no signal.
        script: Some(r#"trap "" XFSZ; exec "$@""#),
        ..Particulars::default()
    });
    let pid = stage.controller_pid();
    stage.apply(&chain()).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    let why = |why: &str| {
        format!(
            "{PREFIX}the controller could not write the values to its temporary folder ({why}); nothing is wrong with the \
             template, and it is tried again"
        )
    };
    let told = failure(&stage, "there is no folder", "temporary folder").await;
    assert_eq!(told, why("entity not found"));
    holds(&stage, "plain", "branch", "a").await;
    // However often it is tried, it says the same.
    let version = stage.workload("app").await["metadata"]["resourceVersion"].clone();
    let tries = infrastructure(&stage).await;
    eventually("it was tried again, twice", PATIENCE, async || {
        infrastructure(&stage).await >= tries + 2.0
    })
    .await;
    let workload = stage.workload("app").await;
    assert_eq!(message(&workload), why("entity not found"));
    assert_eq!(workload["metadata"]["resourceVersion"], version);

    std::fs::create_dir(&folder).unwrap();
    stage.ready("app", "True", "Ready").await;

    // Neither the values nor a log line find room now.
    stage.limit_files(Some(0));
    stage.edit_workload("app", source("two")).await;
    let told = failure(&stage, "there is no room", "temporary folder").await;
    assert_eq!(told, why("file too large"));
    stage.edit_workload("app", branch("b")).await;
    holds(&stage, "plain", "branch", "b").await;
    stage.limit_files(None);
    holds(&stage, "app", "url", "two").await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.controller_pid(), pid);
    eventually("it is told that lines were lost", PATIENCE, async || {
        stage.log().contains("log lines were lost")
    })
    .await;
    let left = std::fs::read_dir(&folder).unwrap();
    assert_eq!(left.count(), 0, "files are left behind");
}

/// Starts the controller with its logs going where this bash says, and has it do something.
async fn works_with_logs(stage: &mut Stage, script: &str, name: &str) {
    let folder = stage.plane.folder().to_owned();
    stage.start_controller_with(&Particulars {
        environment: vec![("FOLDER", folder)],
        script: Some(script),
        ..Particulars::default()
    });
    let owner = crate::immutable::WORKLOAD.replace("name: app", &format!("name: {name}"));
    stage.apply(&owner).await;
    stage.ready(name, "True", "Ready").await;
}

#[tokio::test]
async fn logs_that_nobody_reads_stop_nobody() {
    let mut stage = Stage::set().await;
    let own = CONFIG.replace("name: plain", "name: $(workload.metadata.name)$");
    stage.apply(&blueprint_of(&[("plain", &own)])).await;
    // Whoever read them has ended.
    let gone = r#"exec "$@" 2> >(exec true)"#;
    works_with_logs(&mut stage, gone, "unread").await;
    stage.kill_controller();

    // Whoever reads them does not get to it. The pipe is full already.
    let stuck = r#"
mkfifo "$FOLDER/logs"; exec 3<>"$FOLDER/logs"
timeout 1 cat /dev/zero >"$FOLDER/logs"
exec "$@" 2>"$FOLDER/logs"
"#;
    works_with_logs(&mut stage, stuck, "stuck").await;
    let pipe = stage.plane.folder().join("logs");
    let read = tokio::task::spawn_blocking(move || until_line(pipe, "\"message\":\"reconciled\""));
    let read = tokio::time::timeout(PATIENCE, read).await;
    assert!(read.unwrap().unwrap().contains("\"message\":\"started\""));
}

/// What comes out of a pipe until this was among it.
fn until_line(pipe: PathBuf, part: &str) -> String {
    let mut pipe = std::fs::File::open(pipe).unwrap();
    let (mut read, mut piece) = (String::new(), [0; 4096]);
    while !read.contains(part) {
        let length = pipe.read(&mut piece).unwrap();
        if length == 0 {
            // Nobody writes any more.
            return read;
        }
        let text = String::from_utf8_lossy(&piece[..length]);
        read.push_str(text.trim_matches('\0'));
    }
    read
}
