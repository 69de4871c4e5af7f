//! Applications of Argo CD.

use anyhow::ensure;
use e2e::third_party::ArgoCd;
use test_support::{GitServer, eventually, objects_in};

use crate::LIMIT;
use crate::chain::{Chain, NAMESPACE};

/// `sync` and `health` come of one comparison with the cluster. `history` would not do: it has the revision while health is
/// still that of the one before.
const TEMPLATE: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {name: step}
spec:
  configPath: .status.sync.revision
  observedMatches:
    - {input: .spec.source.targetRevision, output: .status.sync.revision}
    - {input: .metadata.labels.good-sync, output: .status.sync.status}
    - {input: .metadata.labels.good-health, output: .status.health.status}
  failed:
    anyOf:
      - {key: .status.health.status, value: Degraded}
      - {key: .status.operationState.phase, value: Failed}
  template:
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: $(workload.metadata.name)$, labels: {good-sync: Synced, good-health: Healthy}}
    spec:
      project: default
      destination: {server: 'https://kubernetes.default.svc', namespace: live}
      source: {repoURL: REPOSITORY, path: ., targetRevision: $(workload.spec.image)$}
      syncPolicy:
        automated: {prune: true}
        syncOptions: [CreateNamespace=true]
        retry: {limit: 0}
";

/// There is no node.
const STARTS_NEVER: &str = "1";
/// So it has all its Pods.
const WANTS_NO_POD: &str = "0";

fn deployment(replicas: &str) -> String {
    DEPLOYMENT.replace("REPLICAS", replicas)
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: REPLICAS
  progressDeadlineSeconds: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: app, image: registry.example/app:REPLICAS}]}
";

fn config(text: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: greeting}}, data: {text}}}")
}

/// Waits until Argo CD has tried to deploy a commit, and been told how it is.
async fn attempted(chain: &Chain, commit: &str) {
    let applications = objects_in(
        &chain.client,
        NAMESPACE,
        "argoproj.io/v1alpha1",
        "Application",
    );
    eventually("Argo CD tries it", LIMIT, async || {
        let status = applications.get("app").await?.data["status"].take();
        let operation = &status["operationState"];
        let is_over = operation["phase"] != "Running";
        ensure!(
            operation["syncResult"]["revision"] == commit && is_over,
            "{status:#}"
        );
        anyhow::Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_argo_cd_application_hands_on_the_commit_that_is_deployed_and_not_one_that_cannot_be() {
    let chain = Chain::new().await;
    let git = GitServer::start().unwrap();
    let url = git.create_repo("app").unwrap();
    let commit = |text: &str, replicas: &str| {
        let (config, deployment) = (config(text), deployment(replicas));
        let files = [("greeting.yaml", &*config), ("app.yaml", &*deployment)];
        git.commit("app", &files, text).unwrap()
    };
    let mut argo_cd = ArgoCd::start(&chain.plane, NAMESPACE).await.unwrap();
    let scenario = async {
        let notes = chain.notes().await;
        let first = commit("{greeting: Hello}", WANTS_NO_POD);
        chain
            .hand_in(&TEMPLATE.replace("REPOSITORY", &url), &first)
            .await;
        chain.comes_to("Good", |told| told == first).await;
        let second = commit("{greeting: Moin}", WANTS_NO_POD);
        chain.changes_to(&second).await;
        let good = chain.comes_to("Good", |told| told == second).await;
        let live = objects_in(&chain.client, "live", "v1", "ConfigMap");
        let greeting = live.get("greeting").await.unwrap();
        assert_eq!(greeting.data["data"]["greeting"], "Moin");

        let degraded = commit("{greeting: Tach}", STARTS_NEVER);
        let refused = commit("{greeting: {not: a text}}", WANTS_NO_POD);
        for bad in [degraded, refused] {
            chain.changes_to(&bad).await;
            attempted(&chain, &bad).await;
            let failed = chain.comes_to("Failed", |told| told == second).await;
            let (before, now) = (&good["outputs"][0], &failed["outputs"][0]);
            assert_eq!(now["current"], false, "{failed}");
            assert_eq!(now["provenance"], before["provenance"]);
        }
        let last = commit("{greeting: Servus}", WANTS_NO_POD);
        chain.changes_to(&last).await;
        chain.comes_to("Good", |told| told == last).await;
        assert_eq!(chain.told(notes).await, [first, second, last]);
    };
    tokio::select! {
        () = scenario => {}
        ended = argo_cd.early_end() => panic!("{ended}"),
    }
    chain.nothing_was_forbidden();
}
