//! Attribution under attack, with the real parts: Flux follows repositories, the Job controller runs Jobs, our own controllers
//! and Runnables are between them. A tenant rewrites what was stamped fifty times a second, commits come, and the controllers
//! are killed again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use e2e::Controller;
use e2e::binaries::{RUNNABLE_CONTROLLER, SUPPLY_CHAIN_CONTROLLER};
use e2e::stack::{install, installed_controller};
use kube::Client;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use test_support::stage::{Versions, condition, forged_copy};
use test_support::{ControlPlane, Dice, FluxSourceController, GitServer, eventually, objects_in};
use tokio::time::{interval, sleep};

use crate::LIMIT;

const NAMESPACE: &str = "dev";
const TENANT: &str = "mallory";
/// Two of each kind of chain.
const OWNERS: [&str; 4] = ["run-0", "run-1", "job-0", "job-1"];
/// To each of their repositories.
const COMMITS: usize = 13;

const FLUX: (&str, &str) = ("source.toolkit.fluxcd.io/v1", "GitRepository");
const RUNNABLES: (&str, &str) = ("carto.run/v1alpha1", "Runnable");
const JOBS: (&str, &str) = ("batch/v1", "Job");
const CONFIG_MAPS: (&str, &str) = ("v1", "ConfigMap");
const DEPLOYMENTS: (&str, &str) = ("apps/v1", "Deployment");
const KINDS: [(&str, &str); 5] = [FLUX, RUNNABLES, JOBS, CONFIG_MAPS, DEPLOYMENTS];

/// A Job wants no Pod, so it is complete at once.
const JOB: &str = r"
      completions: 0
      template:
        metadata:
          annotations: {url: $(URL)$, revision: $(REVISION)$}
        spec: {restartPolicy: Never, containers: [{name: test, image: registry.example/test}]}
";

const PLATFORM: &str = r#"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: fetched}
spec:
  urlPath: .status.artifact.url
  revisionPath: .status.artifact.revision
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Ready")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type=="Ready")].status', value: 'False'}
  template:
    apiVersion: source.toolkit.fluxcd.io/v1
    kind: GitRepository
    metadata: {name: $(workload.metadata.name)$}
    spec: {interval: 1s, url: $(workload.spec.source.git.url)$, ref: {branch: main}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterRunTemplate
metadata: {name: test}
spec:
  healthRule:
    multiMatch:
      healthy: {matchConditions: [{type: Complete, status: "True"}]}
      unhealthy: {matchConditions: [{type: Failed, status: "True"}]}
  outputs: {url: .spec.template.metadata.annotations.url, revision: .spec.template.metadata.annotations.revision}
  template:
    apiVersion: batch/v1
    kind: Job
    metadata: {generateName: $(runnable.metadata.name)$-}
    spec: RUN_OF_INPUTS
---
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: tested-run}
spec:
  urlPath: .status.outputs.url
  revisionPath: .status.outputs.revision
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Ready")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type=="Ready")].status', value: 'False'}
  updatePolicy: {whenReconciling: Wait}
  template:
    apiVersion: carto.run/v1alpha1
    kind: Runnable
    metadata: {name: $(workload.metadata.name)$}
    spec:
      serviceAccountName: $(workload.spec.serviceAccountName)$
      runTemplateRef: {name: test}
      retentionPolicy: {maxFailedRuns: 1, maxSuccessfulRuns: 1}
      inputs: {url: $(source.url)$, revision: $(source.revision)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: tested-job}
spec:
  lifecycle: immutable
  urlPath: .spec.template.metadata.annotations.url
  revisionPath: .spec.template.metadata.annotations.revision
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Complete")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type=="Failed")].status', value: 'True'}
  updatePolicy: {whenReconciling: Wait}
  retentionPolicy: {maxFailedRuns: 2, maxSuccessfulRuns: 2}
  template:
    apiVersion: batch/v1
    kind: Job
    metadata: {generateName: $(workload.metadata.name)$-}
    spec: RUN_OF_SOURCE
---
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {name: release}
spec:
  configPath: .data.release
  alwaysSuccessful: true
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$}
    data: {release: release of $(source.revision)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: deployed}
spec:
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Available")].status', value: 'True'}
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: $(workload.metadata.name)$
      annotations: {release: $(config)$}
    spec:
      replicas: 0
      selector: {matchLabels: {app: $(workload.metadata.name)$}}
      template:
        metadata: {labels: {app: $(workload.metadata.name)$}}
        spec: {containers: [{name: app, image: registry.example/app}]}
