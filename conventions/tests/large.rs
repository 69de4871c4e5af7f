//! Objects as large as etcd takes, or as a webhook may answer: whoever writes them must not be able
//! to keep the controller busy.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::time::{Duration, Instant};

use convention_protocol::{APPLIED_CONVENTIONS, PodTemplate};
use conventions::admission::{convention_refusal, intent_refusal};
use conventions::quantity::keep_wording;
use conventions::receipts::Receipts;
use serde_json::{Value, json};

/// The best of several times: the machine may be busy.
fn time_of(mut once: impl FnMut()) -> Duration {
    let timed = |()| {
        let began = Instant::now();
        once();
        began.elapsed()
    };
    std::iter::repeat_n((), 5).map(timed).min().unwrap()
}

/// What looks through all items for each item would take a hundred times as long.
fn is_about_linear(most: usize, prepare: impl Fn(usize) -> Box<dyn FnMut()>) {
    let [few, many] = [most / 10, most].map(|count| time_of(prepare(count)));
    assert!(many < few * 40, "{few:?} and {many:?}");
}

#[test]
fn ten_times_the_receipts_take_about_ten_times_as_long() {
    is_about_linear(20_000, |count| {
        let lines: Vec<String> = (0..count).map(|index| format!("a/{index}")).collect();
        let mut template = PodTemplate::default();
        let annotations = &mut template.metadata.annotations;
        annotations.insert(APPLIED_CONVENTIONS.to_owned(), lines.join("\n"));
        Box::new(move || {
            let mut receipts = Receipts::of(&template);
            receipts.add("b", &lines);
            assert_eq!(receipts.lines().len(), 2 * count);
        })
    });
}

#[test]
fn ten_times_the_variables_take_about_ten_times_as_long_to_find_again() {
    is_about_linear(5_000, |count| {
        let env: Vec<Value> = (0..count)
            .map(|index| json!({"name": format!("V{index}")}))
            .collect();
        let spec = json!({"spec": {"containers": [{"name": "a", "env": env}]}});
        let template: PodTemplate = serde_json::from_value(spec).unwrap();
        Box::new(move || {
            let mut answered = template.clone();
            keep_wording(&template, &mut answered);
            assert_eq!(answered, template);
        })
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
