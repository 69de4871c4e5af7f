//! Pod conventions from end to end: real registries, webhooks made with the SDK, exactly the rights of the manifests.

use std::time::Duration;

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use e2e::binaries::CONVENTIONS_CONTROLLER;
use e2e::conventions::{condition, pod_intent};
use e2e::stack::user;
use e2e::{ConventionStack, ConventionWebhook};
use futures::future::try_join_all;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use test_support::{
    Change, ControlPlane, DockerRegistry, Scratch, TestImage, all_objects, eventually, objects_in,
    observe,
};

use crate::LIMIT;
use crate::rights::nothing_was_forbidden;

const API_VERSION: &str = "conventions.carto.run/v1alpha1";
const RECEIPTS: &str = "/metadata/annotations/conventions.carto.run~1applied-conventions";
/// What Spring Boot is recognized by, as a buildpack writes it down.
const BILL: &str = r#"{"bomFormat": "CycloneDX", "specVersion": "1.4", "version": 1, "components": [
    {"type": "library", "name": "spring-boot", "version": "2.7.3", "purl": "pkg:maven/org.springframework.boot/spring-boot@2.7.3"},
    {"type": "library", "name": "spring-web", "version": "5.3.22", "purl": "pkg:maven/org.springframework/spring-web@5.3.22"}]}"#;
const BILL_NAME: &str = "/layers/sbom/launch/paketo-buildpacks_executable-jar/sbom.cdx.json";

/// As `kubectl get podintent -o json` shows it.
async fn intent(
    control_plane: &ControlPlane,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Value> {
    let intents = objects_in(
        &control_plane.client()?,
        namespace,
        API_VERSION,
        "PodIntent",
    );
    Ok(serde_json::to_value(intents.get(name).await?)?)
}

async fn apply(control_plane: &ControlPlane, objects: &[Value]) {
    let manifest = test_support::as_yaml(objects);
    control_plane.apply_yaml(&manifest).await.unwrap();
}

async fn is_ready(control_plane: &ControlPlane, namespace: &str, name: &str) -> Value {
    eventually(&format!("{name} is ready"), LIMIT, async || {
        let intent = intent(control_plane, namespace, name).await?;
        let ready = condition(&intent, "Ready")?;
        ensure!(ready["status"] == "True", "{ready}");
        ensure!(
            intent["status"]["observedGeneration"] == intent["metadata"]["generation"],
            "{intent}"
        );
        anyhow::Ok(Some(intent))
    })
    .await
}

fn spring_image() -> TestImage {
    TestImage::new()
        .config(json!({"Env": ["A=b"]}))
        .layer(&[("app/main", b"main")])
        .sbom(&[(BILL_NAME, BILL.as_bytes())])
}

fn pull_secret(namespace: &str, registry: &DockerRegistry) -> Value {
    let login = STANDARD.encode(format!(
        "{}:{}",
        DockerRegistry::USER,
        DockerRegistry::PASSWORD
    ));
    let config = json!({"auths": {registry.host(): {"auth": login}}});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": "pull"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": STANDARD.encode(config.to_string())}})
}

#[tokio::test]
async fn pods_get_what_conventions_find_in_images_of_every_sort_of_registry() {
    let open = DockerRegistry::start().await.unwrap();
    let asking = DockerRegistry::builder().with_password();
    let asking = asking.start().await.unwrap();
    let encrypted = DockerRegistry::builder().with_tls().start().await.unwrap();
    let home = Scratch::new("carto-authorities-").unwrap();
    let authorities = home.path().join("ca-certificates.crt");
    std::fs::write(&authorities, encrypted.authority().unwrap().unwrap()).unwrap();
    let stack = ConventionStack::start(&[format!("--registry-ca={}", authorities.display())])
        .await
        .unwrap();
    let add_env = ConventionWebhook::start("add-env").await.unwrap();
    let spring = ConventionWebhook::start("spring-boot-convention")
        .await
        .unwrap();
    let control_plane = &stack.control_plane;
    let namespace = control_plane.create_namespace("pods").await.unwrap();
    let mut late = add_env.convention("add-env");
    late["spec"]["priority"] = json!("Late");
    apply(
        control_plane,
        &[
            late,
            spring.convention("spring-boot"),
            pull_secret(&namespace, &asking),
        ],
    )
    .await;

    for (name, registry) in [
        ("open", &open),
        ("asking", &asking),
        ("encrypted", &encrypted),
    ] {
        let pushed = registry.push("team/app", "1.0.0", &spring_image()).await;
        let digest = pushed.unwrap().digest;
        let image = format!("{}/team/app:1.0.0", registry.host());
        let mut intent = pod_intent(&namespace, name, Some(&image));
        intent["spec"]["imagePullSecrets"] = json!([{"name": "pull"}]);
        apply(control_plane, &[intent]).await;
        let intent = is_ready(control_plane, &namespace, name).await;
        is_enriched(&intent, &format!("{image}@{digest}"));
    }
    assert!(!open.requests().unwrap().is_empty());
    nothing_was_forbidden(control_plane, CONVENTIONS_CONTROLLER);
}

