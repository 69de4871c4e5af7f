//! The wire format, as servers in Go have it.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use convention_protocol::{
    Bom, ImageConfig, PodConventionAnswer, PodConventionContext, PodTemplate,
};
use serde_json::{Value, json};

fn template(value: Value) -> PodTemplate {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_request_has_all_that_go_writes() {
    let image = "index.docker.io/library/ubuntu:bionic@sha256:aa";
    let request = PodConventionContext::request(
        "app-add-env".to_owned(),
        template(json!({"spec": {"containers": [{"name": "a", "image": image}]}})),
        vec![ImageConfig {
            image: image.to_owned(),
            boms: vec![Bom {
                name: "cnb-app:/a.json".to_owned(),
                raw: b"{}".to_vec(),
            }],
            config: json!({"architecture": "amd64", "os": "linux", "x-vendor": 1}),
        }],
    );
    assert_eq!(
        serde_json::to_value(&request).unwrap(),
        json!({
            "apiVersion": "webhooks.conventions.carto.run/v1alpha1",
            "kind": "PodConventionContext",
            "metadata": {"name": "app-add-env"},
            "spec": {
                "template": {"metadata": {}, "spec": {"containers": [{"name": "a", "image": image}]}},
                "imageConfig": [{
                    "image": image,
                    "boms": [{"name": "cnb-app:/a.json", "raw": "e30="}],
                    "config": {"architecture": "amd64", "os": "linux", "x-vendor": 1},
                }],
            },
            "status": {
                "template": {"metadata": {}, "spec": {"containers": null}},
                "appliedConventions": null,
            },
        })
    );
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(
        serde_json::from_str::<PodConventionContext>(&text).unwrap(),
        request
    );
}

#[test]
fn an_image_without_bills_of_materials_has_no_key_for_them() {
    let image = serde_json::to_value(ImageConfig::default()).unwrap();
    assert_eq!(image, json!({"image": "", "config": null}));
}

#[test]
fn a_template_without_spec_is_asked_about_with_an_empty_one() {
    let request = PodConventionContext::request(String::new(), PodTemplate::default(), Vec::new());
    assert_eq!(
        serde_json::to_value(request.spec).unwrap(),
        json!({"template": {"metadata": {}, "spec": {"containers": null}}, "imageConfig": []})
    );
}

#[test]
fn what_go_leaves_empty_is_read_as_absent() {
    for given in [
        json!({}),
        json!({"metadata": null, "spec": null, "status": null}),
        json!({"apiVersion": null, "kind": null, "metadata": {"name": null, "creationTimestamp": null}}),
        json!({"spec": {"template": null, "imageConfig": null}, "status": {"template": null, "appliedConventions": null}}),
        json!({"spec": {"template": {"metadata": {"creationTimestamp": null, "labels": null, "annotations": null, "name": null}}}}),
        json!({"spec": {"imageConfig": []}, "unknown": {"a": 1}}),
    ] {
        let read: PodConventionContext = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(read, PodConventionContext::default(), "{given}");
    }
    let image = json!({"image": "a", "boms": null, "config": null});
    let read: ImageConfig = serde_json::from_value(image).unwrap();
    assert_eq!(read.image, "a");
    let bom: Bom = serde_json::from_value(json!({"name": "a", "raw": null})).unwrap();
    assert!(bom.raw.is_empty());
}

#[test]
fn null_in_a_list_or_map_of_texts_is_an_empty_text() {
    let read = template(json!({"metadata": {"labels": {"a": null, "b": "c"}}}));
    assert_eq!(read.metadata.labels["a"], "");
    assert_eq!(read.metadata.labels["b"], "c");
    let read: PodConventionAnswer =
        serde_json::from_value(json!({"status": {"appliedConventions": [null, "a"]}})).unwrap();
    let applied = read.status.applied_conventions.unwrap();
    assert_eq!(applied, ["", "a"]);
}

#[test]
fn of_metadata_five_keys_are_kept() {
    let read = template(json!({"metadata": {
        "name": "n", "generateName": "g-", "namespace": "ns", "labels": {"a": "b"}, "annotations": {"c": "d"},
        "uid": "1", "finalizers": ["x"], "ownerReferences": [], "creationTimestamp": null,
    }}));
    assert_eq!(
        serde_json::to_value(read).unwrap(),
        json!({"metadata": {
            "name": "n", "generateName": "g-", "namespace": "ns", "labels": {"a": "b"}, "annotations": {"c": "d"},
        }})
    );
}

#[test]
fn what_is_of_another_type_is_refused() {
    for wrong in [
        json!({"spec": {"template": {"metadata": {"labels": {"a": 1}}}}}),
        json!({"spec": {"template": {"spec": []}}}),
        json!({"spec": {"template": "x"}}),
        json!({"status": {"appliedConventions": "x"}}),
        json!({"status": {"appliedConventions": [1]}}),
        json!({"spec": {"imageConfig": [{"boms": [{"raw": "not base64"}]}]}}),
    ] {
        let read = serde_json::from_value::<PodConventionContext>(wrong.clone());
        assert!(read.is_err(), "{wrong}");
    }
}

#[test]
fn an_answer_does_not_repeat_the_request() {
    let given = template(json!({"spec": {"containers": [{"name": "a"}]}}));
    let request = PodConventionContext::request("a-b".to_owned(), given.clone(), Vec::new());
    let answer = serde_json::to_value(request.answer(given, Vec::new())).unwrap();
    assert_eq!(
        answer,
        json!({
            "apiVersion": "webhooks.conventions.carto.run/v1alpha1",
            "kind": "PodConventionContext",
            "metadata": {"name": "a-b"},
            "status": {
                "template": {"metadata": {}, "spec": {"containers": [{"name": "a"}]}},
                "appliedConventions": [],
            },
        })
    );
}

#[test]
fn images_are_replaced_in_all_containers_but_ephemeral_ones() {
    let mut given = template(json!({"spec": {
        "initContainers": [{"name": "i", "image": "a"}],
        "containers": [{"name": "c", "image": "a"}, {"name": "d", "image": "b"}, {"name": "e"}, {"name": "f", "image": ""}],
        "ephemeralContainers": [{"name": "x", "image": "a"}, {"name": "y", "image": "z"}],
    }}));
    assert_eq!(given.images().into_iter().collect::<Vec<_>>(), ["a", "b"]);
    given.replace_images(&[("a".to_owned(), "a@1".to_owned())].into());
    assert_eq!(
        serde_json::to_value(&given).unwrap()["spec"],
        json!({
            "initContainers": [{"name": "i", "image": "a@1"}],
            "containers": [{"name": "c", "image": "a@1"}, {"name": "d", "image": "b"}, {"name": "e"}, {"name": "f", "image": ""}],
            "ephemeralContainers": [{"name": "x", "image": "a"}, {"name": "y", "image": "z"}],
        })
    );
    assert_eq!(given.containers(), 4);
}

#[test]
fn whatever_the_spec_holds_no_image_is_found_where_none_can_be() {
    for odd in [
        json!({"containers": "x", "initContainers": {"image": "a"}}),
        json!({"containers": [null, 1, "image", {"image": {"a": 1}}, {"image": null}, ["image"]]}),
    ] {
        let mut given = template(json!({"spec": odd}));
        assert!(given.images().is_empty());
        let before = given.clone();
        given.replace_images(&[("a".to_owned(), "b".to_owned())].into());
        assert_eq!(given, before);
    }
    assert_eq!(PodTemplate::default().containers(), 0);
}

#[test]
fn the_bytes_of_a_bill_of_materials_are_in_no_log() {
    let bom = Bom {
        name: "n".to_owned(),
        raw: b"private".to_vec(),
    };
    assert_eq!(format!("{bom:?}"), r#"Bom("n", 7 bytes)"#);
}
