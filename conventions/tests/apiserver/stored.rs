//! What the API server stores of PodIntents and ClusterPodConventions.

use std::path::Path;

use http::{Request, header};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use test_support::{documents, shared_control_plane, yaml_files};
use tokio::sync::OnceCell;

static INSTALLED: OnceCell<()> = OnceCell::const_new();

const INTENTS: &str = "/apis/conventions.carto.run/v1alpha1/namespaces/default/podintents";
const CONVENTIONS: &str = "/apis/conventions.carto.run/v1alpha1/clusterpodconventions";

async fn client() -> Client {
    let control_plane = shared_control_plane().await.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/conventions/crds");
    INSTALLED
        .get_or_init(async || control_plane.install_crds(folder).await.unwrap())
        .await;
    control_plane.client().unwrap()
}

/// What the API server makes of an object that it is asked to create, without creating it; or what is wrong with it.
async fn created(client: &Client, path: &str, object: &Value) -> Result<Value, String> {
    let request = Request::post(format!("{path}?dryRun=All"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(object).unwrap())
        .unwrap();
    match client.request::<Value>(request).await {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) if status.code == 422 => Err(status.message),
        Err(other) => panic!("{other}"),
    }
}

fn intent(spec: &Value) -> Value {
    json!({
        "apiVersion": "conventions.carto.run/v1alpha1",
        "kind": "PodIntent",
        "metadata": {"name": "app"},
        "spec": spec,
    })
}

fn convention(spec: &Value) -> Value {
    json!({
        "apiVersion": "conventions.carto.run/v1alpha1",
        "kind": "ClusterPodConvention",
        "metadata": {"name": "add-env"},
        "spec": spec,
    })
}

#[tokio::test]
async fn the_definitions_install_without_warnings() {
    let client = client().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/conventions/crds");
    for file in yaml_files(&folder).unwrap() {
        let mut documents = documents(&std::fs::read_to_string(file).unwrap()).unwrap();
        // One that is there already is no news to the API server.
        documents[0]["metadata"]["name"] = json!("others.conventions.carto.example");
        documents[0]["spec"]["group"] = json!("conventions.carto.example");
        documents[0]["spec"]["names"] = json!({"kind": "Other", "plural": "others"});
        let request =
            Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All")
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(serde_json::to_vec(&documents[0]).unwrap()))
                .unwrap();
        let response = client.send(request).await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
        let warnings: Vec<_> = response.headers().get_all(header::WARNING).iter().collect();
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

#[tokio::test]
async fn a_template_is_stored_as_it_was_written() {
    let client = client().await;
    let template = json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}, "name": "n", "generateName": "g-", "namespace": "ns"},
        "spec": {
            "fieldOfANewerKubernetes": {"a": [1, null, {"b": 2.5}]},
            "containers": [{
                "name": "web",
                "resources": {"limits": {"cpu": "0.5", "memory": "1.0Gi", "example.com/gpu": 1}, "newer": true},
                "env": [{"name": "A", "valueFrom": {"newer": {"x": "y"}}}],
                "livenessProbe": {"httpGet": {"port": "http", "newer": 1}},
            }],
            "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {
                "metadata": {"labels": {"kept": "yes"}, "annotations": {"kept": "too"}},
                "spec": {"resources": {"requests": {"storage": "1.5Gi"}}},
            }}}],
        },
    });
    let object = created(&client, INTENTS, &intent(&json!({"template": template})))
        .await
        .unwrap();
    assert_eq!(object["spec"]["template"], template);
    assert_eq!(object["spec"]["serviceAccountName"], "default");
}

#[tokio::test]
async fn defaults_are_filled_in_and_other_metadata_is_dropped() {
    let client = client().await;
    let spec = json!({
        "imagePullSecrets": [{}],
        "template": {
            "metadata": {"labels": {"a": "b"}, "finalizers": ["x"], "creationTimestamp": null},
            "spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]},
        },
    });
    let object = created(&client, INTENTS, &intent(&spec)).await.unwrap();
    assert_eq!(object["spec"]["imagePullSecrets"], json!([{"name": ""}]));
    assert_eq!(
        object["spec"]["template"]["metadata"],
        json!({"labels": {"a": "b"}})
    );
    let port = &object["spec"]["template"]["spec"]["containers"][0]["ports"][0];
    assert_eq!(port, &json!({"containerPort": 1, "protocol": "TCP"}));

    let service = json!({"clientConfig": {"service": {"namespace": "ns", "name": "n"}}});
    let object = created(
        &client,
        CONVENTIONS,
        &convention(&json!({"webhook": service})),
    )
    .await
    .unwrap();
    assert_eq!(object["spec"]["priority"], "Normal");
    assert_eq!(object["spec"]["selectorTarget"], "PodTemplateSpec");
    assert_eq!(
        object["spec"]["webhook"]["clientConfig"]["service"]["port"],
        443
    );
    // Clients in Go write empty texts.
    let spec = json!({"webhook": {"clientConfig": {"url": "https://a.example"}}, "priority": "", "selectorTarget": ""});
    assert!(
        created(&client, CONVENTIONS, &convention(&spec))
            .await
            .is_ok()
    );
    for wrong in [
        json!({"priority": "early"}),
        json!({"selectorTarget": "Pod"}),
        json!({"webhook": {}}),
    ] {
        assert!(
            created(&client, CONVENTIONS, &convention(&wrong))
                .await
                .is_err(),
            "{wrong}"
        );
    }
}
