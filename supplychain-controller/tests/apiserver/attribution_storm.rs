//! Attribution under attack: four resources in a chain, twenty objects that a tenant rewrites fifty times a second, fifty
//! commits that come meanwhile, and a controller that is killed again and again.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{Tenant, Versions};
use tokio::time::interval;

use crate::attribution::{self, TESTS};
use crate::stage::{NOTHING, PATIENCE, Stage};

const OWNERS: usize = 5;
const COMMITS: usize = 10;
const STEPS: usize = 4;

/// As the chain of the other tests, with four resources. Each makes `step[spec]` of its spec.
fn chain() -> String {
    let mut templates = attribution::CHAIN.split("---\n");
    let (source, build, deploy) = (templates.next(), templates.next(), templates.next());
    let resource = |step: usize| {
        let input = if step == 1 {
            "$(source.revision)$"
        } else {
            "$(image)$"
        };
        let build = build.unwrap().replace("$(source.revision)$", input);
        let build = build.replace("{name: build}", &format!("{{name: s{step}}}"));
        build.replace("-build}", &format!("-s{step}}}"))
    };
    let step = |step: usize| {
        let input = match step {
            1 => "sources: [{name: source, resource: fetch}]".to_owned(),
            _ => format!("images: [{{name: image, resource: s{}}}]", step - 1),
        };
        let template = format!("templateRef: {{kind: ClusterImageTemplate, name: s{step}}}");
        format!("    - {{name: s{step}, {template}, {input}}}\n")
    };
    let steps: String = (1..=STEPS).map(step).collect();
    let mut documents = vec![source.unwrap().to_owned(), deploy.unwrap().to_owned()];
    documents.extend((1..=STEPS).map(resource));
    documents.push(BLUEPRINT.replace("STEPS\n", &steps));
    documents.join("---\n")
}

const BLUEPRINT: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
STEPS
    - {name: deploy, templateRef: {kind: ClusterTemplate, name: deploy}, images: [{name: image, resource: s4}]}
";

fn workload(owner: usize) -> String {
    format!(
        "apiVersion: carto.run/v1alpha1\nkind: Workload\nmetadata: {{name: app-{owner}, labels: {{type: web}}}}\n\
         spec: {{image: '0', serviceAccountName: sa}}\n"
    )
}

/// What is deployed of a commit.
fn made_of(commit: usize) -> String {
    (1..=STEPS).fold(commit.to_string(), |made, step| format!("s{step}[{made}]"))
}

/// The controllers of the resources: whatever is asked for is made, and reported with its generation.
async fn build(stage: &Stage) {
    let mut pace = interval(Duration::from_millis(10));
    loop {
        pace.tick().await;
        for object in stage.all(TESTS, "Test").await {
            let generation = &object["metadata"]["generation"];
            if object["status"]["observedGeneration"] == *generation {
                continue;
            }
            let name = object["metadata"]["name"].as_str().unwrap();
            let (_, step) = name.rsplit_once('-').unwrap();
            let asked = object["spec"]["value"]["revision"].as_str().unwrap();
            let status = json!({
                "observedGeneration": generation,
                "conditions": [{"type": "Ready", "status": "True"}],
                "latestGoodOutput": format!("{step}[{asked}]"),
            });
            stage.report(name, status).await;
        }
    }
}

async fn deployed(stage: &Stage, owner: usize) -> Option<Value> {
    stage
        .get("v1", "ConfigMap", &format!("app-{owner}-deployed"))
        .await
}

async fn arrived(stage: &Stage, commit: usize) {
    for owner in 0..OWNERS {
        let what = format!("commit {commit} of app-{owner} is deployed");
        eventually(&what, PATIENCE * 2, async || {
            let deployed = deployed(stage, owner).await.unwrap_or_default();
            let image = deployed["data"]["image"].clone();
            if image == made_of(commit) {
                Ok(())
            } else {
                Err(image)
            }
        })
        .await;
    }
}

