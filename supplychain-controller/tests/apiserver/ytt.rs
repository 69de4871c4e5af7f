//! ytt templates with the real ytt (docs/behaviour/ytt.md#rendering).

use std::time::{Duration, Instant};

use serde_json::json;
use test_support::eventually;

use crate::stage::{PATIENCE, Stage, condition};

pub(crate) fn chain(ytt: &str) -> String {
    let ytt = ytt.trim_matches('\n').replace('\n', "\n    ");
    format!(
        "apiVersion: carto.run/v1alpha1\nkind: ClusterTemplate\nmetadata: {{name: made}}\nspec:\n  ytt: |\n    {ytt}\n---\n\
         apiVersion: carto.run/v1alpha1\nkind: ClusterSupplyChain\nmetadata: {{name: chain}}\nspec:\n  selector: {{type: web}}\n  \
         resources: [{{name: make, templateRef: {{kind: ClusterTemplate, name: made}}}}]\n"
    )
}

pub(crate) const GOOD: &str = r#"
#@ load("@ytt:data", "data")
apiVersion: v1
kind: ConfigMap
metadata:
  name: #@ data.values.workload.metadata.name
data:
  url: #@ data.values.workload.spec.source.git.url
---
only: the first document counts
"#;

pub(crate) const PREFIX: &str = "unable to stamp object for resource [make] for template [ClusterTemplate/made] in supply chain [chain]: \
                      unable to apply ytt template: ";

pub(crate) async fn failure(stage: &Stage, what: &str, part: &str) -> String {
    let failed = stage
        .until("app", what, |workload| {
            let ready = condition(&workload["status"], "Ready");
            ready["reason"] == "TemplateStampFailure"
                && ready["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(part))
        })
        .await;
    condition(&failed["status"], "Ready")["message"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn ytt_renders_fails_and_is_killed_as_upstream_says() {
    let stage = Stage::open().await;
    stage.apply(&chain(GOOD)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let made = stage.get("v1", "ConfigMap", "app").await.unwrap();
    assert_eq!(made["data"], json!({"url": "https://git.example/app"}));
    assert_eq!(
        stage.requests_of_reconciles("app", 3).await,
        [] as [String; 0]
    );
    // Woken by its object, the owner finds the result of the same template and values.
    let runs = async |outcome: &str| {
        let label = format!("outcome=\"{outcome}\"");
        stage.metric("carto_ytt_runs_total", &[&label]).await
    };
    let (rendered, cached) = (runs("rendered").await, runs("cached").await);
    assert!(rendered > Some(0.5), "{rendered:?}");
    let foreign = json!({"metadata": {"labels": {"mine": "1"}}});
    stage.edit("v1", "ConfigMap", "app", foreign).await;
    eventually("the result is found", PATIENCE, async || {
        runs("cached").await > cached
    })
    .await;
    assert_eq!(runs("rendered").await, rendered);

    stage
        .apply(&chain(
            &GOOD.replace("spec.source.git.url", "spec.source.nobody"),
        ))
        .await;
    let message = failure(
        &stage,
        "a struct key is missing",
        "has no .nobody field or method",
    )
    .await;
    for part in ["ytt: Error: \n", "in <toplevel>", "stdin.yml:7 |"] {
        assert!(
            message.starts_with(PREFIX) && message.contains(part),
            "{part}: {message}"
        );
    }

    // Longer than an event may be.
    let long = GOOD.replace("only:", "only: #@ fail(\"€\" * 20000)\nonly2:");
    stage.apply(&chain(&long)).await;
    let message = failure(&stage, "a very long error is told", "fail: €").await;
    assert!(message.len() > 60_000, "{}", message.len());

    let since = Instant::now();
    stage
        .apply(&chain(&GOOD.replace(
            "apiVersion: v1",
            "#@ for i in range(1000000000):\n#@   x = i\n#@ end\napiVersion: v1",
        )))
        .await;
    eventually("ytt runs", PATIENCE, async || {
        ytt_processes(stage.controller_pid()).len() == 1
    })
    .await;
    let message = failure(&stage, "the loop is ended", "signal: killed").await;
    assert_eq!(message, format!("{PREFIX}signal: killed"));
    let took = since.elapsed();
    assert!(took > Duration::from_secs(4), "{took:?}");

    stage.apply(&chain(GOOD)).await;
    stage.ready("app", "True", "Ready").await;
    eventually("no ytt is left", PATIENCE, async || {
        ytt_processes(stage.controller_pid()).is_empty()
    })
    .await;
}

/// A list that each round of the loop doubles; the Workload says how many rounds.
const DOUBLING: &str = r#"
#@ load("@ytt:data", "data")
#@ def doubled():
#@   x = ["secret"]
#@   for i in range(data.values.params.rounds):
#@     x = x + x
#@   end
#@   return len(x)
#@ end
apiVersion: v1
kind: ConfigMap
metadata:
  name: #@ data.values.workload.metadata.name
data:
  length: #@ str(doubled())
  #@ if data.values.params.rounds == 0:
  large: #@ "x" * 1000 * 1000
  #@ end
"#;

/// With the kernel's own limit it would be the container that dies, for everybody.
#[tokio::test]
async fn a_developers_parameter_that_fills_the_memory_costs_nobody_else_anything() {
    let mut stage = Stage::set().await;
    let controller = stage.another_controller_with(&["--ytt-memory-limit=128"]);
    stage.apply(&chain(DOUBLING)).await;
    let workload = |name: &str, rounds: u32| {
        crate::chain::WORKLOAD
            .replace("name: app", &format!("name: {name}"))
            .replacen(
                "spec: {",
                &format!("spec: {{params: [{{name: rounds, value: {rounds}}}], "),
                1,
            )
    };
    stage.apply(&workload("app", 60)).await;
    let message = failure(&stage, "the memory was too little", "memory").await;
    assert_eq!(
        message,
        format!(
            "{PREFIX}ytt needs more than 128 MiB of memory: make what the template builds smaller, or the parameters and inputs \
             that its loops follow; or have the controller's --ytt-memory-limit raised"
        )
    );

    stage.apply(&workload("guest", 0)).await;
    stage.ready("guest", "True", "Ready").await;
    let made = stage.get("v1", "ConfigMap", "guest").await.unwrap();
    assert_eq!(made["data"]["length"], "1");
    assert_eq!(
        made["data"]["large"].as_str().map(str::len),
        Some(1_000_000)
    );
    stage.apply(&workload("app", 3)).await;
    stage.ready("app", "True", "Ready").await;
    let made = stage.get("v1", "ConfigMap", "app").await.unwrap();
    assert_eq!(made["data"], json!({"length": "8"}));
    drop(controller);
}

/// The children of a process that are called ytt, zombies among them. Linux lists children by the thread that started them,
/// and any thread may.
fn ytt_processes(pid: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    // A thread or a child may end while we look.
    let children = threads
        .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")).ok());
    let is_ytt = |child: &String| {
        let name = std::fs::read_to_string(format!("/proc/{child}/comm"));
        name.is_ok_and(|name| name.trim_end() == "ytt")
    };
    let children: Vec<String> = children.collect();
    let children = children.iter().flat_map(|line| line.split_whitespace());
    children.map(str::to_owned).filter(is_ytt).collect()
}