"#;

const CHAIN: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: CHAIN}
spec:
  selector: {type: CHAIN}
  resources:
    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: fetched}}
    - name: test
      templateRef: {kind: ClusterSourceTemplate, name: tested-CHAIN}
      sources: [{name: source, resource: fetch}]
    - name: release
      templateRef: {kind: ClusterConfigTemplate, name: release}
      sources: [{name: source, resource: test}]
    - {name: deploy, templateRef: {kind: ClusterTemplate, name: deployed}, configs: [{name: config, resource: release}]}
";

/// The account of the Workloads, and somebody who may edit in the namespace what it may.
const DEVELOPER: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: dev}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: dora, namespace: dev}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: dora, namespace: dev}
rules:
  - apiGroups: [source.toolkit.fluxcd.io, carto.run, batch, apps, '']
    resources: [gitrepositories, runnables, jobs, deployments, configmaps]
    verbs: [get, list, create, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: dora, namespace: dev}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: dora}
subjects:
  - {kind: ServiceAccount, name: dora, namespace: dev}
  - {apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}
";

/// All parts, and what was seen of the objects that are stamped.
struct Storm {
    git: GitServer,
    _flux: FluxSourceController,
    plane: ControlPlane,
    client: Client,
    /// The only commit of the repository that the tenant would have deployed.
    evil: String,
}

impl Storm {
    async fn start() -> anyhow::Result<Self> {
        let plane = ControlPlane::builder().deployments().jobs().audit();
        let plane = plane.start().await?;
        install(&plane).await?;
        let git = GitServer::start()?;
        let storm = Self {
            _flux: FluxSourceController::start(&plane).await?,
            client: plane.client()?,
            evil: commit(&git, "evil", 0)?,
            git,
            plane,
        };
        Ok(storm)
    }

    async fn hand_in(&self) -> anyhow::Result<BTreeMap<&'static str, String>> {
        let run = |source: &str| {
            let tags = [("$(URL)$", "url"), ("$(REVISION)$", "revision")];
            let filled = tags.iter().fold(JOB.to_owned(), |job, (tag, name)| {
                job.replace(tag, &format!("$({source}.{name})$"))
            });
            filled.trim_end().to_owned()
        };
        let platform = PLATFORM
            .replace(" RUN_OF_INPUTS", &run("runnable.spec.inputs"))
            .replace(" RUN_OF_SOURCE", &run("source"));
        let chains = ["run", "job"].map(|chain| CHAIN.replace("CHAIN", chain));
        let all = [&platform, &chains[0], &chains[1], DEVELOPER];
        self.plane.apply_yaml(&all.join("\n---\n")).await?;
        let mut commits = BTreeMap::new();
        for owner in OWNERS {
            commits.insert(owner, commit(&self.git, owner, 0)?);
            let (chain, _) = owner.split_once('-').unwrap_or_default();
            let workload = json!({
                "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
                "metadata": {"name": owner, "namespace": NAMESPACE, "labels": {"type": chain}},
                "spec": {"serviceAccountName": "dora", "source": {"git": {"url": self.git.url(owner)}}},
            });
            self.plane.apply_yaml(&workload.to_string()).await?;
        }
        Ok(commits)
    }

    async fn get(&self, (api_version, kind): (&str, &str), name: &str) -> anyhow::Result<Value> {
        let api = objects_in(&self.client, NAMESPACE, api_version, kind);
        Ok(serde_json::to_value(api.get(name).await?)?)
    }

    /// Each chain has deployed its commit.
    async fn arrived(&self, commits: &BTreeMap<&str, String>) {
        for (owner, commit) in commits {
            eventually(
                &format!("{commit} of {owner} is deployed"),
                LIMIT,
                async || {
                    let deployed = self.get(DEPLOYMENTS, owner).await?;
                    let release = &deployed["metadata"]["annotations"]["release"];
                    ensure!(release == &json!(release_of(commit)), "{release}");
                    anyhow::Ok(())
                },
            )
            .await;
        }
    }

    /// Every version of the objects of a kind, up to those that are there.
    async fn seen(
        &self,
        (api_version, kind): (&str, &str),
        versions: &Versions,
    ) -> anyhow::Result<Vec<Value>> {
        let present = objects_in(&self.client, NAMESPACE, api_version, kind);
        let mut seen = Vec::new();
        for object in present.list(&ListParams::default()).await?.items {
            seen = versions.up_to(&serde_json::to_value(object)?).await;
        }
        ensure!(!seen.is_empty(), "no {kind}");
        Ok(seen)
    }

    /// Flux has fetched what the tenant asked for, and its object says that it is good.
    async fn evil_is_good(&self) {
        eventually("what the tenant asked for is fetched", LIMIT, async || {
            for owner in OWNERS {
                let object = self.get(FLUX, owner).await?;
                if is_good_for(&object, &self.evil) {
                    return anyhow::Ok(true);
                }
            }
            Ok(false)
        })
        .await;
    }

    /// The tenant writes fifty times a second, to one object after the other. Returns only if a write cannot be sent.
    async fn attack(&self) -> anyhow::Result<()> {
        let tenant = Tenant(self.plane.client_as_user(TENANT, &[])?);
        let url = self.git.url("evil");
        let mut pace = interval(Duration::from_millis(20));
        for round in 0_usize.. {
            pace.tick().await;
            let owner = OWNERS[round % OWNERS.len()];
            // Not another one each time: something is to come of it.
            let evil = format!("evil-{}", round / 100);
            match round / OWNERS.len() % 3 {
                0 => {
                    let fetch = json!({"spec": {"url": url}});
                    tenant.patch(FLUX, owner, fetch).await;
                }
                1 => {
                    let data = json!({"data": {"release": evil}});
                    tenant.patch(CONFIG_MAPS, owner, data).await;
                }
                _ if owner.starts_with("run") => {
                    let inputs = json!({"spec": {"inputs": {"url": url, "revision": evil}}});
                    tenant.patch(RUNNABLES, owner, inputs).await;
                }
                _ => tenant.forge_a_job(owner, &evil, round).await,
            }
        }
        Ok(())
    }
}

