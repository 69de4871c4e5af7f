//! Processes and servers that die, objects that are too much (docs/behaviour/process.md#cost).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use test_support::stage::History;
use test_support::{ControlPlane, Dice, LossyProxy, documents, eventually};

use crate::chain::strip_times;
use crate::immutable::instant;
use crate::stage::{NOTHING, PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;

fn workloads(count: u32) -> String {
    let one =
        |number| crate::immutable::WORKLOAD.replace("name: app", &format!("name: app{number}"));
    (0..count).map(one).collect::<Vec<_>>().join("---")
}

async fn all_ready(stage: &Stage, count: u32) {
    eventually(
        &format!("{count} workloads are ready"),
        PATIENCE,
        async || {
            let all = stage.all("carto.run/v1alpha1", "Workload").await;
            let ready = all
                .iter()
                .filter(|one| condition(&one["status"], "Ready")["status"] == "True")
                .count();
            if ready == count as usize {
                Ok(())
            } else {
                Err(format!("{ready} of {}", all.len()))
            }
        },
    )
    .await;
}

/// Everything that is to be the same after an undisturbed run and after one with accidents: statuses without times, and for
/// each workload its runs and objects. What is unique to a namespace is replaced.
async fn picture(stage: &Stage) -> Value {
    let mut seen: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut names = Vec::new();
    for (kind, api_version) in [
        ("Test", "test.run/v1alpha1"),
        ("ConfigMap", "v1"),
        ("Workload", "carto.run/v1alpha1"),
    ] {
        for object in stage.all(api_version, kind).await {
            let metadata = &object["metadata"];
            let owner = metadata["labels"]["carto.run/workload-name"]
                .as_str()
                .or_else(|| metadata["name"].as_str())
                .unwrap()
                .to_owned();
            let name = metadata["name"].as_str().unwrap().to_owned();
            let mut kept = json!({"kind": kind, "labels": metadata["labels"], "spec": object["spec"], "data": object["data"], "status": object["status"],
                "submission": metadata["annotations"]["carto.run/submission"]});
            strip_times(&mut kept);
            strip_identities(&mut kept["status"]);
            seen.entry(owner.clone()).or_default().push(kept);
            if kind == "Test" {
                names.push((name, format!("{owner}-run")));
            }
        }
    }
    let mut text = json!(seen)
        .to_string()
        .replace(&stage.namespace, "NAMESPACE");
    for (name, stable) in names {
        text = text.replace(&name, &stable);
    }
    serde_json::from_str(&text).unwrap()
}

/// What status knows objects by: their uids, and digests of renderings and values in which the namespace is.
fn strip_identities(status: &mut Value) {
    let resources = status.get_mut("resources").and_then(Value::as_array_mut);
    for resource in resources.into_iter().flatten() {
        if let Some(applied) = resource.get_mut("applied") {
            assert!(applied["state"].is_string(), "{applied}");
            *applied = Value::Null;
        }
        let runs = resource.get_mut("runs").and_then(Value::as_array_mut);
        for run in runs.into_iter().flatten().filter_map(Value::as_object_mut) {
            assert!(run.remove("uid").is_some() && run.remove("digest").is_some());
        }
    }
}

/// Starts the controller and kills it as soon as it has sent so many writes to what is in the namespace and begins with one
/// more: each death is in the middle of the work, however fast the machine is. The write that it died with never arrives.
async fn live_for(stage: &mut Stage, writes: u64) {
    let place = format!("/namespaces/{}/", stage.namespace);
    let sent = AtomicU64::new(0);
    let is_one_more = move |request: &http::request::Parts, _: &[u8]| {
        let path = request.uri.path();
        let counts =
            path.contains(&place) && !path.contains("/events") && !path.ends_with("/token");
        let is_write = request.method != http::Method::GET;
        is_write && counts && sent.fetch_add(1, Ordering::Relaxed) >= writes
    };
    let network = LossyProxy::holding(&stage.plane, is_one_more)
        .await
        .unwrap();
    stage.start_controller_as(network.kubeconfig());
    eventually("it dies in the middle", PATIENCE, async || {
        !network.lost().is_empty()
    })
    .await;
    stage.kill_controller();
}

#[tokio::test]
async fn killed_between_any_two_writes_it_comes_to_the_same_end() {
    const COUNT: u32 = 50;
    let mut stage = Stage::open().await;
    stage.apply(&instant(3)).await;
    stage.apply(&workloads(COUNT)).await;
    all_ready(&stage, COUNT).await;
    let undisturbed = picture(&stage).await;

    stage.kill_controller();
    stage.move_to_new_namespace().await;
    let history = History::of_tests(&stage).await;
    stage.apply(&workloads(COUNT)).await;
    let mut dice = Dice::new(0x5eed);
    for _ in 0..6 {
        live_for(&mut stage, 1 + dice.below(25)).await;
    }
    stage.start_controller();
    all_ready(&stage, COUNT).await;
    stage.idle().await;
    assert_eq!(picture(&stage).await, undisturbed);
    let runs = history.created_and_deleted(&stage).await;
    assert_eq!(runs, (COUNT as usize, 0), "each run was started once");
    assert_eq!(stage.requests_of_reconciles("app0", 2).await, NOTHING);
}

#[tokio::test]
async fn whatever_replies_are_lost_it_comes_to_the_same_end() {
    const COUNT: u32 = 20;
    let mut stage = Stage::open().await;
    stage.apply(&instant(3)).await;
    stage.apply(&workloads(COUNT)).await;
    all_ready(&stage, COUNT).await;
    let undisturbed = picture(&stage).await;

    stage.kill_controller();
    stage.move_to_new_namespace().await;
    let history = History::of_tests(&stage).await;
    let dice = Mutex::new(Dice::new(0x1057));
    // One write in five: statuses, tokens and events among them.
    let loses = move |request: &http::request::Parts| {
        request.method != http::Method::GET && dice.lock().unwrap().below(5) == 0
    };
    let network = LossyProxy::start(&stage.plane, loses).await.unwrap();
    stage.start_controller_as(network.kubeconfig());
    stage.apply(&workloads(COUNT)).await;
    all_ready(&stage, COUNT).await;
    stage.idle().await;
    let lost = network.lost();
    for of in ["POST", "PATCH"] {
        assert!(lost.iter().any(|asked| asked.starts_with(of)), "{lost:?}");
    }
    assert_eq!(picture(&stage).await, undisturbed);
    let runs = history.created_and_deleted(&stage).await;
    assert_eq!(runs, (COUNT as usize, 0), "each run was started once");
}

const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
";

#[tokio::test]
async fn killed_between_an_apply_and_its_status_it_applies_once_more_and_changes_nothing() {
    const DEATHS: usize = 2;
    let mut stage = Stage::set().await;
    stage.apply(&blueprint_of(&[("settings", SETTINGS)])).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    for _ in 0..DEATHS {
        let is_status = |request: &http::request::Parts, body: &[u8]| {
            let path = request.uri.path();
            let tells = String::from_utf8_lossy(body).contains("\"applied\"");
            path.contains("/workloads/") && path.ends_with("/status") && tells
        };
        let network = LossyProxy::holding(&stage.plane, is_status).await.unwrap();
        stage.start_controller_as(network.kubeconfig());
        eventually("the status is on its way", PATIENCE, async || {
            network.lost().len() == 1
        })
        .await;
        stage.kill_controller();
    }
    let version = async |stage: &Stage| {
        let object = stage.get("v1", "ConfigMap", "settings").await;
        object.unwrap()["metadata"]["resourceVersion"].clone()
    };
    let before = version(&stage).await;
    stage.start_controller();
    stage.ready("app", "True", "Ready").await;
    stage.idle().await;
    let mut applies = stage.writes();
    applies.retain(|write| write.starts_with("patch configmaps/settings 20"));
    assert_eq!(applies.len(), DEATHS + 1, "one for each life");
    assert_eq!(version(&stage).await, before, "nothing is stored anew");
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
}

/// A step more, whose object keeps its name and loses a field.
const KEPT: &str = "    - {name: kept, templateRef: {kind: ClusterTemplate, name: kept}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: kept}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-kept}
    data: {branch: $(workload.spec.source.git.ref.branch)$, dropped: x}
";

/// What is not as it is to be when all runs but the newest, all sinks and the field are gone.
async fn left_to_do(stage: &Stage, count: u32) -> Vec<String> {
    let mut wrong = Vec::new();
    let runs = stage.tests().await;
    if runs.len() != count as usize || runs.iter().any(|run| run["spec"]["value"]["branch"] != "b")
    {
        wrong.push(format!("{} runs", runs.len()));
    }
    for config in stage.all("v1", "ConfigMap").await {
        let name = config["metadata"]["name"].as_str().unwrap();
        let data = &config["data"];
        let good = match name.rsplit_once('-').map(|(_, end)| end) {
            Some("moved") => data["url"] == "b",
            Some("kept") => data["branch"] == "b" && data["dropped"].is_null(),
            Some("sink") => false,
            _ => true,
        };
        if !good {
            wrong.push(format!("{name}: {data}"));
        }
    }
    for owner in stage.all("carto.run/v1alpha1", "Workload").await {
        let status = &owner["status"];
        if condition(status, "Ready")["status"] != "True" || !status["pendingRemovals"].is_null() {
            wrong.push(status.to_string());
        }
    }
    wrong
}

#[tokio::test]
async fn killed_while_it_deletes_it_leaves_nothing_behind_and_runs_nothing_twice() {
    const COUNT: u32 = 20;
    let mut stage = Stage::open().await;
    let history = History::of_tests(&stage).await;
    let chain = instant(1) + KEPT;
    stage.apply(&chain).await;
    stage.apply(&workloads(COUNT)).await;
    all_ready(&stage, COUNT).await;
    stage.idle().await;
    let changed = chain
        .replace("$-sink}", "$-moved}")
        .replace(", dropped: x", "");
    assert_eq!(changed.matches("moved").count(), 1);
    stage.kill_controller();
    stage.apply(&changed).await;
    for number in 0..COUNT {
        stage
            .edit_workload(&format!("app{number}"), crate::immutable::branch("b"))
            .await;
    }
    let mut dice = Dice::new(0xdead);
    for _ in 0..8 {
        live_for(&mut stage, 1 + dice.below(15)).await;
    }
    stage.start_controller();
    eventually("all is done", PATIENCE, async || {
        let wrong = left_to_do(&stage, COUNT).await;
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    })
    .await;
    stage.idle().await;
    assert_eq!(
        history.created_and_deleted(&stage).await,
        (2 * COUNT as usize, COUNT as usize)
    );
    assert_eq!(stage.requests_of_reconciles("app0", 2).await, NOTHING);
}

#[tokio::test]
async fn an_api_server_that_restarts_under_load_is_waited_for() {
    const COUNT: u32 = 30;
    let stage = Stage::open().await;
    stage.apply(&instant(3)).await;
    stage.apply(&workloads(COUNT)).await;
    eventually("some runs are created", PATIENCE, async || {
        stage.tests().await.len() > 3
    })
    .await;
    stage.plane.stop_apiserver();
    stage.plane.start_apiserver().await.unwrap();
    all_ready(&stage, COUNT).await;
    assert_eq!(stage.tests().await.len(), COUNT as usize);
    // The watches go on, too.
    stage
        .edit_workload("app7", crate::immutable::branch("b"))
        .await;
    eventually("the change arrives", PATIENCE, async || {
        let sink = stage.get("v1", "ConfigMap", "app7-sink").await?;
        (sink["data"]["url"] == "b").then_some(())
    })
    .await;
    let sink = stage.get("v1", "ConfigMap", "app3-sink").await.unwrap();
    stage.delete("v1", "ConfigMap", "app3-sink").await;
    eventually("the deletion is noticed", PATIENCE, async || {
        let again = stage.get("v1", "ConfigMap", "app3-sink").await?;
        (again["metadata"]["uid"] != sink["metadata"]["uid"]).then_some(())
    })
    .await;
}

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data: {value: BODY}
";

/// The definition, with its rule about names or without.
fn crd_of_workloads(limited: bool) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
    let text = std::fs::read_to_string(folder.join("carto.run_workloads.yaml")).unwrap();
    let mut crd = documents(&text).unwrap().remove(0);
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let metadata = &mut schema["properties"]["metadata"];
    assert!(metadata["properties"]["name"].is_object(), "{metadata}");
    if !limited {
        *metadata = json!({"type": "object"});
    }
    crd.to_string()
}

