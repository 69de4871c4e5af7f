//! That the checks of conventions find what they are for.

use convention_webhook_sdk::testing::{Fault, Given, check, given};
use convention_webhook_sdk::{
    Applied, Convention, ConventionError, Images, Template, Volume, answer,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does something wrong.
struct Wrong(&'static str, AtomicUsize);

fn wrong(what: &'static str) -> Wrong {
    Wrong(what, AtomicUsize::new(0))
}

impl Convention for Wrong {
    async fn apply(&self, template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
        let calls = self.1.fetch_add(1, Ordering::Relaxed).to_string();
        match self.0 {
            "counts" => drop(template.default_label("calls", &calls)),
            "receipts" => return Ok(Applied::from(calls.as_str())),
            "appends" => {
                let name = format!("v{}", template.spec().map_or(0, serde_json::Map::len));
                template.default_volume(&Volume::empty_dir(&name))?;
                template.default_at(&["hostname"], "a")?;
            }
            "overwrites" => drop(template.set_label("app", "other")),
            "removes" => drop(template.spec_mut().remove("containers")),
            "first" => drop(template.default_label("who", "first")),
            "last" => drop(template.default_label("who", "last")),
            _ => return Err(ConventionError::new("cannot")),
        }
        Ok(Applied::nothing())
    }
}

fn pod() -> Given {
    given("{metadata: {labels: {app: web}}, spec: {containers: [{name: web}], volumes: []}}")
}

#[tokio::test]
async fn each_fault_is_found_and_shown() {
    for (what, expected) in [
        (
            "counts",
            "answers the same request otherwise:\n- metadata.labels.calls: \"0\"\n+ metadata.labels.calls: \"1\"\n",
        ),
        (
            "receipts",
            "answers the same request otherwise:\n[\"0\"], then [\"1\"]\n",
        ),
        ("appends", "changes its own answer:\n+ spec.volumes[v3]"),
        (
            "overwrites",
            "changes what the author of the template wrote:\nmetadata.labels.app: \"web\", now \"other\"\n",
        ),
        (
            "removes",
            "changes what the author of the template wrote:\nspec.containers[web].name: \"web\", now gone\n",
        ),
        ("fails", "failed: cannot"),
    ] {
        let faults = check(&wrong(what)).faults(&pod()).await;
        let told: Vec<String> = faults.iter().map(Fault::to_string).collect();
        assert!(
            told.iter().any(|fault| fault.starts_with(expected)),
            "{what}: {told:#?}"
        );
    }
}

#[tokio::test]
async fn what_a_convention_is_there_to_change_is_no_fault() {
    let convention = wrong("overwrites");
    let check = check(&convention).may_change("metadata.labels.app");
    assert_eq!(check.faults(&pod()).await, []);
}

#[tokio::test]
async fn conventions_whose_order_matters_are_found() {
    let (first, last) = (wrong("first"), wrong("last"));
    let faults = check(&first).beside(&last).faults(&pod()).await;
    let lines = "- metadata.labels.who: \"first\"\n+ metadata.labels.who: \"last\"\n";
    assert_eq!(faults, [Fault::OrderMatters(lines.to_owned())]);
    let other = wrong("overwrites");
    let check = check(&first).beside(&other);
    assert_eq!(check.faults(&pod()).await, []);
}

#[tokio::test]
#[should_panic(
    expected = "the convention changed\n+ metadata.labels.who: \"first\"\nand not\n+ nothing"
)]
async fn an_expectation_that_is_not_met_shows_all_lines() {
    pod().run(&wrong("first")).await.expect("+ nothing");
}

/// Anything that JSON can be.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop_oneof![
            Just("containers".to_owned()),
            Just("initContainers".to_owned()),
            Just("name".to_owned()),
            Just("env".to_owned()),
            Just("ports".to_owned()),
            Just("securityContext".to_owned()),
            Just("spec".to_owned()),
            Just("template".to_owned()),
            Just("metadata".to_owned()),
            Just("imageConfig".to_owned()),
            "[a-z]{0,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Uses most of what there is, on whatever the template has.
async fn everything(template: &mut Template, images: &Images) -> Result<Applied, ConventionError> {
    use convention_webhook_sdk::{Mount, Port, Probe, ProbeKind};
    let mut applied = Applied::nothing();
    template.default_label("a", "b");
    template.default_annotation("a", "b");
    template.default_volume(&Volume::empty_dir("v"))?;
    template.default_sidecar(json!({"name": "side"}))?;
    template.default_at(&["securityContext", "fsGroup"], 1)?;
    for mut container in template.all_containers_mut() {
        let known = images.of(container.view());
        let known = known.map(|image| image.dependencies().named("a").is_some());
        applied.record(format!("{known:?}"), container.default_env("A", "b")?);
        container.default_mount(&Mount::new("v", "/v"))?;
        container.default_port(&Port::tcp(80).named("http"))?;
        container.default_probe(ProbeKind::Liveness, &Probe::tcp_socket(80))?;
        container.default_request("cpu", "1m")?;
        container.default_security("runAsNonRoot", true)?;
    }
    Ok(applied)
}

fn now<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

proptest! {
    #[test]
    fn no_body_of_json_makes_an_answer_that_is_none(body in any_json()) {
        let answered = now(answer(&everything, body.to_string().as_bytes()));
        prop_assert!([200, 400, 500].contains(&answered.status));
        if answered.status == 500 {
            let status: Value = serde_json::from_slice(&answered.body).expect("a status");
            // A wish that cannot be fulfilled, and no panic.
            prop_assert!(status["message"].as_str().is_some_and(|text| text.starts_with("spec.")), "{}", status);
        }
    }

    #[test]
    fn defaults_converge_and_keep_everything_on_any_pod(spec in any_json()) {
        let Ok(template) = Template::from_value(json!({"spec": spec})) else { return Ok(()); };
        let given = given(&template.to_value().to_string());
        for fault in now(check(&everything).faults(&given)) {
            // What is of another type than Kubernetes has there is told; anything else is our
            // fault.
            prop_assert!(matches!(&fault, Fault::Failed(text) if text.starts_with("spec.")), "{fault}");
        }
    }
}

#[test]
fn no_bytes_make_an_answer_that_is_none() {
    proptest!(|(body in prop::collection::vec(any::<u8>(), 0..300))| {
        let answered = now(answer(&everything, &body));
        prop_assert!([200, 400].contains(&answered.status));
    });
}
