use api_types::Provenance;
use serde_json::json;

use super::*;

/// An Artifact as it is written.
fn written() -> Value {
    let mut spec = api_types::ArtifactSpec {
        owner: ArtifactOwner {
            kind: "Workload".to_owned(),
            name: "app".to_owned(),
            uid: "u".to_owned(),
        },
        step: "build".to_owned(),
        outputs: vec![ArtifactOutput {
            name: "image".to_owned(),
            value: json!("image@1"),
        }],
        provenance: Some(Provenance {
            identity: String::new(),
            accepted: serde_json::from_value(json!("2026-01-02T03:04:05Z")).unwrap(),
            object: api_types::ProvenanceObject::default(),
            template: "t".to_owned(),
            read_from: "r".to_owned(),
            params: "p".to_owned(),
            inputs: Vec::new(),
            foreign_fields: Vec::new(),
        }),
        rendering: Some("sha256:0".to_owned()),
    };
    let identity = identity_of(&spec).unwrap();
    let name = artifact_name("Workload", "app", "build", &identity);
    if let Some(provenance) = &mut spec.provenance {
        provenance.identity = identity;
    }
    json!({"apiVersion": "carto.run/v1alpha1", "kind": "Artifact",
        "metadata": {"name": name, "ownerReferences": [{"uid": "u"}]}, "spec": spec})
}

#[test]
fn an_artifact_is_whole_only_if_its_identity_is_that_of_all_it_says() {
    assert!(KnownArtifact::read(&written()).is_whole);
    for (place, value) in [
        ("/spec/outputs/0/value", json!("evil")),
        ("/spec/outputs/0/name", json!("config")),
        ("/spec/step", json!("deploy")),
        ("/spec/owner/name", json!("other")),
        ("/spec/owner/kind", json!("Deliverable")),
        ("/spec/owner/uid", json!("other")),
        ("/spec/rendering", json!("sha256:1")),
        ("/spec/provenance/template", json!("other")),
        ("/spec/provenance/params", json!("other")),
        (
            "/spec/provenance/inputs",
            json!([{"name": "fetch", "identity": "x"}]),
        ),
        ("/spec/provenance/object/uid", json!("other")),
        ("/spec/provenance/identity", json!("other")),
        ("/metadata/name", json!("other")),
        ("/metadata/ownerReferences", json!([])),
        ("/spec/provenance", json!(5)),
        ("/spec", json!("text")),
        ("/metadata", json!(null)),
    ] {
        let mut object = written();
        match object.pointer_mut(place) {
            Some(part) => *part = value,
            None => object["spec"]["provenance"]["inputs"] = value,
        }
        assert!(!KnownArtifact::read(&object).is_whole, "{place}");
    }
}

/// As YAML both are `9.007199254740992e+15`.
#[test]
fn large_numbers_that_are_equal_as_doubles_are_told_apart() {
    let of = |number: u64| {
        digest_of(&[ArtifactOutput {
            name: "config".to_owned(),
            value: json!({"id": number}),
        }])
    };
    let (one, other) = (9_007_199_254_740_993, 9_007_199_254_740_992);
    assert_ne!(of(one), of(other));
    let yaml = |number: u64| yaml_digest::digest(&json!({"id": number}));
    assert_eq!(
        yaml(one),
        yaml(other),
        "the digest that status shows does not"
    );
}

#[test]
fn one_without_the_digest_of_its_rendering_cannot_be_checked() {
    let mut object = written();
    assert!(!KnownArtifact::read(&object).is_keyed);
    object["spec"]["rendering"] = Value::Null;
    assert!(KnownArtifact::read(&object).is_keyed);
}
