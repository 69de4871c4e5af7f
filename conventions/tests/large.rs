//! Objects as large as etcd takes, or as a webhook may answer: whoever writes them must not be able
//! to keep the controller busy.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::time::{Duration, Instant};

use api_types::ConditionStatus;
use convention_protocol::{APPLIED_CONVENTIONS, PodTemplate};
use conventions::PodIntentStatus;
use conventions::admission::{convention_refusal, intent_refusal};
use conventions::answer::Answer;
use conventions::chain::Chain;
use conventions::diff::diff;
use conventions::inputs::{Inputs, template_digest};
use conventions::outcome::{Pass, say_the_same, status_after};
use conventions::quantity::keep_wording;
use conventions::receipts::Receipts;
use conventions::tally::{Counted, data};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use test_support::takes_about_ten_times_as_long;

#[test]
fn ten_times_the_receipts_take_about_ten_times_as_long() {
    takes_about_ten_times_as_long(20_000, |count| {
        let lines: Vec<String> = (0..count).map(|index| format!("a/{index}")).collect();
        let mut template = PodTemplate::default();
        let annotations = &mut template.metadata.annotations;
        annotations.insert(APPLIED_CONVENTIONS.to_owned(), lines.join("\n"));
        move || {
            let mut receipts = Receipts::of(&template);
            receipts.add("b", &lines);
            assert_eq!(receipts.lines().len(), 2 * count);
        }
    });
}

#[test]
fn ten_times_the_variables_take_about_ten_times_as_long_to_find_again() {
    takes_about_ten_times_as_long(5_000, |count| {
        let env: Vec<Value> = (0..count)
            .map(|index| json!({"name": format!("V{index}")}))
            .collect();
        let spec = json!({"spec": {"containers": [{"name": "a", "env": env}]}});
        let template: PodTemplate = serde_json::from_value(spec).unwrap();
        move || {
            let mut answered = template.clone();
            keep_wording(&template, &mut answered);
            assert_eq!(answered, template);
        }
    });
}

#[test]
fn of_half_a_million_mistakes_the_first_are_told_and_soon() {
    let nameless = vec![json!({}); 500_000];
    let intent = json!({"spec": {"imagePullSecrets": nameless}});
    let near = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let url = json!({"clientConfig": {"url": "https://a"}});
    let selectors = json!({"spec": {"selectors": vec![near; 10_000], "webhook": url}});
    let service = json!({"name": "a", "namespace": "b", "path": "/".repeat(100_000)});
    let path = json!({"spec": {"webhook": {"clientConfig": {"service": service}}}});
    let began = Instant::now();
    for (refusal, last, next) in [
        (intent_refusal(&intent), "Secrets[19]", "Secrets[20]"),
        (
            convention_refusal(&selectors),
            "selectors[19]",
            "selectors[20]",
        ),
        (convention_refusal(&path), "segment[19]", "segment[20]"),
    ] {
        let refusal = refusal.unwrap();
        assert!(refusal.contains(last), "{last}");
        assert!(!refusal.contains(next), "{next}");
    }
    // Each against each would take an hour.
    assert!(began.elapsed() < Duration::from_secs(20));
}

/// As large a template as fits twice, with so many variables.
fn with_variables(count: usize) -> PodTemplate {
    let env: Vec<Value> = (0..count)
        .map(|index| json!({"name": format!("VARIABLE_{index}"), "value": "a value"}))
        .collect();
    let limits = json!({"cpu": "0.5"});
    let container =
        json!({"name": "a", "image": "web", "env": env, "resources": {"limits": limits}});
    let spec = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    serde_json::from_value(spec).unwrap()
}

/// Adds a variable in front of all others, so that each stands at another place then.
fn answer(template: &PodTemplate, name: &str) -> Answer {
    let mut answered = serde_json::to_value(template).unwrap();
    let env = answered.pointer_mut("/spec/containers/0/env").unwrap();
    env.as_array_mut().unwrap().insert(0, json!({"name": name}));
    let status = json!({"status": {"template": answered, "appliedConventions": [name]}});
    conventions::answer::read(status.to_string().as_bytes()).unwrap()
}

#[test]
fn ten_times_the_variables_take_about_ten_times_as_long_through_five_conventions() {
    takes_about_ten_times_as_long(11_000, |count| {
        let template = with_variables(count);
        move || {
            let mut chain = Chain::start(template.clone());
            for name in ["a", "b", "c", "d", "e"] {
                let request = chain.request("app", name, Vec::new());
                let before = chain.template().clone();
                let answer = answer(&request.spec.template, name);
                chain.record(name, answer).unwrap();
                assert!(!diff(&before, chain.template()).is_empty());
                assert!(template_digest(chain.template()) != template_digest(&before));
            }
            let made = chain.finish().unwrap();
            let inputs = Inputs {
                template: &template,
                credentials: &[],
                conventions: &[],
                resolution: "",
            };
            let pass = Pass {
                outcome: Ok(made),
                inputs_digest: inputs.digest(),
                template_inputs_digest: inputs.digest_of_contents(),
                conventions: Vec::new(),
                images: Vec::new(),
            };
            let (before, now) = (PodIntentStatus::default(), Time(Timestamp::UNIX_EPOCH));
            let after = status_after(&before, 1, pass, &now);
            let stored: PodIntentStatus =
                serde_json::from_value(serde_json::to_value(&after).unwrap()).unwrap();
            assert!(say_the_same(&stored, &after));
        }
    });
}

#[test]
fn ten_times_the_variables_take_about_ten_times_as_long_to_admit() {
    takes_about_ten_times_as_long(11_000, |count| {
        let template = serde_json::to_value(with_variables(count)).unwrap();
        let secrets: Vec<Value> = (0..count)
            .map(|index| json!({"name": format!("s{index}")}))
            .collect();
        let intent = json!({"spec": {"template": template, "imagePullSecrets": secrets}});
        move || assert_eq!(intent_refusal(&intent), None)
    });
}

#[test]
fn ten_times_the_kinds_of_owners_take_about_ten_times_as_long_to_count() {
    takes_about_ten_times_as_long(20_000, |count| {
        let owners: Vec<String> = (0..count).map(|index| format!("Kind{index}.a")).collect();
        move || {
            let counted = owners.iter().map(|owner| Counted {
                ready: ConditionStatus::True,
                owner: Some(owner),
            });
            let data = data(counted, owners.clone());
            assert_eq!(data["podintents_count"], count.to_string());
        }
    });
}