fn is_enriched(intent: &Value, image: &str) {
    let template = &intent["status"]["template"];
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["image"], image, "{intent:#}");
    let variables = container["env"].as_array().unwrap();
    assert!(
        variables
            .iter()
            .any(|variable| variable["name"] == "CONVENTION_SERVER"),
        "{template:#}"
    );
    assert_eq!(
        template.pointer("/metadata/labels/conventions.carto.run~1framework"),
        Some(&json!("spring-boot")),
        "{template:#}"
    );
    let receipts = template.pointer(RECEIPTS).unwrap().as_str().unwrap();
    let lines: Vec<&str> = receipts.lines().collect();
    assert_eq!(lines[0], "spring-boot/spring-boot");
    assert_eq!(lines.last(), Some(&"add-env/add-env-var"));
    let applied = condition(intent, "ConventionsApplied").unwrap();
    assert_eq!(applied["reason"], "Applied");
    let told = &intent["status"]["images"][0];
    assert_eq!(told["reference"], image, "{told:#}");
    assert_eq!(
        told["boms"],
        json!([format!("cnb-app:{BILL_NAME}")]),
        "{told:#}"
    );
}

/// Each change makes another PodIntent be worked on while certificates come and go.
#[tokio::test]
async fn certificates_and_their_authority_are_replaced_under_load_and_nothing_fails() {
    let stack = ConventionStack::start(&[]).await.unwrap();
    let mut webhook = ConventionWebhook::start("add-env").await.unwrap();
    let control_plane = &stack.control_plane;
    let namespace = control_plane.create_namespace("load").await.unwrap();
    apply(control_plane, &[webhook.convention("add-env")]).await;
    let client = control_plane.client().unwrap();
    let failed = std::sync::Mutex::new(Vec::new());
    let path = format!("/apis/{API_VERSION}/namespaces/{namespace}/podintents");
    let watching = observe(&client, &path, |change: Change<DynamicObject>| {
        if let Change::Changed(intent) = change {
            let intent = serde_json::to_value(intent).unwrap();
            if let Ok(ready) = condition(&intent, "Ready")
                && ready["status"] == "False"
            {
                failed.lock().unwrap().push(ready.to_string());
            }
        }
    });
    let replacing = async {
        for round in 0..6 {
            if round % 2 == 0 {
                webhook.certificates.renew().unwrap();
            } else {
                replace_authority(control_plane, &namespace, &mut webhook).await;
            }
            let name = format!("round-{round}");
            wave(control_plane, &namespace, &name).await;
        }
    };
    tokio::select! {
        () = watching => unreachable!("a watch goes on"),
        () = replacing => {}
    }
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// As an operator does: both are trusted before the new one signs, and the old one goes at last.
async fn replace_authority(
    control_plane: &ControlPlane,
    namespace: &str,
    webhook: &mut ConventionWebhook,
) {
    let old = webhook.certificates.authority().to_owned();
    let new = webhook.certificates.replace_authority().unwrap().to_owned();
    let conventions = all_objects(
        &control_plane.client().unwrap(),
        API_VERSION,
        "ClusterPodConvention",
    );
    trust(&conventions, webhook, &format!("{old}{new}")).await;
    wave(control_plane, namespace, "both").await;
    webhook.certificates.renew().unwrap();
    wave(control_plane, namespace, "renewed").await;
    eventually("the server shows the new certificate", LIMIT, || {
        webhook.is_trusted_by(&new)
    })
    .await;
    trust(&conventions, webhook, &new).await;
}

async fn trust(conventions: &Api<DynamicObject>, webhook: &ConventionWebhook, authorities: &str) {
    let config = webhook.client_config(authorities);
    let patch = json!({"spec": {"webhook": {"clientConfig": config}}});
    let patched = conventions
        .patch("add-env", &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.unwrap();
}

/// Twenty PodIntents are handed in or changed at once, and become ready.
async fn wave(control_plane: &ControlPlane, namespace: &str, name: &str) {
    let names: Vec<String> = (0..20).map(|number| format!("app-{number}")).collect();
    let intents: Vec<Value> = names
        .iter()
        .map(|app| {
            let mut intent = pod_intent(namespace, app, None);
            intent["spec"]["template"]["metadata"] = json!({"labels": {"wave": name}});
            intent
        })
        .collect();
    apply(control_plane, &intents).await;
    for app in &names {
        eventually("the wave has passed", LIMIT, async || {
            let intent = intent(control_plane, namespace, app).await?;
            let label = &intent["status"]["template"]["metadata"]["labels"]["wave"];
            ensure!(label == name, "{}", intent["status"]);
            anyhow::Ok(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_registry_that_is_down_is_told_and_waited_for() {
    let mut registry = DockerRegistry::start().await.unwrap();
    let stack = ConventionStack::start(&[]).await.unwrap();
    let webhook = ConventionWebhook::start("add-env").await.unwrap();
    let control_plane = &stack.control_plane;
    let namespace = control_plane.create_namespace("down").await.unwrap();
    let pushed = registry.push("team/app", "1.0.0", &spring_image()).await;
    let image = format!("{}/team/app:1.0.0", registry.host());
    registry.stop();
    let handed_in = pod_intent(&namespace, "app", Some(&image));
    apply(control_plane, &[webhook.convention("add-env"), handed_in]).await;
    eventually("it is told", LIMIT, async || {
        let found = intent(control_plane, &namespace, "app").await?;
        let ready = condition(&found, "Ready")?;
        ensure!(ready["status"] == "False", "{ready}");
        let message = ready["message"].as_str().unwrap_or_default();
        ensure!(
            message.starts_with(&format!(
                "failed to fetch metadata for Images: image: \"{image}\" error: "
            )),
            "{message}"
        );
        anyhow::Ok(())
    })
    .await;
    registry.resume().await.unwrap();
    let intent = is_ready(control_plane, &namespace, "app").await;
    let resolved = &intent["status"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(
        resolved,
        &json!(format!("{image}@{}", pushed.unwrap().digest))
    );
}

const FLEET: usize = 1000;
const CONVENTIONS: usize = 200;
/// How long the whole fleet may take, on a busy machine.
const FLEET_LIMIT: Duration = Duration::from_mins(10);

#[tokio::test]
async fn a_thousand_intents_and_two_hundred_conventions_take_one_status_write_each() {
    let stack = ConventionStack::start(&[]).await.unwrap();
    let webhook = ConventionWebhook::start("add-env").await.unwrap();
    let control_plane = &stack.control_plane;
    let namespace = control_plane.create_namespace("fleet").await.unwrap();
    let conventions: Vec<Value> = (0..CONVENTIONS)
        .map(|number| {
            let mut convention = webhook.convention(&format!("convention-{number:03}"));
            convention["spec"]["selectors"] =
                json!([{"matchLabels": {"group": (number / 2).to_string()}}]);
            convention
        })
        .collect();
    apply(control_plane, &conventions).await;
    let intents = objects_in(
        &control_plane.client().unwrap(),
        &namespace,
        API_VERSION,
        "PodIntent",
    );
    let numbers: Vec<usize> = (0..FLEET).collect();
    for some in numbers.chunks(50) {
        let created = some
            .iter()
            .map(|number| create(&intents, &namespace, *number));
        try_join_all(created).await.unwrap();
    }
    eventually("all are ready", FLEET_LIMIT, async || {
        let all = intents.list(&kube::api::ListParams::default()).await?;
        let all = serde_json::to_value(all.items)?;
        let all = all.as_array().into_iter().flatten();
        let ready = all.filter(|intent| is_decorated_twice(intent)).count();
        ensure!(ready == FLEET, "{ready} of {FLEET}");
        anyhow::Ok(())
    })
    .await;
    let controller = user(CONVENTIONS_CONTROLLER);
    let events = control_plane.audit_events().unwrap();
    let writes = events.iter().filter(|event| {
        let object = event.object_ref.as_ref();
        event.user.username == controller
            && event.is_write()
            && object.is_some_and(|object| object.resource == "podintents")
    });
    assert_eq!(writes.count(), FLEET);
}

async fn create(
    intents: &Api<DynamicObject>,
    namespace: &str,
    number: usize,
) -> anyhow::Result<()> {
    let mut intent = pod_intent(namespace, &format!("app-{number}"), None);
    let group = (number % (CONVENTIONS / 2)).to_string();
    intent["spec"]["template"]["metadata"] = json!({"labels": {"group": group}});
    let intent: DynamicObject = serde_json::from_value(intent)?;
    intents
        .create(&kube::api::PostParams::default(), &intent)
        .await?;
    Ok(())
}

/// The first convention adds the variable, the second one finds it there.
fn is_decorated_twice(intent: &Value) -> bool {
    let is_ready = condition(intent, "Ready").is_ok_and(|ready| ready["status"] == "True");
    let told = intent["status"]["conventions"].as_array();
    let matched = told
        .into_iter()
        .flatten()
        .filter(|convention| convention["matched"] == true);
    is_ready && matched.count() == 2
}
