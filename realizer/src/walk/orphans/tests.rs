use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::Template;

const CHAIN: BlueprintLabel<'static> = BlueprintLabel {
    key: labels::SUPPLY_CHAIN_NAME,
    name: "chain",
};

/// Templates `mutable` and `immutable`; all others are missing.
struct Templates;

impl TemplateSource for Templates {
    fn template(&self, kind: TemplateKind, name: &str) -> TemplateState {
        if name == "gone" {
            return TemplateState::Missing;
        }
        let template = Template::compile(&json!({
            "apiVersion": "carto.run/v1alpha1", "kind": kind.as_str(), "metadata": {"name": name},
            "spec": {"ytt": "", "lifecycle": name},
        }));
        TemplateState::Found(Arc::new(template.unwrap()))
    }
}

/// An entry `<step>=<template>:<object>`; no object when it is empty.
fn entry(text: &str) -> ResourceStatus {
    let (step, rest) = text.split_once('=').unwrap();
    let (template, object) = rest.split_once(':').unwrap();
    let stamped =
        (!object.is_empty()).then(|| crate::owner::owner_status::stamped_ref(&reference(object)));
    ResourceStatus {
        name: step.to_owned(),
        stamped_ref: stamped,
        template_ref: (!template.is_empty()).then(|| TemplateRef::new("ClusterTemplate", template)),
        ..ResourceStatus::default()
    }
}

fn reference(name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "test.run/v1".to_owned(),
        kind: "Test".to_owned(),
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        qualified_resource: Some("tests.test.run".to_owned()),
        uid: None,
    }
}

/// A known object `[<blueprint>>]<step>=<template>/<lifecycle>:<object>[!]`, `!` for terminating. This walk's blueprint is
/// `chain`.
fn known(text: &str) -> KnownObject {
    let (blueprint, text) = text.split_once('>').unwrap_or(("chain", text));
    let (step, rest) = text.split_once('=').unwrap();
    let (template, object) = rest.split_once(':').unwrap();
    let (template, lifecycle) = template.split_once('/').unwrap();
    let name = object.trim_end_matches('!');
    let labels = [
        (labels::SUPPLY_CHAIN_NAME, blueprint),
        (labels::RESOURCE_NAME, step),
        (labels::TEMPLATE_KIND, "ClusterTemplate"),
        (labels::CLUSTER_TEMPLATE_NAME, template),
        (labels::TEMPLATE_LIFECYCLE, lifecycle),
    ];
    KnownObject {
        object: ObjectRef {
            uid: Some(format!("u-{name}")),
            ..reference(name)
        },
        labels: labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        terminating: object.ends_with('!'),
    }
}

/// Current entries; a leading `!` marks a step that failed. What is kept for now stands in parentheses.
fn orphans(previous: &[&str], current: &[&str], knowns: &[&str]) -> String {
    let status = OwnerStatus {
        resources: previous.iter().map(|text| entry(text)).collect(),
        ..OwnerStatus::default()
    };
    found(&status, current, knowns)
}