struct Tenant(Client);

impl Tenant {
    /// Somebody's write may be refused: the object may not be there yet.
    async fn patch(&self, (api_version, kind): (&str, &str), name: &str, patch: Value) {
        let mut patch = patch;
        let digest = json!({"carto.run/rendered-digest": "evil"});
        patch["metadata"] = json!({"annotations": digest});
        let api = objects_in(&self.0, NAMESPACE, api_version, kind);
        drop(
            api.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await,
        );
    }

    /// The template of a Job cannot be changed: what can is, and a copy of it is made that says of itself that it is the newest.
    async fn forge_a_job(&self, owner: &str, evil: &str, round: usize) {
        let jobs = objects_in(&self.0, NAMESPACE, JOBS.0, JOBS.1);
        let of_owner = ListParams::default().labels(&format!("carto.run/workload-name={owner}"));
        let Ok(found) = jobs.list(&of_owner).await else {
            return;
        };
        let is_forged = |job: &&DynamicObject| {
            job.metadata
                .name
                .as_deref()
                .is_some_and(|it| it.contains("evil"))
        };
        let Some(job) = found.items.iter().find(|job| !is_forged(job)) else {
            return;
        };
        let name = job.metadata.name.clone().unwrap_or_default();
        self.patch(
            JOBS,
            &name,
            json!({"spec": {"activeDeadlineSeconds": 100 + round}}),
        )
        .await;
        let object = serde_json::to_value(job).unwrap_or_default();
        let mut copy = forged_copy(&object, &format!("{owner}-{evil}"));
        copy["spec"]["template"]["metadata"] =
            json!({"annotations": {"url": evil, "revision": evil}});
        if let Some(spec) = copy["spec"].as_object_mut() {
            spec.remove("selector");
        }
        let Ok(copy) = serde_json::from_value(copy) else {
            return;
        };
        drop(jobs.create(&PostParams::default(), &copy).await);
    }
}

fn commit(git: &GitServer, repository: &str, number: usize) -> anyhow::Result<String> {
    if number == 0 {
        git.create_repo(repository)?;
    }
    let text = format!("{repository} {number}\n");
    git.commit(repository, &[("app", &text)], &text)
}

fn release_of(commit: &str) -> String {
    format!("release of main@sha1:{commit}")
}

/// Whether Flux says of its object that it is good, and that this is what it has fetched.
fn is_good_for(object: &Value, commit: &str) -> bool {
    let status = &object["status"];
    let revision = status["artifact"]["revision"].as_str().unwrap_or_default();
    revision.ends_with(commit)
        && status["observedGeneration"] == object["metadata"]["generation"]
        && condition(status, "Ready")["status"] == "True"
}

