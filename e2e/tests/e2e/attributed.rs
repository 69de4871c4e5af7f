//! examples/attributed, as its README has people type it; and a Runnable, with its Job, as a step of such a chain.

use std::process::Command;
use std::sync::Arc;

use anyhow::ensure;
use e2e::Stack;
use e2e::binaries::{RUNNABLE_CONTROLLER, SUPPLY_CHAIN_CONTROLLER};
use e2e::stack::{install, installed_controller};
use kube::Client;
use serde_json::{Value, json};
use test_support::stage::{Versions, condition, step};
use test_support::{ControlPlane, GitServer, Scratch, eventually, objects_in};
use tokio::task::JoinSet;

use crate::LIMIT;
use crate::pods::{self, variable};
use crate::rights::nothing_was_forbidden;
use crate::terminal::{ADAPTATIONS, Terminal, blocks, eventually_prints};

const README: &str = "examples/attributed/README.md";
const NAME: &str = "attributed";
const NAMESPACE: &str = "dev";
/// What the example has in its place.
const REPOSITORY: &str = "https://git.example.com/team/attributed";
const RELEASE: &str = "example.com/release";

/// What the Job does: the test of the commit, on the files of the commit.
fn tested(git: &GitServer, container: &Value) -> anyhow::Result<Option<u8>> {
    let revision = variable(container, "SOURCE_REVISION");
    let (_, commit) = revision.rsplit_once(':').unwrap_or_default();
    let home = Scratch::new("carto-test-")?;
    for file in ["greeting", "test.sh"] {
        std::fs::write(home.path().join(file), git.file(NAME, commit, file)?)?;
    }
    let mut test = Command::new("sh");
    let status = test.arg("./test.sh").current_dir(home.path()).status()?;
    Ok(Some(u8::from(!status.success())))
}

fn release(stack: &Stack, commit: &str) -> String {
    let files = [("app", commit)];
    let digest = stack.registry.push_image("team/app", commit, &files);
    format!("{NAME} {commit}@{}", digest.unwrap())
}

/// The example, but for what this machine has: repository, registry without TLS, no nodes, and no minute to wait.
fn adapted_example(stack: &Stack, terminal: &Terminal) {
    let registry = format!("{}/team/app", stack.registry.host());
    terminal.has_adapted("examples/cluster", &[]);
    terminal.has_adapted("examples/web-app/platform", &ADAPTATIONS);
    terminal.has_adapted("examples/attributed/platform", &ADAPTATIONS);
    let pairs = [
        (REPOSITORY, &*stack.git.url(NAME)),
        ("registry.example.com/team/attributed", &registry),
    ];
    terminal.has_adapted("examples/attributed/developer", &pairs);
    // As `flux install` would, and git's owner.
    terminal.types(
        "kubectl create namespace flux-system
        git config --global user.name dora
        git config --global user.email dora@example.com",
    );
}

/// But for what needs a container engine.
fn typed(terminal: &Terminal, stack: &Stack, block: &str) -> String {
    let lines = block.lines().filter(|line| !line.starts_with("docker "));
    let script: Vec<&str> = lines.collect();
    let script = script.join("\n");
    terminal.types(&script.replace(REPOSITORY, &stack.git.url(NAME)))
}

