use controller_kit::openapi::{SchemaCache, fetch_schema};
use http::StatusCode;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use submission::openapi::{conform, is_typed_patch_failure};
use test_support::{ControlPlane, eventually, objects_in, shared_control_plane};

use crate::stage::PATIENCE;

fn api(client: &kube::Client, namespace: &str, object: &Value) -> Api<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap();
    objects_in(client, namespace, text("apiVersion"), text("kind"))
}

async fn apply(
    client: &kube::Client,
    namespace: &str,
    object: &Value,
) -> Result<DynamicObject, kube::Error> {
    let parameters = PatchParams::apply("carto-test").force();
    api(client, namespace, object)
        .patch(
            object["metadata"]["name"].as_str().unwrap(),
            &parameters,
            &Patch::Apply(object),
        )
        .await
}

/// The server refuses the object with the text we know, takes what we make of it, and then finds nothing more to refuse.
async fn mended(plane: &ControlPlane, mut object: Value, changed: &[&str]) -> Value {
    let client = plane.client().unwrap();
    let namespace = plane.create_namespace("typed").await.unwrap();
    let refusal = apply(&client, &namespace, &object).await.unwrap_err();
    assert!(
        matches!(&refusal, kube::Error::Api(status) if is_typed_patch_failure(status)),
        "{refusal:?}"
    );
    let (api_version, kind) = (
        object["apiVersion"].as_str().unwrap().to_owned(),
        object["kind"].as_str().unwrap().to_owned(),
    );
    let cache = SchemaCache::default();
    let paths = eventually("the schema is published", PATIENCE, async || {
        let mut copy = object.clone();
        let schema = cache.schema(&client, &api_version, &kind).await;
        let paths = conform(&mut copy, &*schema.map_err(|error| error.to_string())?);
        Ok::<_, String>(Some((copy, paths)))
    })
    .await;
    object = paths.0;
    assert_eq!(paths.1, changed);
    let applied = apply(&client, &namespace, &object).await.unwrap();
    serde_json::to_value(applied).unwrap()
}

#[tokio::test]
async fn a_deployment_with_the_owners_env_and_the_templates_env_is_mended() {
    let plane = shared_control_plane().await.unwrap();
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app", "annotations": {"a.b/c": "d"}}, "spec": {
        "selector": {"matchLabels": {"app": "app"}}, "replcas": 3,
        "template": {"metadata": {"labels": {"app": "app"}}, "spec": {"containers": [{
            "name": "workload", "image": "i", "imagePull": "Always",
            "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP", "name": "web"}, {"containerPort": 80, "protocol": "UDP"}],
            "env": [{"name": "A", "value": "owner"}, {"name": "B", "value": "1"}, {"name": "A", "value": "template"}],
            "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}, "args": ["x", "x"]}]}}}});
    let applied = mended(
        plane,
        object,
        &[
            "spec.replcas",
            "spec.template.spec.containers[0].env[name=A]",
            "spec.template.spec.containers[0].imagePull",
            "spec.template.spec.containers[0].ports[containerPort=80,protocol=TCP]",
        ],
    )
    .await;
    let container = &applied["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["env"],
        json!([{"name": "A", "value": "template"}, {"name": "B", "value": "1"}])
    );
    assert_eq!(container["args"], json!(["x", "x"]));
    assert_eq!(container["ports"].as_array().unwrap().len(), 2);
}

const CRD: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: stricts.typed.test}
spec:
  group: typed.test
  names: {kind: Strict, plural: stricts, listKind: StrictList, singular: strict}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {x-kubernetes-int-or-string: true}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                partly: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {a: {type: string}}}}}
                labels: {type: object, additionalProperties: {type: object, properties: {v: {type: string}}}}
                items:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name, zone]
                  items:
                    type: object
                    required: [name]
                    properties: {name: {type: string}, zone: {type: string, default: z}, value: {type: integer}}
                tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                plain: {type: array, items: {type: object, properties: {a: {type: string}}}}
                empty: {type: object}