/// Kills one of our two controllers, and after a while starts it again.
async fn killed(
    storm: &Storm,
    controllers: &mut BTreeMap<&'static str, Controller>,
    dice: &mut Dice,
) -> anyhow::Result<()> {
    // The one that decides always; the other now and then.
    let mut victims = vec![SUPPLY_CHAIN_CONTROLLER];
    if dice.below(2) == 0 {
        victims.push(RUNNABLE_CONTROLLER);
    }
    sleep(Duration::from_millis(dice.below(700))).await;
    for victim in &victims {
        controllers.remove(victim);
    }
    storm.evil_is_good().await;
    for victim in victims {
        controllers.insert(victim, installed_controller(&storm.plane, victim).await?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_tenant_gets_through_flux_jobs_and_runnables_while_commits_come_and_processes_are_killed()
-> anyhow::Result<()> {
    let storm = Storm::start().await?;
    let mut controllers = BTreeMap::new();
    for name in [SUPPLY_CHAIN_CONTROLLER, RUNNABLE_CONTROLLER] {
        controllers.insert(name, installed_controller(&storm.plane, name).await?);
    }
    let mut commits = storm.hand_in().await?;
    storm.arrived(&commits).await;
    let mut versions = Vec::new();
    for (api_version, kind) in KINDS {
        let api = objects_in(&storm.client, NAMESPACE, api_version, kind);
        versions.push(Versions::in_api(api).await);
    }
    storm
        .plane
        .until_it_may(
            TENANT,
            "patch gitrepositories.source.toolkit.fluxcd.io in dev",
        )
        .await;
    let mut dice = Dice::new(16);
    let mut kills = 0;
    let under_attack = async {
        for number in 1..=COMMITS {
            for owner in OWNERS {
                commits.insert(owner, commit(&storm.git, owner, number)?);
                sleep(Duration::from_millis(dice.below(200))).await;
            }
            if dice.below(3) == 0 {
                killed(&storm, &mut controllers, &mut dice).await?;
                kills += 1;
            }
        }
        ensure!(kills >= 3, "killed {kills} times");
        enough_went_on(&storm, &versions).await;
        anyhow::Ok(())
    };
    tokio::select! {
        ended = under_attack => ended?,
        ended = storm.attack() => ended?,
    }
    // The tenant has gone, and the last commit of each chain arrives.
    storm.arrived(&commits).await;
    nothing_got_through(&storm, &versions).await
}

/// There was something to get through, however slow the machine is.
async fn enough_went_on(storm: &Storm, versions: &[Versions]) {
    eventually("enough went on", LIMIT, async || {
        let (mut fetched, mut written, mut run) = (0, 0, 0);
        for (kind, versions) in KINDS.into_iter().zip(versions) {
            for object in versions.so_far() {
                fetched += usize::from(kind == FLUX && is_good_for(&object, &storm.evil));
                let is_written = kind == CONFIG_MAPS && object.to_string().contains("evil-");
                written += usize::from(is_written);
                run += usize::from(kind == RUNNABLES && is_run(&object));
            }
        }
        let went_on = format!("{fetched} times fetched, {written} times written, {run} times run");
        ensure!(fetched >= 4 && written >= 20 && run >= 1, "{went_on}");
        anyhow::Ok(())
    })
    .await;
}

/// Of every version of what was stamped.
async fn nothing_got_through(storm: &Storm, versions: &[Versions]) -> anyhow::Result<()> {
    for (kind, versions) in KINDS.into_iter().zip(versions) {
        if kind == FLUX {
            continue;
        }
        for object in storm.seen(kind, versions).await? {
            let text = object.to_string();
            // What Flux has fetched for the tenant, and what would be made of a revision that he made up.
            let is_made = text.contains(&storm.evil) || text.contains("release of evil");
            ensure!(!is_made, "{text}");
            ensure!(kind != DEPLOYMENTS || !text.contains("evil"), "{text}");
        }
    }
    Ok(())
}

/// Whether a Runnable has run what the tenant asked for, and says that it is good.
fn is_run(runnable: &Value) -> bool {
    let status = &runnable["status"];
    let revision = status["outputs"]["revision"].as_str().unwrap_or_default();
    revision.starts_with("evil") && condition(status, "Ready")["status"] == "True"
}