fn newest(stack: &Stack) -> String {
    stack.git.log(NAME).unwrap()[0].0.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tutorial_on_attributed_outputs_works_as_it_is_pasted() {
    let plane = ControlPlane::builder().deployments().jobs().audit();
    let stack = Arc::new(Stack::start_on(plane, |_| {}).await.unwrap());
    let client = stack.control_plane.client().unwrap();
    stack.git.create_repo(NAME).unwrap();
    let files = [
        ("greeting", "Hello\n"),
        ("test.sh", "grep -q Hello greeting\n"),
    ];
    let first = stack.git.commit(NAME, &files, "Say hello").unwrap();
    let first_release = release(&stack, &first);
    let terminal = Terminal::new(&stack.control_plane);
    adapted_example(&stack, &terminal);
    let blocks = blocks(README, "Step by step");
    let [platform, developer, look, bad, stays, good, traced, away] = &blocks[..] else {
        panic!("{blocks:#?}");
    };
    typed(&terminal, &stack, platform);
    let mut kubelet = JoinSet::new();
    let (of_stack, of_client) = (stack.clone(), client.clone());
    kubelet.spawn(async move {
        let code = |container: &Value| tested(&of_stack.git, container);
        pods::run(of_client, NAMESPACE, code).await
    });
    typed(&terminal, &stack, developer);
    let told = typed(&terminal, &stack, look);
    assert_traced(&told, &first, &first_release);
    let deployments = objects_in(&client, NAMESPACE, "apps/v1", "Deployment");
    let deployments = Versions::in_api(deployments).await;

    typed(&terminal, &stack, bad);
    let failed = newest(&stack);
    assert_ne!(failed, first);
    let is_told = |printed: &str| {
        let of_job = printed.contains("Job has reached the specified backoff limit");
        of_job && printed.contains("last good one") && printed.contains(&first_release)
    };
    eventually_prints(&terminal, stays, is_told).await;
    let workload = workload(&client, NAME).await;
    let test = step(&workload, "test");
    assert_eq!(
        condition(&test, "OutputsGood")["reason"],
        "Failed",
        "{test}"
    );
    for output in test["outputs"].as_array().unwrap() {
        assert_eq!(output["current"], false, "{test}");
    }
    let url = &test["outputs"][1]["value"];
    assert!(url.as_str().unwrap().contains(&first), "{test}");

    typed(&terminal, &stack, good);
    let second = newest(&stack);
    let what = "Flux finds no image of the commit, and its status has that of the one before";
    eventually(what, LIMIT, async || {
        let step = step(&self::workload(&client, NAME).await, "image");
        let (healthy, good) = (condition(&step, "Healthy"), condition(&step, "OutputsGood"));
        ensure!(
            healthy["status"] == "False" && good["reason"] == "Reconciling",
            "{step}"
        );
        ensure!(step["outputs"][0]["current"] == false, "{step}");
        anyhow::Ok(())
    })
    .await;
    let of_flux = get(
        &client,
        "source.toolkit.fluxcd.io/v1",
        "OCIRepository",
        NAME,
    )
    .await;
    let still = of_flux["status"]["artifact"]["revision"].as_str();
    assert!(still.unwrap().starts_with(&first), "{of_flux}");
    let second_release = release(&stack, &second);
    let told = typed(&terminal, &stack, traced);
    assert_traced(&told, &second, &second_release);

    let last = get(&client, "apps/v1", "Deployment", NAME).await;
    let seen = deployments.up_to(&last).await;
    let releases = seen
        .iter()
        .map(|it| &it["metadata"]["annotations"][RELEASE]);
    let mut releases: Vec<_> = releases.collect();
    releases.dedup();
    assert_eq!(releases, [&json!(first_release), &json!(second_release)]);
    nothing_was_forbidden(&stack.control_plane, SUPPLY_CHAIN_CONTROLLER);
    kubelet.abort_all();
    typed(&terminal, &stack, away);
}

/// The trace leads from the release to the commit.
fn assert_traced(told: &str, commit: &str, release: &str) {
    // It is shown as far as there is room for it.
    let image = release.split(' ').next_back().unwrap();
    let expected = [
        &format!("image = {}", &image[..commit.len() + 20]),
        &format!("revision = main@sha1:{commit}"),
        "Deployment/attributed",
        " of ConfigMap/attributed-release",
        " of OCIRepository/attributed, generation ",
        " of Job/attributed-test-",
        " of GitRepository/attributed, generation 1, accepted ",
    ];
    for expected in expected {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

async fn get(client: &Client, api_version: &str, kind: &str, name: &str) -> Value {
    let api = objects_in(client, NAMESPACE, api_version, kind);
    serde_json::to_value(api.get(name).await.unwrap()).unwrap()
}

async fn workload(client: &Client, name: &str) -> Value {
    get(client, "carto.run/v1alpha1", "Workload", name).await
}

/// A Runnable hands on what its newest successful run was given, whatever runs now, and its spec is there to be edited.
const RUNNABLE: &str = r#"
apiVersion: carto.run/v1alpha1
kind: ClusterRunTemplate
metadata: {name: job}
spec:
  healthRule:
    multiMatch:
      healthy: {matchConditions: [{type: Complete, status: "True"}]}
      unhealthy: {matchConditions: [{type: Failed, status: "True"}]}
  outputs: {image: '.spec.template.spec.containers[0].env[0].value'}
  template:
    apiVersion: batch/v1
    kind: Job
    metadata: {generateName: $(runnable.metadata.name)$-}
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: build, image: registry.example/build, env: [{name: IMAGE, value: $(runnable.spec.inputs.image)$}]}
---
apiVersion: carto.run/v1alpha1
kind: ClusterImageTemplate
metadata: {name: run}
spec:
  imagePath: .status.outputs.image
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Ready")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type=="Ready")].status', value: 'False'}
  template:
    apiVersion: carto.run/v1alpha1
    kind: Runnable
    metadata: {name: $(workload.metadata.name)$}
    spec:
      serviceAccountName: $(workload.spec.serviceAccountName)$
      runTemplateRef: {name: job}
      inputs: {image: $(workload.spec.image)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: deployed}
spec:
  alwaysSuccessful: true
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$}
    data: {image: $(image)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: run}
spec:
  selector: {type: run}
  resources:
    - {name: run, templateRef: {kind: ClusterImageTemplate, name: run}}
    - {name: deploy, templateRef: {kind: ClusterTemplate, name: deployed}, images: [{name: image, resource: run}]}
"#;

const DEVELOPER: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: dev}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: run, namespace: dev}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: run, namespace: dev}
rules:
  - {apiGroups: [carto.run], resources: [runnables], verbs: [get, list, create, patch, delete]}
  - {apiGroups: [batch], resources: [jobs], verbs: [get, list, create, patch, delete]}
  - {apiGroups: [''], resources: [configmaps], verbs: [get, list, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: run, namespace: dev}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: run}