#[tokio::test]
async fn objects_of_any_size_are_handled_or_refused_with_a_reason() {
    let stage = Stage::open().await;
    // As large as a ConfigMap may be, nearly.
    let large = CONFIG.replace("BODY", &"x".repeat(1_000_000));
    stage.apply(&blueprint_of(&[("config", &large)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    let too_large = CONFIG.replace("BODY", &"x".repeat(1_100_000));
    stage.apply(&blueprint_of(&[("config", &too_large)])).await;
    let refused = stage.ready("app", "False", "RenderingTooLarge").await;
    let message = condition(&refused["status"], "Ready")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains("1024 KiB are allowed"), "{message}");
    let config = stage.get("v1", "ConfigMap", "config").await.unwrap();
    assert_eq!(
        config["data"]["value"].as_str().unwrap().len(),
        1_000_000,
        "what exists is left as it is"
    );
    stage
        .apply(&blueprint_of(&[(
            "config",
            &CONFIG.replace("BODY", "small"),
        )]))
        .await;
    stage.ready("app", "True", "Ready").await;

    // A name that does not fit into a label, of a time when the CRD let it pass.
    let long = "w".repeat(64);
    stage
        .plane
        .apply_yaml(&crd_of_workloads(false))
        .await
        .unwrap();
    eventually("a long name is stored", PATIENCE, async || {
        let workload = crate::chain::WORKLOAD.replace("name: app", &format!("name: {long}"));
        let stored = stage.plane.apply_yaml_in(&stage.namespace, &workload).await;
        stored.map(|_| ()).map_err(|error| format!("{error:#}"))
    })
    .await;
    stage
        .plane
        .apply_yaml(&crd_of_workloads(true))
        .await
        .unwrap();
    let refused = stage
        .ready(&long, "False", "TemplateRejectedByAPIServer")
        .await;
    let message = condition(&refused["status"], "Ready")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains("label [carto.run/workload-name]")
            && message.contains("give the workload a shorter name"),
        "{message}"
    );
    assert_eq!(stage.requests_of_reconciles(&long, 2).await, NOTHING);
    // Its status and its spec are written under the present CRD, too.
    let mut names = 0;
    eventually("another long name is refused", PATIENCE, async || {
        // A name that was stored is no new one.
        names += 1;
        let name = format!("name: {long}{names}");
        let another = crate::chain::WORKLOAD.replace("name: app", &name);
        let stored = stage.plane.apply_yaml_in(&stage.namespace, &another).await;
        stored.is_err()
    })
    .await;
    stage
        .edit_workload(&long, json!({"metadata": {"labels": {"type": "none"}}}))
        .await;
    stage.ready(&long, "False", "SupplyChainNotFound").await;
    // One that just does.
    let just = "w".repeat(63);
    let chain = blueprint_of(&[(
        "config",
        &CONFIG.replace("name: config", "name: $(workload.metadata.name)$"),
    )]);
    stage.apply(&chain).await;
    stage
        .apply(&crate::chain::WORKLOAD.replace("name: app", &format!("name: {just}")))
        .await;
    stage.ready(&just, "True", "Ready").await;
}

#[tokio::test]
async fn two_processes_at_once_start_each_run_once() {
    const COUNT: u32 = 20;
    let mut stage = Stage::set().await;
    // Before both start: one may have written that the chain is ready before the other has heard of the template.
    stage.apply(&instant(3)).await;
    stage.start_controller();
    let second = stage.another_controller();
    stage.apply(&workloads(COUNT)).await;
    all_ready(&stage, COUNT).await;
    for number in 0..COUNT {
        stage
            .edit_workload(&format!("app{number}"), crate::immutable::branch("b"))
            .await;
    }
    eventually("all have run again", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.iter()
            .filter(|run| run["spec"]["value"]["branch"] == "b")
            .count()
            >= COUNT as usize
    })
    .await;
    all_ready(&stage, COUNT).await;
    // What it has sent when it is killed, the server still answers and counts.
    stage.idle_of(&second).await;
    drop(second);
    assert_eq!(stage.requests_of_reconciles("app0", 2).await, NOTHING);
    assert_eq!(stage.tests().await.len(), 2 * COUNT as usize);
    let refused = stage
        .events()
        .await
        .into_iter()
        .filter(|event| event.starts_with("Warning"))
        .collect::<Vec<_>>();
    assert_eq!(refused, NOTHING);
}

