//! Pod conventions from end to end: real registries, webhooks made with the SDK, exactly the rights of the manifests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use e2e::binaries::CONVENTIONS_CONTROLLER;
use e2e::conventions::{Certificates, condition, pod_intent};
use e2e::stack::user;
use e2e::{ConventionStack, ConventionWebhook};
use futures::future::{join_all, try_join_all};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use test_support::{
    Change, ControlPlane, DockerRegistry, Scratch, TestImage, all_objects, eventually, free_port,
    http_get, objects_in, observe, sum_of,
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

/// PodIntents that are changed again and again while certificates come and go.
const CHANGED: usize = 8;
/// One that nobody changes.
const STILL: &str = "still";
/// So many changes are carried out during each replacement, at the least.
const DURING: usize = 2 * CHANGED;

#[tokio::test]
async fn certificates_and_their_authority_are_replaced_under_load_and_nothing_fails() {
    let metrics = free_port().unwrap();
    let stack = ConventionStack::start(&[format!("--metrics-port={metrics}")])
        .await
        .unwrap();
    let mut webhook = ConventionWebhook::start("add-env").await.unwrap();
    let control_plane = &stack.control_plane;
    let namespace = control_plane.create_namespace("load").await.unwrap();
    let still = pod_intent(&namespace, STILL, None);
    apply(control_plane, &[webhook.convention("add-env"), still]).await;
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
    let load = Load::default();
    let changing = (0..CHANGED).map(|number| load.change(control_plane, &namespace, number));
    let replacing = async {
        load.goes_on().await;
        for round in 0..6 {
            if round % 2 == 0 {
                renew(control_plane, &namespace, &mut webhook, &load).await;
            } else {
                replace_authority(control_plane, &namespace, &mut webhook, &load).await;
            }
        }
    };
    tokio::select! {
        () = watching => unreachable!("a watch goes on"),
        _ = join_all(changing) => unreachable!("they are changed as long as the test goes on"),
        () = replacing => {}
    }
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:#?}");
    no_reconcile_failed(&http_get(metrics, "/metrics").await.unwrap());
}

/// Also none that was tried again at once, and that no status tells of.
fn no_reconcile_failed(metrics: &str) {
    let of_intents = r#"kind="PodIntent""#;
    let reconciles = |labels: &[&str]| sum_of(metrics, "carto_reconcile_total", labels).unwrap();
    let all = reconciles(&[of_intents]);
    let settled = reconciles(&[of_intents, r#"outcome="settled""#]);
    assert!(all - settled < 0.5, "{all} reconciles, {settled} settled");
    let calls = |outcome: &str| {
        let outcome = format!("outcome=\"{outcome}\"");
        sum_of(metrics, "carto_convention_calls_total", &[&outcome]).unwrap()
    };
    let (answered, failed) = (calls("answered"), calls("failed"));
    assert!(
        failed < 0.5,
        "{failed} calls failed, {answered} were answered"
    );
}

/// Changes that go on all the time.
#[derive(Default)]
struct Load {
    /// Those that were carried out.
    carried_out: AtomicUsize,
}

impl Load {
    /// Changes a PodIntent as soon as its last change was carried out.
    async fn change(&self, control_plane: &ControlPlane, namespace: &str, number: usize) {
        let name = format!("app-{number}");
        let client = control_plane.client().unwrap();
        let intents = objects_in(&client, namespace, API_VERSION, "PodIntent");
        for round in 0_u64.. {
            let mut changed = pod_intent(namespace, &name, None);
            let round = round.to_string();
            changed["spec"]["template"]["metadata"] = json!({"labels": {"round": round}});
            let by = PatchParams::apply("load");
            let applied = intents.patch(&name, &by, &Patch::Apply(changed)).await;
            applied.unwrap();
            eventually("the change is carried out", LIMIT, async || {
                let intent = intent(control_plane, namespace, &name).await?;
                let label = &intent["status"]["template"]["metadata"]["labels"]["round"];
                ensure!(label == &round, "{}", intent["status"]);
                anyhow::Ok(())
            })
            .await;
            self.carried_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for some more changes that are carried out.
    async fn goes_on(&self) {
        let before = self.carried_out.load(Ordering::Relaxed);
        eventually("changes are carried out", LIMIT, async || {
            let more = self.carried_out.load(Ordering::Relaxed) - before;
            ensure!(more >= DURING, "{more}");
            anyhow::Ok(())
        })
        .await;
    }
}

/// Another certificate of the same authority.
async fn renew(
    control_plane: &ControlPlane,
    namespace: &str,
    webhook: &mut ConventionWebhook,
    load: &Load,
) {
    webhook.certificates.renew().unwrap();
    shows_the_newest(webhook).await;
    load.goes_on().await;
    // Who has a connection sees nothing of it. Another bundle is another connection.
    let authority = webhook.certificates.authority().to_owned();
    let spare = Scratch::new("carto-spare-").unwrap();
    let spare = Certificates::issue(spare.path().join("authority")).unwrap();
    let both = format!("{authority}{}", spare.authority());
    for trusted in [both, authority] {
        trust(control_plane, namespace, webhook, &trusted).await;
        load.goes_on().await;
    }
}

/// As an operator does: both are trusted before the new one signs, and the old one goes at last.
async fn replace_authority(
    control_plane: &ControlPlane,
    namespace: &str,
    webhook: &mut ConventionWebhook,
    load: &Load,
) {
    let old = webhook.certificates.authority().to_owned();
    let new = webhook.certificates.replace_authority().unwrap().to_owned();
    trust(control_plane, namespace, webhook, &format!("{old}{new}")).await;
    load.goes_on().await;
    webhook.certificates.renew().unwrap();
    shows_the_newest(webhook).await;
    load.goes_on().await;
    trust(control_plane, namespace, webhook, &new).await;
    load.goes_on().await;
}

async fn shows_the_newest(webhook: &ConventionWebhook) {
    eventually("the server shows the new certificate", LIMIT, || {
        webhook.shows_the_newest()
    })
    .await;
}

/// Has these authorities be trusted, and waits until the controller knows: what a PodIntent was made
/// from is said to be something else then.
async fn trust(
    control_plane: &ControlPlane,
    namespace: &str,
    webhook: &ConventionWebhook,
    authorities: &str,
) {
    let made_from = async || {
        let still = is_ready(control_plane, namespace, STILL).await;
        still["status"]["inputsDigest"].as_str().unwrap().to_owned()
    };
    let before = made_from().await;
    let client = control_plane.client().unwrap();
    let conventions = all_objects(&client, API_VERSION, "ClusterPodConvention");
    let config = webhook.client_config(authorities);
    let patch = json!({"spec": {"webhook": {"clientConfig": config}}});
    let patched = conventions
        .patch("add-env", &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.unwrap();
    eventually("the controller knows whom to trust", LIMIT, async || {
        made_from().await != before
    })
    .await;
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
