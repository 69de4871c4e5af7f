//! Templates that read what our own status writes change (docs/behaviour/context.md#own-status).

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{NOTHING, PATIENCE, Stage, step};

/// A circle: what the object holds is an output, the output is in the status, the status makes another version of the
/// owner, and the version is what the object holds.
fn circle(lifecycle: &str, name: &str, seen: &str) -> String {
    format!(
        "
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {{name: circle}}
spec:
  lifecycle: {lifecycle}
  configPath: .data.seen
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {{{name}}}
    data: {{seen: '{seen}'}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {{name: chain}}
spec:
  selector: {{type: web}}
  resources: [{{name: turn, templateRef: {{kind: ClusterConfigTemplate, name: circle}}}}]
"
    )
}

const VERSION: &str = "$(workload.metadata.resourceVersion)$";
const GENERATION: &str = "generation-$(workload.metadata.generation)$";

/// How often the object may have been written when this time has passed since before its owner was there: it is made and
/// changed once at once; each further time waits twice as long as the one before, at first two seconds.
fn allowed(elapsed: Duration) -> usize {
    let waits = [2, 4, 8, 16, 32].map(Duration::from_secs);
    let mut due = Duration::ZERO;
    let later = waits.into_iter().take_while(|wait| {
        due += *wait;
        due <= elapsed
    });
    2 + later.count()
}

/// An object that got another name is deleted under the old one; that is no rendering.
fn writes(stage: &Stage) -> usize {
    let writes = stage.writes();
    writes
        .iter()
        .filter(|write| !write.starts_with("delete "))
        .count()
}

/// Another controller works on whatever was stamped last; each time the owner is looked at.
async fn work_on_the_newest(stage: &Stage, round: u32) {
    if let Some(newest) = stage.all("v1", "ConfigMap").await.last() {
        let name = newest["metadata"]["name"].as_str().unwrap();
        let worked = json!({"metadata": {"labels": {"round": round.to_string()}}});
        let edited = stage
            .api("v1", "ConfigMap")
            .patch(name, &PatchParams::default(), &Patch::Merge(worked))
            .await;
        // One that has got another name may be deleted since it was listed.
        let is_gone = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.is_not_found());
        assert!(edited.as_ref().err().is_none_or(is_gone), "{edited:?}");
    }
}

/// Goes round for some seconds, and longer until somebody is told; returns what.
async fn go_round(stage: &Stage) -> String {
    let started = Instant::now();
    stage.apply(crate::chain::WORKLOAD).await;
    let mut rounds = 0;
    while started.elapsed() < Duration::from_secs(7) {
        work_on_the_newest(stage, rounds).await;
        rounds += 1;
        let written = writes(stage);
        assert!(
            written <= allowed(started.elapsed()),
            "{written} writes in {:?} and {rounds} rounds: {:?}",
            started.elapsed(),
            stage.writes()
        );
    }
    eventually("somebody is told", PATIENCE, async || {
        rounds += 1;
        work_on_the_newest(stage, rounds).await;
        let events = stage.events().await;
        events
            .into_iter()
            .find(|event| event.starts_with("Warning RenderingUnstable"))
    })
    .await
}

fn output(workload: &Value) -> String {
    let preview = &step(workload, "turn")["outputs"][0]["preview"];
    preview.as_str().unwrap_or_default().trim_end().to_owned()
}

#[tokio::test]
async fn a_template_that_renders_our_own_status_write_is_followed_ever_less_often() {
    let stage = Stage::open().await;
    let name = "name: $(workload.metadata.name)$";
    stage.apply(&circle("mutable", name, VERSION)).await;
    let told = go_round(&stage).await;
    for part in [
        "[turn]",
        "[ClusterConfigTemplate/circle]",
        "read the value from an input",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }

    // The template is corrected: that is followed at once, whatever the next turn would have waited.
    let (before, since) = (writes(&stage), Instant::now());
    stage.apply(&circle("mutable", name, GENERATION)).await;
    stage
        .until("app", "the corrected template is followed", |workload| {
            output(workload) == "generation-1"
        })
        .await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    // On a slow machine the circle may go on before the correction arrives; each turn waits 8 s by now.
    let turns = usize::try_from(since.elapsed().as_secs() / 8).unwrap();
    assert!(writes(&stage) <= before + 2 + turns, "{:?}", stage.writes());
}

#[tokio::test]
async fn an_immutable_template_that_renders_our_own_status_write_starts_few_runs() {
    let stage = Stage::open().await;
    let name = "generateName: $(workload.metadata.name)$-";
    stage.apply(&circle("immutable", name, VERSION)).await;
    go_round(&stage).await;
}

#[tokio::test]
async fn a_template_whose_name_goes_round_too_is_followed_ever_less_often() {
    let stage = Stage::open().await;
    let name = format!("name: 'app-{VERSION}'");
    stage.apply(&circle("mutable", &name, VERSION)).await;
    go_round(&stage).await;
}

#[tokio::test]
async fn a_status_that_settles_is_rendered_at_once_and_nobody_is_told() {
    let stage = Stage::open().await;
    let settles = "seen-$(workload.status.observedGeneration)$";
    let name = "name: $(workload.metadata.name)$";
    stage.apply(&circle("mutable", name, settles)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    // The event of the object comes before or after the status is written.
    work_on_the_newest(&stage, 0).await;
    let seen = async || {
        let workload = stage.workload("app").await;
        (output(&workload) == "seen-1").then_some(())
    };
    eventually("the status is rendered", PATIENCE, seen).await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    let events = stage.events().await;
    let warned: Vec<_> = events
        .iter()
        .filter(|event| event.contains("RenderingUnstable"))
        .collect();
    assert_eq!(warned, [] as [&String; 0]);
}