#[tokio::test]
async fn owners_that_go_and_come_back_leave_nothing_behind() {
    let plane = ControlPlane::builder()
        .audit()
        .controller_manager(true)
        .start()
        .await
        .unwrap();
    let mut stage = Stage::on(plane).await;
    stage.start_controller();
    let held = CONFIG.replace("BODY", "x");
    stage.apply(&blueprint_of(&[("config", &held)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let first = stage.workload("app").await["metadata"]["uid"].clone();

    // A namesake, while the objects of the first are still there: refused at first, then they are collected.
    stage.delete("carto.run/v1alpha1", "Workload", "app").await;
    stage.apply(crate::chain::WORKLOAD).await;
    let second = stage.ready("app", "True", "Ready").await["metadata"]["uid"].clone();
    assert_ne!(second, first);
    let config = eventually("the object is the namesake's", PATIENCE, async || {
        let config = stage.get("v1", "ConfigMap", "config").await?;
        (config["metadata"]["ownerReferences"][0]["uid"] == second).then_some(config)
    })
    .await;
    assert_eq!(
        config["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    // Foreground: its objects go first, and are not made again meanwhile, or it would never end.
    let workloads = stage.api("carto.run/v1alpha1", "Workload");
    workloads
        .delete("app", &kube::api::DeleteParams::foreground())
        .await
        .unwrap();
    eventually("owner and object are gone", PATIENCE, async || {
        let object = stage.get("v1", "ConfigMap", "config").await;
        let owner = stage.get("carto.run/v1alpha1", "Workload", "app").await;
        object.is_none() && owner.is_none()
    })
    .await;
}
