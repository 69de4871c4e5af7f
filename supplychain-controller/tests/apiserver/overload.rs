//! An API server that is asked too much, cannot, or does not answer: nobody's fault who reads a status.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use http::request::Parts;
use serde_json::Value;
use test_support::{Disturbance, LossyProxy, eventually};

use crate::immutable::{WORKLOAD, branch};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};
use crate::unchanged::blueprint_of;

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$}
data: {branch: $(workload.spec.source.git.ref.branch)$}
";

const THROTTLED: Disturbance = Disturbance::Refused {
    code: 429,
    // As priority and fairness says it.
    retry_after: Some(2),
    text: "Too many requests, please try again later.\n",
};

/// When which request met a trouble.
pub(crate) type Met = Vec<(Instant, String)>;

/// Something is wrong between the controller and the API server, while it is switched on.
pub(crate) struct Trouble {
    pub(crate) network: LossyProxy,
    on: Arc<AtomicBool>,
    met: Arc<Mutex<Met>>,
}

impl Trouble {
    /// What is wrong with a request, given how many met it before.
    pub(crate) async fn with(
        stage: &Stage,
        what: impl Fn(&Parts, usize) -> Option<Disturbance> + Send + Sync + 'static,
    ) -> Self {
        let (on, met) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Met>>::default());
        let (switch, log) = (on.clone(), met.clone());
        let count = AtomicUsize::new(0);
        let disturbs = move |parts: &Parts| {
            if !switch.load(Ordering::SeqCst) {
                return None;
            }
            let disturbance = what(parts, count.load(Ordering::SeqCst))?;
            count.fetch_add(1, Ordering::SeqCst);
            let path = parts.uri.path().to_owned();
            log.lock().unwrap().push((Instant::now(), path));
            Some(disturbance)
        };
        let network = LossyProxy::disturbing(&stage.plane, disturbs)
            .await
            .unwrap();
        Self { network, on, met }
    }

    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
    }

    pub(crate) fn met(&self) -> Met {
        self.met.lock().unwrap().clone()
    }

    pub(crate) async fn until_met(
        &self,
        what: &str,
        enough: impl Fn(&[(Instant, String)]) -> bool,
    ) {
        eventually(what, PATIENCE, async || {
            let met = self.met();
            if enough(&met) { Ok(()) } else { Err(met.len()) }
        })
        .await;
    }
}

fn is_of_config_maps(parts: &Parts) -> bool {
    parts.method != Method::GET && parts.uri.path().contains("/configmaps/")
}

fn version(workload: &Value) -> Value {
    workload["metadata"]["resourceVersion"].clone()
}

async fn warnings(stage: &Stage) -> Vec<String> {
    let mut events = stage.events().await;
    events.retain(|event| event.starts_with("Warning"));
    events
}

#[tokio::test]
async fn owners_that_are_throttled_for_a_moment_stay_as_they_are() {
    const OWNERS: [&str; 4] = ["app0", "app1", "app2", "app3"];
    let mut stage = Stage::set().await;
    let trouble = Trouble::with(&stage, |parts, _| {
        is_of_config_maps(parts).then_some(THROTTLED)
    })
    .await;
    stage.start_controller_as(trouble.network.kubeconfig());
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    for owner in OWNERS {
        stage
            .apply(&WORKLOAD.replace("name: app", &format!("name: {owner}")))
            .await;
    }
    for owner in OWNERS {
        stage.ready(owner, "True", "Ready").await;
    }
    stage.idle().await;

    trouble.switch(true);
    let mut edited = Vec::new();
    for owner in OWNERS {
        stage.edit_workload(owner, branch("other")).await;
        edited.push(version(&stage.workload(owner).await));
    }
    let of = |owner: &str, met: &[(Instant, String)]| -> Vec<Instant> {
        let path = format!("/configmaps/{owner}");
        let own = met.iter().filter(|(_, asked)| asked.ends_with(&path));
        own.map(|(when, _)| *when).collect()
    };
    trouble
        .until_met("each was throttled three times", |met| {
            OWNERS.iter().all(|owner| of(owner, met).len() >= 3)
        })
        .await;
    for (owner, edited) in OWNERS.iter().zip(&edited) {
        let workload = stage.workload(owner).await;
        assert_eq!(condition(&workload["status"], "Ready")["status"], "True");
        assert_eq!(version(&workload), *edited, "its status is not written");
    }
    let met = trouble.met();
    for owner in OWNERS {
        for pair in of(owner, &met).windows(2) {
            let rest = pair[1] - pair[0];
            assert!(rest >= Duration::from_secs(2), "{owner}: {rest:?}");
        }
    }

    trouble.switch(false);
    for owner in OWNERS {
        stage
            .until(owner, "the edit has arrived", |workload| {
                workload["status"]["observedGeneration"] == workload["metadata"]["generation"]
            })
            .await;
        let config = stage.get("v1", "ConfigMap", owner).await.unwrap();
        assert_eq!(config["data"]["branch"], "other");
        stage.ready(owner, "True", "Ready").await;
    }
    stage.idle().await;
    assert_eq!(warnings(&stage).await, NOTHING);
}

