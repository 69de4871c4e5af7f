//! What the API server stores of PodIntents and ClusterPodConventions.

use std::path::Path;

use convention_protocol::PodTemplate;
use conventions::answer::Answer;
use conventions::chain::Chain;
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

/// A spec that is good but for this field of its webhook.
fn with_webhook(field: &str, value: impl Into<Value>) -> Value {
    json!({"webhook": {"clientConfig": {"url": "https://a.example"}, field: value.into()}})
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
    for good in [
        with_webhook("timeoutSeconds", 1),
        with_webhook("timeoutSeconds", 30),
        with_webhook("failurePolicy", "Ignore"),
        with_webhook("failurePolicy", ""),
    ] {
        let stored = created(&client, CONVENTIONS, &convention(&good)).await;
        let stored = stored.unwrap()["spec"]["webhook"].clone();
        let fields = good["webhook"].as_object().unwrap();
        let same = fields.iter().all(|(name, value)| &stored[name] == value);
        assert!(same, "{good}: {stored}");
    }
    for wrong in [
        json!({"priority": "early"}),
        json!({"selectorTarget": "Pod"}),
        json!({"webhook": {}}),
        with_webhook("timeoutSeconds", 0),
        with_webhook("timeoutSeconds", 31),
        with_webhook("timeoutSeconds", "30"),
        with_webhook("failurePolicy", "ignore"),
    ] {
        assert!(
            created(&client, CONVENTIONS, &convention(&wrong))
                .await
                .is_err(),
            "{wrong}"
        );
    }
}

/// Whether an answer with this PodSpec is taken over; or what is wrong with it.
fn recorded(pod: &Value) -> Result<(), String> {
    let template: PodTemplate = serde_json::from_value(json!({"spec": pod})).unwrap();
    let answer = Answer {
        template: Some(template),
        applied: Vec::new(),
    };
    let mut chain = Chain::start(PodTemplate::default());
    chain.record("c", answer).map_err(|fault| fault.to_string())
}

#[tokio::test]
async fn what_a_chain_takes_over_is_what_the_api_server_stores() {
    let client = client().await;
    let with = |field: Value| {
        let mut container = json!({"name": "a"});
        container
            .as_object_mut()
            .unwrap()
            .extend(field.as_object().unwrap().clone());
        json!({"containers": [container]})
    };
    let (mut stored, mut refused) = (0, 0);
    for pod in [
        json!({"containers": []}),
        json!({"containers": [], "x": null}),
        json!({"volumes": []}),
        json!({"containers": {}}),
        json!({"containers": [null]}),
        json!({"containers": ["a"]}),
        json!({"containers": [{}]}),
        json!({"containers": [{"name": null}]}),
        json!({"containers": [{"name": "a"}, {"name": "a"}]}),
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({"containers": [], "volumes": [{"name": "a"}, {"name": "a"}]}),
        json!({"containers": [], "tolerations": [{"key": "a"}, {"key": "a"}]}),
        json!({"containers": [], "imagePullSecrets": [{}, {"name": ""}]}),
        json!({"containers": [], "hostAliases": [{"ip": "1"}, {"ip": "1"}]}),
        json!({"containers": [], "nodeSelector": {"a": 1}}),
        json!({"containers": [], "nodeSelector": {"a": null}}),
        json!({"containers": [], "terminationGracePeriodSeconds": 30}),
        json!({"containers": [], "terminationGracePeriodSeconds": "30"}),
        json!({"containers": [], "terminationGracePeriodSeconds": 1.5}),
        json!({"containers": [], "hostNetwork": "true"}),
        with(json!({"env": [{"name": "A"}, {"name": "A"}]})),
        with(json!({"env": [{"name": "A", "value": 1}]})),
        with(json!({"env": null})),
        with(json!({"args": [null]})),
        with(json!({"args": ["a", "a"]})),
        with(json!({"ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]})),
        with(json!({"ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]})),
        with(
            json!({"ports": [{"containerPort": 80, "protocol": null}, {"containerPort": 80, "protocol": "TCP"}]}),
        ),
        with(json!({"ports": [{"containerPort": "80"}]})),
        with(
            json!({"volumeMounts": [{"name": "a", "mountPath": "/x"}, {"name": "b", "mountPath": "/x"}]}),
        ),
        with(json!({"livenessProbe": {"httpGet": {"port": true}}})),
        with(json!({"livenessProbe": {"httpGet": {"port": 80}}})),
        with(json!({"livenessProbe": {"httpGet": {"port": "http"}}})),
        with(json!({"livenessProbe": {"httpGet": {}}})),
        with(json!({"resources": {"limits": {"cpu": 1}}})),
        with(json!({"resources": {"limits": {"cpu": 0.5}}})),
        with(json!({"resources": {"limits": {"cpu": "0.5"}}})),
        with(json!({"resources": {"limits": {"cpu": ".5e3"}}})),
        with(json!({"resources": {"limits": {"cpu": "half"}}})),
        with(json!({"resources": {"limits": {"cpu": ""}}})),
        with(json!({"resources": {"limits": {"cpu": "1K"}}})),
        with(json!({"resources": {"limits": {"cpu": null}}})),
        with(json!({"resources": {"claims": [{"name": "a"}, {"name": "a"}]}})),
        with(json!({"newer": {"a": [null]}})),
        with(
            json!({"restartPolicyRules": [{"action": "x", "exitCodes": {"operator": "In", "values": [1, 1]}}]}),
        ),
        with(
            json!({"restartPolicyRules": [{"action": "x", "exitCodes": {"operator": "In", "values": [1, 2]}}]}),
        ),
    ] {
        let there = created(
            &client,
            INTENTS,
            &intent(&json!({"template": {"spec": pod}})),
        )
        .await;
        let here = recorded(&pod);
        assert_eq!(here.is_ok(), there.is_ok(), "{pod}: {here:?} {there:?}");
        match here {
            Ok(()) => stored += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(stored > 10 && refused > 20, "{stored} {refused}");
}