";

#[tokio::test]
async fn a_custom_object_is_mended_in_every_form_a_schema_has() {
    let plane = shared_control_plane().await.unwrap();
    plane.apply_yaml(CRD).await.unwrap();
    let client = plane.client().unwrap();
    eventually("the kind is served", PATIENCE, async || {
        api(
            &client,
            "default",
            &json!({"apiVersion": "typed.test/v1", "kind": "Strict"}),
        )
        .get_opt("x")
        .await
        .is_ok()
    })
    .await;
    let object = json!({"apiVersion": "typed.test/v1", "kind": "Strict", "metadata": {"name": "app"}, "spec": {
        "size": "10%", "bogus": {"deep": 1}, "free": {"x": [1, 1, {"y": null}]},
        "partly": {"other": 1, "known": {"a": "1", "b": 2}},
        "labels": {"k.x/y": {"v": "1", "w": 2}},
        "items": [{"name": "a", "value": 1}, {"name": "b"}, {"name": "a", "zone": "z", "value": 2}, {"name": "a", "zone": "other"}],
        "tags": ["a", "b", "a"], "plain": [{"a": "1", "c": 1}, {"a": "1"}], "empty": {"x": 1}}});
    let applied = mended(
        plane,
        object,
        &[
            "spec.bogus",
            "spec.items[name=a,zone=z]",
            "spec.labels[\"k.x/y\"].w",
            "spec.partly.known.b",
            "spec.plain[0].c",
            "spec.tags[=a]",
        ],
    )
    .await;
    assert_eq!(
        applied["spec"],
        json!({"size": "10%", "free": {"x": [1, 1, {"y": null}]}, "partly": {"other": 1, "known": {"a": "1"}}, "labels": {"k.x/y": {"v": "1"}},
            "items": [{"name": "a", "zone": "z", "value": 2}, {"name": "b", "zone": "z"}, {"name": "a", "zone": "other"}],
            "tags": ["a", "b"], "plain": [{"a": "1"}, {"a": "1"}], "empty": {}})
    );
}

#[tokio::test]
async fn refusals_for_other_reasons_are_not_mistaken_for_it() {
    let plane = shared_control_plane().await.unwrap();
    let namespace = plane.create_namespace("typed").await.unwrap();
    let client = plane.client().unwrap();
    let invalid = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "name"}, "data": {"not a key": "b"}});
    let powerless = plane.client_as_user("powerless", &[]).unwrap();
    let valid = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "name"}, "data": {"a": "b"}});
    for (client, object, code) in [
        (client, invalid, StatusCode::UNPROCESSABLE_ENTITY),
        (powerless, valid, StatusCode::FORBIDDEN),
    ] {
        let Err(kube::Error::Api(status)) = apply(&client, &namespace, &object).await else {
            panic!("taken")
        };
        assert_eq!(status.code, code.as_u16());
        assert!(!is_typed_patch_failure(&status), "{status:?}");
    }
}

#[tokio::test]
async fn schemas_of_builtin_kinds_are_small_and_unknown_kinds_have_none() {
    let plane = shared_control_plane().await.unwrap();
    let client = plane.client().unwrap();
    for (api_version, kind) in [
        ("v1", "Pod"),
        ("v1", "ConfigMap"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
        ("rbac.authorization.k8s.io/v1", "Role"),
    ] {
        // A server that has just started publishes them bit by bit.
        let what = format!("the schema of {kind} in {api_version}");
        eventually(&what, PATIENCE, async || {
            fetch_schema(&client, api_version, kind).await.map(drop)
        })
        .await;
    }
    let error = fetch_schema(&client, "apps/v1", "Nothing")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the API server publishes no schema for Nothing in apps/v1"
    );
    assert!(
        fetch_schema(&client, "no.such.group/v1", "Nothing")
            .await
            .is_err()
    );
}
