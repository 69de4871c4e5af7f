use convention_protocol::APPLIED_CONVENTIONS;
use serde_json::json;

use super::*;

fn template(value: Value) -> PodTemplate {
    serde_json::from_value(value).unwrap()
}

fn answer(given: Value, applied: &[&str]) -> Answer {
    Answer {
        template: serde_json::from_value(given).unwrap(),
        applied: applied.iter().map(|&name| name.to_owned()).collect(),
    }
}

fn one_container() -> Value {
    json!({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "0.5"}}, "newer": {"x": [1, null]}}]}})
}

#[test]
fn without_conventions_the_template_is_the_authors_word_for_word() {
    let given = json!({
        "metadata": {"annotations": {APPLIED_CONVENTIONS: "odd\n\nodd"}},
        "spec": {"containers": null, "newer": null, "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "0.5Gi"}}]},
    });
    let chain = Chain::start(template(given.clone()));
    assert_eq!(
        serde_json::to_value(chain.finish().unwrap()).unwrap(),
        given
    );
}

#[test]
fn a_later_convention_is_asked_about_what_an_earlier_one_made() {
    let mut chain = Chain::start(template(one_container()));
    let two = json!({"metadata": {"labels": {"l": "m"}}, "spec": {"containers": [{"name": "a"}, {"name": "sidecar", "image": "b"}]}});
    chain.record("first", answer(two, &["added"])).unwrap();
    chain.resolve(&[("b".to_owned(), "b@1".to_owned())].into());
    let asked = serde_json::to_value(chain.request("app", "second", Vec::new())).unwrap();
    assert_eq!(asked["metadata"]["name"], "app-second");
    assert_eq!(
        asked["spec"]["template"],
        json!({
            "metadata": {"labels": {"l": "m"}, "annotations": {APPLIED_CONVENTIONS: "first/added"}},
            "spec": {"containers": [{"name": "a"}, {"name": "sidecar", "image": "b@1"}]},
        })
    );
}

#[test]
fn an_answer_that_cannot_be_stored_changes_nothing() {
    let mut chain = Chain::start(template(one_container()));
    let long = "x".repeat(MOST_TEMPLATES_BYTES);
    for (given, said) in [
        (json!(null), "status.template: Required value"),
        (json!({}), "spec.containers: Required value"),
        (json!({"spec": null}), "spec.containers: Required value"),
        (
            json!({"spec": {"containers": null}}),
            "spec.containers: Required value",
        ),
        (
            json!({"spec": {"volumes": []}}),
            "spec.containers: Required value",
        ),
        (
            json!({"spec": {"containers": []}}),
            "spec.containers: Required value: the template had containers before",
        ),
        (
            json!({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}),
            r#"spec.containers[1]: Duplicate value: {"name":"a"}"#,
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "args": [null]}]}}),
            r#"spec.containers[0].args[0]: Invalid value: "null": must be of type string: "null""#,
        ),
    ] {
        let fault = chain
            .record("c", answer(given.clone(), &["x"]))
            .unwrap_err();
        assert_eq!(fault.to_string(), said, "{given}");
    }
    let given = json!({"spec": {"containers": [{"name": "a", "args": [long]}]}});
    let fault = chain.record("c", answer(given, &[])).unwrap_err();
    assert!(
        fault
            .problem
            .starts_with("Too long: may not be more than 1048"),
        "{fault}"
    );
    assert!(fault.problem.contains(" bytes, and has 1048"), "{fault}");
    assert_eq!(serde_json::to_value(chain.finish().unwrap()).unwrap(), {
        let mut unchanged = one_container();
        unchanged["metadata"] = json!({});
        unchanged
    });
}

#[test]
fn the_template_of_the_author_takes_room_from_the_one_in_status() {
    let of = |bytes: usize| {
        template(json!({"spec": {"containers": [{"name": "a", "args": ["x".repeat(bytes)]}]}}))
    };
    let half = MOST_TEMPLATES_BYTES / 2;
    assert!(Chain::start(of(half - 100)).finish().is_ok());
    let fault = Chain::start(of(half)).finish().unwrap_err();
    assert_eq!(fault.field, "status.template");
    let fault = Chain::start(of(2 * MOST_TEMPLATES_BYTES))
        .finish()
        .unwrap_err();
    assert!(
        fault
            .problem
            .starts_with("Too long: may not be more than 0 bytes"),
        "{fault}"
    );
}

#[test]
fn receipts_count_towards_the_size() {
    let mut chain = Chain::start(template(one_container()));
    let long = "x".repeat(MOST_TEMPLATES_BYTES);
    let fault = chain
        .record("c", answer(one_container(), &[&long]))
        .unwrap_err();
    assert_eq!(fault.field, "status.template");
}

#[test]
fn a_template_that_never_had_containers_needs_none() {
    let mut chain = Chain::start(PodTemplate::default());
    let nothing = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": null}});
    chain.record("c", answer(nothing, &[])).unwrap();
    assert_eq!(
        serde_json::to_value(chain.finish().unwrap()).unwrap(),
        json!({"metadata": {"labels": {"a": "b"}}})
    );
}

#[test]
fn a_convention_cannot_touch_what_was_applied_before_it() {
    let seeded = json!({"metadata": {"annotations": {APPLIED_CONVENTIONS: "other-intent/x"}}, "spec": {"containers": []}});
    let mut chain = Chain::start(template(seeded));
    chain
        .record("one", answer(json!({"spec": {"containers": []}}), &["y"]))
        .unwrap();
    for forged in ["security/checked", "", "one/y\nsecurity/checked"] {
        let given = json!({"metadata": {"annotations": {APPLIED_CONVENTIONS: forged, "own": "kept"}}, "spec": {"containers": []}});
        chain
            .record("two", answer(given, &["z\nsecurity/checked"]))
            .unwrap();
        let annotations = &chain.template().metadata.annotations;
        assert_eq!(
            annotations[APPLIED_CONVENTIONS],
            "other-intent/x\none/y\ntwo/z\\nsecurity/checked"
        );
        assert_eq!(annotations["own"], "kept");
    }
}

#[test]
fn a_convention_that_did_nothing_leaves_no_annotation() {
    let mut chain = Chain::start(template(one_container()));
    let given = json!({"metadata": {"annotations": {APPLIED_CONVENTIONS: "security/checked"}}, "spec": {"containers": [{"name": "a"}]}});
    chain.record("c", answer(given, &[])).unwrap();
    assert!(chain.finish().unwrap().metadata.annotations.is_empty());
}

#[test]
fn a_quantity_keeps_the_words_of_its_author_unless_the_amount_changed() {
    let with = |cpu: &str, memory: &str| json!({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": cpu, "memory": memory}}}]}});
    let mut chain = Chain::start(template(with("0.5", "1024Mi")));
    chain
        .record("go", answer(with("500m", "2Gi"), &[]))
        .unwrap();
    chain
        .record("go-too", answer(with("500m", "2Gi"), &[]))
        .unwrap();
    assert_eq!(chain.finish().unwrap(), template(with("0.5", "2Gi")));
}

#[test]
fn images_and_containers_may_be_changed() {
    let mut chain = Chain::start(template(one_container()));
    let given = json!({"spec": {"containers": [{"name": "b", "image": "other"}, {"name": "c"}], "initContainers": [{"name": "i"}]}});
    chain.record("c", answer(given.clone(), &[])).unwrap();
    assert_eq!(chain.finish().unwrap(), template(given));
}