subjects: [{kind: ServiceAccount, name: run, namespace: dev}]
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: run, namespace: dev, labels: {type: run}}
spec: {image: good-1, serviceAccountName: run}
";

async fn builds(client: &Client, kind: &str, inputs: Value) {
    let api = objects_in(client, NAMESPACE, "carto.run/v1alpha1", kind);
    let patch = kube::api::Patch::Merge(json!({"spec": inputs}));
    let params = kube::api::PatchParams::default();
    api.patch("run", &params, &patch).await.unwrap();
}

/// The image that is deployed, and of what step `run` says that its outputs are.
async fn comes_to(client: &Client, image: &str, reason: &str) -> Value {
    let what = format!("{image} is deployed, and the run is {reason}");
    eventually(&what, LIMIT, async || {
        let deployed = objects_in(client, NAMESPACE, "v1", "ConfigMap");
        let deployed = deployed.get_opt("run").await?;
        let deployed = deployed.map_or(Value::Null, |map| map.data["data"]["image"].clone());
        let step = step(&workload(client, "run").await, "run");
        let told = condition(&step, "OutputsGood");
        ensure!(
            deployed == image && told["reason"] == reason,
            "{deployed}, {step}"
        );
        anyhow::Ok(Some(step))
    })
    .await
}

#[tokio::test]
async fn a_runnable_hands_on_what_its_job_was_given_and_nothing_while_another_one_runs_or_fails() {
    let plane = ControlPlane::builder()
        .jobs()
        .audit()
        .start()
        .await
        .unwrap();
    install(&plane).await.unwrap();
    let supply_chain = installed_controller(&plane, SUPPLY_CHAIN_CONTROLLER).await;
    let runnable = installed_controller(&plane, RUNNABLE_CONTROLLER)
        .await
        .unwrap();
    let client = plane.client().unwrap();
    let code = |container: &Value| match variable(container, "IMAGE").split('-').next() {
        Some("good") => Ok(Some(0)),
        Some("bad") => Ok(Some(1)),
        _ => Ok(None),
    };
    let scenario = async {
        plane.apply_yaml(RUNNABLE).await.unwrap();
        plane.apply_yaml(DEVELOPER).await.unwrap();
        let good = comes_to(&client, "good-1", "Good").await;
        let maps = objects_in(&client, NAMESPACE, "v1", "ConfigMap");
        let maps = Versions::in_api(maps).await;
        for (image, reason) in [("slow-2", "Reconciling"), ("bad-3", "Failed")] {
            builds(&client, "Workload", json!({"image": image})).await;
            let step = comes_to(&client, "good-1", reason).await;
            let (before, now) = (&good["outputs"][0], &step["outputs"][0]);
            assert_eq!(now["current"], false, "{step}");
            assert_eq!(now["provenance"], before["provenance"]);
        }
        builds(&client, "Workload", json!({"image": "good-4"})).await;
        let good = comes_to(&client, "good-4", "Good").await;

        // Nobody looks, and somebody has another image built.
        drop(supply_chain);
        builds(
            &client,
            "Runnable",
            json!({"inputs": {"image": "good-evil"}}),
        )
        .await;
        let what = "the image of somebody else is built, and reported as good";
        eventually(what, LIMIT, async || {
            let run = get(&client, "carto.run/v1alpha1", "Runnable", "run").await;
            let status = &run["status"];
            let is_made = status["outputs"]["image"] == "good-evil";
            ensure!(
                is_made && condition(status, "Ready")["status"] == "True",
                "{status}"
            );
            anyhow::Ok(())
        })
        .await;
        let _supply_chain = installed_controller(&plane, SUPPLY_CHAIN_CONTROLLER).await;
        let what = "it is put back, and made good";
        eventually(what, LIMIT, async || {
            let run = get(&client, "carto.run/v1alpha1", "Runnable", "run").await;
            ensure!(run["status"]["outputs"]["image"] == "good-4", "{run}");
            anyhow::Ok(())
        })
        .await;
        builds(&client, "Workload", json!({"image": "good-5"})).await;
        comes_to(&client, "good-5", "Good").await;
        assert_ne!(good["outputs"], Value::Null);
        let last = get(&client, "v1", "ConfigMap", "run").await;
        let seen = maps.up_to(&last).await;
        let images = seen.iter().map(|map| map["data"]["image"].as_str());
        let mut images: Vec<_> = images.flatten().collect();
        images.dedup();
        assert_eq!(images, ["good-1", "good-4", "good-5"]);
    };
    tokio::select! {
        () = scenario => {}
        ended = pods::run(client.clone(), NAMESPACE, code) => panic!("{ended:?}"),
    }
    nothing_was_forbidden(&plane, SUPPLY_CHAIN_CONTROLLER);
    nothing_was_forbidden(&plane, RUNNABLE_CONTROLLER);
    drop(runnable);
}