fn found(previous: &OwnerStatus, current: &[&str], knowns: &[&str]) -> String {
    let entries: Vec<(ResourceStatus, bool)> = current
        .iter()
        .map(|text| (entry(text.trim_start_matches('!')), !text.starts_with('!')))
        .collect();
    let known: Vec<KnownObject> = knowns.iter().map(|text| known(text)).collect();
    let current = entries
        .iter()
        .map(|(status, is_settled)| CurrentStep {
            status,
            target: None,
            is_settled: *is_settled,
            lifecycle: status.template_ref.as_ref().map(|template| {
                match template.name.as_deref() {
                    Some("immutable") => Lifecycle::Immutable,
                    _ => Lifecycle::Mutable,
                }
            }),
        })
        .collect();
    let found = Orphans {
        blueprint: CHAIN,
        current,
        known: &known,
        templates: &Templates,
    }
    .find(previous);
    let shown = |removal: &Removal| format!("{}/{}", removal.resource, removal.object.name);
    let removals = found.removals.iter().map(shown);
    let kept = found
        .kept
        .iter()
        .map(|kept| format!("({})", shown(&kept.removal)));
    removals.chain(kept).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_status_remembers_is_kept_as_long_as_a_step_stands_for_it() {
    let cases: [(&[&str], &[&str], &str); 12] = [
        (&["a=mutable:x"], &["a=mutable:x"], ""),
        (&["a=mutable:x"], &[], "a/x"),
        (&["a=mutable:x"], &["a=mutable:y"], "a/x"),
        // Another step stamps the same object.
        (&["a=mutable:x"], &["b=mutable:x"], ""),
        (&["a=mutable:x"], &["a=immutable:x"], ""),
        // A new member of the same family.
        (&["a=immutable:x"], &["a=immutable:y"], ""),
        (&["a=immutable:x"], &["b=immutable:y"], "a/x"),
        (&["a=immutable:x"], &["a=mutable:y"], "a/x"),
        // The template is gone.
        (&["a=gone:x"], &["a=mutable:y"], "a/x"),
        (&["a=gone:x"], &["a=mutable:x"], ""),
        // A pass-through step stands for no object.
        (&["a=mutable:x"], &["a=:"], "a/x"),
        (&["a=mutable:x", "b=mutable:x"], &[], "a/x"),
    ];
    for (previous, current, expected) in cases {
        assert_eq!(
            orphans(previous, current, &[]),
            expected,
            "{previous:?} -> {current:?}"
        );
    }
}

#[test]
fn the_label_of_the_live_object_says_how_it_was_stamped() {
    // The template became immutable; its old object was mutable.
    assert_eq!(
        orphans(
            &["a=immutable:x"],
            &["a=immutable:y"],
            &["a=immutable/mutable:x"]
        ),
        "a/x"
    );
    assert_eq!(
        orphans(
            &["a=immutable:x"],
            &["a=immutable:y"],
            &["a=immutable/immutable:x"]
        ),
        ""
    );
    assert_eq!(
        orphans(
            &["a=immutable:x"],
            &["a=immutable:y"],
            &["a=immutable/tekton:x"]
        ),
        "a/x",
        "tekton was another family"
    );
}

/// Retention sees none of them any more: upstream keeps them for ever.
#[test]
fn what_a_step_made_under_another_blueprint_is_not_of_its_family() {
    let check = |previous: &[&str], current: &[&str], knowns: &[&str], expected: &str| {
        let found = orphans(previous, current, knowns);
        assert_eq!(found, expected, "{previous:?} -> {current:?} {knowns:?}");
    };
    let (old, older) = ("old>a=immutable/immutable:x", "old>a=immutable/immutable:w");
    let new = "a=immutable/immutable:y";
    check(
        &["a=immutable:x"],
        &["a=immutable:y"],
        &[older, old, new],
        "a/x a/w",
    );
    // Not before there is one of the new family.
    check(&["a=immutable:x"], &["!a=immutable:x"], &[older, old], "");
    // What a step stands for now stays, whatever its labels say.
    let others = ["a=immutable:y", "b=mutable:x"];
    check(&["a=immutable:x"], &others, &[old, new], "");
    check(&[], &["a=immutable:x"], &[old], "");
    // Somebody has stripped the label.
    let stripped = ">a=immutable/immutable:x";
    check(&[], &["a=immutable:y"], &[stripped, new], "");
    // Of an object that the caches do not hold nobody knows under which blueprint it was made.
    check(&["a=immutable:x"], &["a=immutable:y"], &[], "");
}

#[test]
fn what_status_forgot_is_found_by_its_labels() {
    let cases: [(&[&str], &[&str], &str); 9] = [
        (&["a=mutable:x"], &["a=mutable/mutable:x"], ""),
        (&["a=mutable:x"], &["b=mutable/mutable:y"], "b/y"),
        (&["a=mutable:x"], &["a=mutable/mutable:y"], "a/y"),
        // The step failed: nothing is known of what it stands for now.
        (&["!a=mutable:x"], &["a=mutable/mutable:y"], ""),
        (&["!a=:"], &["a=mutable/mutable:y"], ""),
        // Older members of the family are retention's matter.
        (
            &["a=immutable:y"],
            &["a=immutable/immutable:x", "a=immutable/immutable:y"],
            "",
        ),
        (&["a=immutable:y"], &["a=other/immutable:x"], "a/x"),
        // The Go controller leaves the template's name empty for steps with options.
        (&["a=immutable:y"], &["a=/immutable:x"], ""),
        (&["a=mutable:x"], &["b=mutable/mutable:y!"], ""),
    ];
    for (current, knowns, expected) in cases {
        assert_eq!(
            orphans(&[], current, knowns),
            expected,
            "{current:?} {knowns:?}"
        );
    }
}

#[test]
fn objects_without_our_label_are_left_alone() {
    assert_eq!(orphans(&[], &[], &["=mutable/mutable:x"]), "");
}

#[test]
fn a_terminating_object_is_not_removed_again() {
    assert_eq!(
        orphans(&["a=mutable:x"], &[], &["a=mutable/mutable:x!"]),
        ""
    );
}

#[test]
fn a_new_version_of_the_same_group_is_the_same_object() {
    let mut newer = reference("x");
    newer.api_version = "test.run/v2".to_owned();
    assert!(reference("x").is_same(&newer));
    newer.api_version = "other.run/v1".to_owned();
    assert!(!reference("x").is_same(&newer));
}

#[test]
fn removals_carry_the_uid_when_it_is_known() {
    let previous = OwnerStatus {
        resources: vec![entry("a=mutable:x"), entry("b=mutable:y")],
        ..OwnerStatus::default()
    };
    let known = [known("a=mutable/mutable:x")];
    let removals = Orphans {
        blueprint: CHAIN,
        current: Vec::new(),
        known: &known,
        templates: &Templates,
    }
    .find(&previous);
    let uids: Vec<_> = removals
        .removals
        .iter()
        .map(|removal| removal.object.uid.as_deref())
        .collect();
    assert_eq!(uids, [Some("u-x"), None]);
}

#[test]
fn pending_removals_are_tried_again_unless_wanted_again() {
    let pending = |name: &str| {
        let reference = ObjectRef {
            uid: Some("u".to_owned()),
            ..reference(name)
        };
        OwnerStatus {
            pending_removals: vec![crate::owner::owner_status::stamped_ref(&reference)],
            ..OwnerStatus::default()
        }
    };
    assert_eq!(found(&pending("x"), &[], &[]), "/x");
    assert_eq!(found(&pending("x"), &["a=mutable:x"], &[]), "");
    assert_eq!(found(&pending("x"), &[], &["b=mutable/mutable:x!"]), "");
    assert_eq!(found(&pending("x"), &[], &["b=mutable/mutable:x"]), "b/x");
    assert_eq!(
        found(
            &pending("x"),
            &["a=immutable:y"],
            &["a=immutable/immutable:x"]
        ),
        ""
    );
}

#[test]
fn unreadable_labels_are_no_lifecycle() {
    let mut object = known("a=mutable/immutable:x");
    object.labels.clear();
    assert!(!object.is_held_as(Some(Lifecycle::Immutable)));
}