/// The tenant changes one object after the other, fifty times a second.
async fn attack(stage: &Stage, tenant: &Tenant) {
    let mut pace = interval(Duration::from_millis(20));
    for round in 0.. {
        pace.tick().await;
        let name = format!("app-{}-s{}", round % OWNERS, 1 + round / OWNERS % STEPS);
        let evil = json!({
            "spec": {"value": {"revision": format!("evil-{round}")}},
            "metadata": {"annotations": {"carto.run/rendered-digest": format!("evil-{round}")}},
        });
        // It may not be there yet.
        drop(tenant.patch(TESTS, "Test", &name, evil).await);
    }
    unreachable!("{} is attacked for ever", stage.namespace)
}

async fn push(stage: &Stage, commit: usize) {
    let mut pace = interval(Duration::from_millis(100));
    for owner in 0..OWNERS {
        pace.tick().await;
        let patch = json!({"spec": {"image": commit.to_string()}});
        stage.edit_workload(&format!("app-{owner}"), patch).await;
    }
}

/// Something that the tenant asked for has been made, and its object says that it is good.
async fn evil_is_good(stage: &Stage) {
    eventually("what the tenant asked for is made", PATIENCE, async || {
        let objects = stage.all(TESTS, "Test").await;
        let is_made = |object: &Value| {
            let asked = object["spec"]["value"]["revision"].as_str().unwrap();
            let made = object["status"]["latestGoodOutput"].as_str();
            let is_of_it = made.is_some_and(|made| made.ends_with(&format!("[{asked}]")));
            asked.starts_with("evil") && is_of_it
        };
        objects.iter().any(is_made).then_some(())
    })
    .await;
}

/// There was something to get through, however slow the machine is.
async fn enough_went_on(resources: &Versions) {
    eventually("enough went on", PATIENCE, async || {
        let (mut attacks, mut built_of_attacks) = (0, 0);
        for object in resources.so_far() {
            let asked = object["spec"]["value"]["revision"].to_string();
            attacks += usize::from(asked.contains("evil"));
            let made = object["status"]["latestGoodOutput"].to_string();
            built_of_attacks += usize::from(made.contains("[evil"));
        }
        if attacks > 100 && built_of_attacks > 40 {
            Ok(())
        } else {
            Err((attacks, built_of_attacks))
        }
    })
    .await;
}

/// While this goes on, objects are built and attacked.
async fn under_attack(stage: &Stage, tenant: &Tenant, what: impl Future<Output = ()>) {
    tokio::select! {
        () = attack(stage, tenant) => {}
        () = build(stage) => {}
        () = what => {}
    }
}

#[tokio::test]
async fn nothing_of_a_tenant_gets_through_four_steps_while_commits_come_and_the_process_is_killed()
{
    let mut stage = Stage::open().await;
    let tenant = stage.tenant().await;
    stage.apply(&chain()).await;
    for owner in 0..OWNERS {
        stage.apply(&workload(owner)).await;
    }
    tokio::select! {
        () = build(&stage) => {}
        () = arrived(&stage, 0) => {}
    }
    let deployments = Versions::of(&stage, "v1", "ConfigMap").await;
    let resources = Versions::of(&stage, TESTS, "Test").await;
    for commit in 1..=COMMITS {
        under_attack(&stage, &tenant, push(&stage, commit)).await;
        if commit % 3 == 0 {
            stage.kill_controller();
            under_attack(&stage, &tenant, evil_is_good(&stage)).await;
            stage.start_controller();
        }
    }
    under_attack(&stage, &tenant, enough_went_on(&resources)).await;
    // The tenant has gone, and the last commit arrives.
    tokio::select! {
        () = build(&stage) => {}
        () = arrived(&stage, COMMITS) => {}
    }
    let mut seen = Vec::new();
    for owner in 0..OWNERS {
        let last = deployed(&stage, owner).await.unwrap();
        for object in deployments.up_to(&last).await {
            assert!(!object["data"].to_string().contains("evil"), "{object}");
        }
        let last = stage.get(TESTS, "Test", &format!("app-{owner}-s4")).await;
        seen = resources.up_to(&last.unwrap()).await;
    }
    for object in seen {
        // What the tenant wrote stands there bare; what was made of it would be in brackets.
        let asked = object["spec"]["value"]["revision"].to_string();
        assert!(!asked.contains("[evil"), "{object}");
    }
    for owner in 0..OWNERS {
        stage.settle(&format!("app-{owner}")).await;
    }
    assert_eq!(stage.requests_of_reconciles("app-0", 2).await, NOTHING);
}