#[tokio::test]
async fn what_lasts_is_told_once_with_a_reason_of_its_own() {
    let mut stage = Stage::set().await;
    // Whatever it is, and however it changes.
    let trouble = Trouble::with(&stage, |parts, before| {
        let refused = |code, text| Disturbance::Refused {
            code,
            retry_after: None,
            text,
        };
        is_of_config_maps(parts).then(|| match before % 4 {
            0 => refused(503, "the server is currently unable to handle the request"),
            1 => Disturbance::Broken,
            2 => refused(500, "etcdserver: leader changed"),
            _ => refused(504, "the server was unable to return a response in time"),
        })
    })
    .await;
    stage.start_controller_as(trouble.network.kubeconfig());
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.idle().await;
    trouble.switch(true);
    let began = Instant::now();
    stage.edit_workload("app", branch("other")).await;
    let told = stage.ready("app", "False", "APIServerUnavailable").await;
    assert!(
        began.elapsed() >= Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
    let message = condition(&told["status"], "Ready")["message"].clone();
    let namespace = &stage.namespace;
    let expected = format!(
        "unable to apply object [{namespace}/app] for resource [config] in supply chain [chain]: patch: "
    );
    assert!(
        message.as_str().unwrap().starts_with(&expected),
        "{message}"
    );

    let before = trouble.met().len();
    assert!(before <= 12, "{before} requests in the first half minute");
    trouble
        .until_met("it was tried again", |met| met.len() >= before + 2)
        .await;
    assert_eq!(version(&stage.workload("app").await), version(&told));
    let warned = eventually("the warning", PATIENCE, async || {
        let warnings = warnings(&stage).await;
        (!warnings.is_empty()).then_some(warnings)
    })
    .await;
    assert_eq!(warned.len(), 1, "{warned:?}");

    trouble.switch(false);
    stage.ready("app", "True", "Ready").await;
    let config = stage.get("v1", "ConfigMap", "app").await.unwrap();
    assert_eq!(config["data"]["branch"], "other");
}

#[tokio::test]
async fn a_token_that_comes_late_is_waited_for() {
    let mut stage = Stage::set().await;
    let trouble = Trouble::with(&stage, |parts, _| {
        parts.uri.path().ends_with("/token").then_some(THROTTLED)
    })
    .await;
    trouble.switch(true);
    stage.start_controller_as(trouble.network.kubeconfig());
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage.apply(WORKLOAD).await;
    trouble
        .until_met("it was asked for twice", |met| met.len() >= 2)
        .await;
    let status = stage.workload("app").await["status"].clone();
    let told = condition(&status, "ResourcesSubmitted");
    assert_eq!(told, Value::Null, "{status}");
    trouble.switch(false);
    stage.ready("app", "True", "Ready").await;
    stage.idle().await;
    assert_eq!(warnings(&stage).await, NOTHING);
}

/// For longer than nothing is said of it.
#[tokio::test]
async fn a_deletion_that_is_throttled_for_long_is_pending_and_no_warning() {
    let mut stage = Stage::set().await;
    let trouble = Trouble::with(&stage, |parts, _| {
        (parts.method == Method::DELETE).then_some(THROTTLED)
    })
    .await;
    stage.start_controller_as(trouble.network.kubeconfig());
    let step_a = CONFIG.replace("name: $(", "name: a-$(");
    let step_b = CONFIG.replace("name: $(", "name: b-$(");
    stage
        .apply(&blueprint_of(&[("a", &step_a), ("b", &step_b)]))
        .await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.idle().await;
    trouble.switch(true);
    stage.apply(&blueprint_of(&[("a", &step_a)])).await;
    let told = stage
        .until("app", "the deletion is pending", |workload| {
            !condition(&workload["status"], "DeletionPending").is_null()
        })
        .await;
    let pending = condition(&told["status"], "DeletionPending")["message"].clone();
    let pending = pending.as_str().unwrap();
    assert!(
        pending.contains("configmaps/b-app") && pending.contains("Too many requests"),
        "{pending}"
    );
    // It goes on, and nobody is told that he lacks a right.
    let before = trouble.met().len();
    trouble
        .until_met("it was tried again", |met| met.len() >= before + 2)
        .await;
    assert_eq!(version(&stage.workload("app").await), version(&told));
    assert_eq!(warnings(&stage).await, NOTHING);

    trouble.switch(false);
    stage
        .until("app", "nothing is pending", |workload| {
            condition(&workload["status"], "DeletionPending").is_null()
        })
        .await;
    assert_eq!(stage.get("v1", "ConfigMap", "b-app").await, None);
}

#[tokio::test]
async fn a_deletion_that_is_throttled_is_carried_out_later_and_not_told() {
    let mut stage = Stage::set().await;
    let trouble = Trouble::with(&stage, |parts, _| {
        (parts.method == Method::DELETE).then_some(THROTTLED)
    })
    .await;
    stage.start_controller_as(trouble.network.kubeconfig());
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.idle().await;
    trouble.switch(true);
    let moved = CONFIG.replace("name: $(", "name: moved-$(");
    stage.apply(&blueprint_of(&[("moved", &moved)])).await;
    trouble
        .until_met("it was tried twice", |met| met.len() >= 2)
        .await;
    let status = stage.workload("app").await["status"].clone();
    assert_eq!(condition(&status, "Ready")["status"], "True");
    assert_eq!(condition(&status, "DeletionPending"), Value::Null);
    // What was done in the walk that ended early is told all the same.
    eventually("the event of the new object", PATIENCE, async || {
        let events = stage.events().await;
        let tells =
            |event: &String| event.contains("Created object") && event.contains("moved-app");
        if events.iter().any(tells) {
            Ok(())
        } else {
            Err(events)
        }
    })
    .await;

    trouble.switch(false);
    eventually("the old object is deleted", PATIENCE, async || {
        stage.get("v1", "ConfigMap", "app").await.is_none()
    })
    .await;
    stage
        .until("app", "the step is the new one", |workload| {
            step(workload, "moved")["stampedRef"]["name"] == "moved-app"
        })
        .await;
    stage.idle().await;
    assert_eq!(warnings(&stage).await, NOTHING);
}

const TEST: &str = "
apiVersion: test.run/v1alpha1
kind: Test
metadata: {name: $(workload.metadata.name)$}
spec: {value: {branch: $(workload.spec.source.git.ref.branch)$}}
";

/// How often a kind is listed in vain meanwhile, where each wait is twice as long as the one before, or by chance half as long
/// again; and once more for each of two things that the watch may begin anew for.
fn most_listings(meanwhile: Duration) -> usize {
    let (mut waited, mut wait, mut listings) = (Duration::ZERO, Duration::from_millis(600), 3);
    while waited < meanwhile {
        waited += wait;
        wait = wait.mul_f64(1.5);
        listings += 1;
    }
    listings
}

/// As a kind has it whose conversion webhook is dead.
#[tokio::test]
async fn a_kind_that_cannot_be_listed_says_why_and_keeps_nobody() {
    const WHY: &str = "storage is (re)initializing";
    let mut stage = Stage::set().await;
    let trouble = Trouble::with(&stage, |parts, _| {
        let is_list = parts.uri.path() == "/apis/test.run/v1alpha1/tests";
        is_list.then_some(Disturbance::Refused {
            code: 503,
            retry_after: Some(1),
            text: WHY,
        })
    })
    .await;
    trouble.switch(true);
    stage.start_controller_as(trouble.network.kubeconfig());
    stage.apply(&blueprint_of(&[("test", TEST)])).await;
    stage.apply(WORKLOAD).await;
    let told = stage.ready("app", "False", "APIServerUnavailable").await;
    let message = condition(&told["status"], "Ready")["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.contains("the objects of test.run/v1alpha1 Test cannot be listed")
            && message.contains(WHY),
        "{message}"
    );
    // Each further look would take ten seconds.
    let looked = async || {
        let seconds = stage
            .metric(
                "carto_reconcile_duration_seconds_sum",
                &["kind=\"Workload\""],
            )
            .await;
        seconds.expect("the metric is there")
    };
    let before = looked().await;
    for _ in 0..4 {
        stage.reconcile("app").await;
    }
    let took = looked().await - before;
    assert!(took < 10.0, "{took} s");
    let told = |line: &&str| line.contains("this kind cannot be listed");
    assert_eq!(stage.log().lines().filter(told).count(), 1);
    let asked: Vec<Instant> = trouble.met().iter().map(|(when, _)| *when).collect();
    let since = asked[0].elapsed();
    assert!(
        asked.len() <= most_listings(since),
        "{asked:?} in {since:?}"
    );

    trouble.switch(false);
    stage.ready("app", "True", "Ready").await;
}
