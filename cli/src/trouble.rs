//! What to do when something that is needed is missing.

use anyhow::anyhow;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use kube::core::Status;
use kube::runtime::watcher;

use crate::cluster::Cluster;
use crate::target::Target;

/// At most so many names are listed for comparison.
const NAMES_SHOWN: usize = 8;

/// A kubeconfig that is not there or cannot be used; `source` says which.
pub fn kubeconfig(source: &str, error: &(dyn std::error::Error + 'static)) -> anyhow::Error {
    anyhow!(
        "no usable kubeconfig in {source}: {}\n  next: name one with --kubeconfig FILE or KUBECONFIG, and see that `kubectl config get-contexts` shows the right context",
        chain(error)
    )
}

/// The API server did not hand out the owner.
pub fn asking(cluster: &Cluster, target: &Target, error: &anyhow::Error) -> anyhow::Error {
    let plural = target.kind.plural();
    match refusal(error) {
        Some(status) if status.code == 404 => anyhow!(
            "the cluster at {} does not know {plural}.carto.run\n  next: install the CRDs: kubectl apply --server-side -f deploy/crds",
            cluster.address
        ),
        Some(status) if status.code == 403 => anyhow!(
            "you may not list {plural} in namespace {}: {}\n  next: ask for a role that includes them (the admin, edit and view roles do once deploy/install.yaml is applied), or name another namespace with -n",
            cluster.namespace,
            status.message
        ),
        Some(status) if status.code == 401 => anyhow!(
            "the cluster at {} does not accept your credentials: {}\n  next: log in again, or choose another context with --context",
            cluster.address,
            status.message
        ),
        Some(status) => anyhow!(
            "the cluster at {} answered {}: {}",
            cluster.address,
            status.code,
            status.message
        ),
        None => anyhow!(
            "the cluster at {} cannot be reached: {error:#}\n  next: see that it runs and that the address is right: kubectl cluster-info",
            cluster.address
        ),
    }
}

/// The owner is not there: says what is.
pub async fn no_such_owner(cluster: &Cluster, target: &Target) -> anyhow::Error {
    let (word, plural) = (target.kind.word(), target.kind.plural());
    let missing = format!(
        "{word} {} does not exist in namespace {}",
        target.name, cluster.namespace
    );
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    if let Ok(None) = namespaces.get_opt(&cluster.namespace).await {
        return anyhow!(
            "namespace {} does not exist\n  next: name another one with -n: kubectl get {plural} -A",
            cluster.namespace
        );
    }
    let names = names(cluster, target).await;
    if names.is_empty() {
        return anyhow!(
            "{missing}, nor does any other {word}\n  next: name another namespace with -n: kubectl get {plural} -A"
        );
    }
    anyhow!(
        "{missing}\n  next: name one that does: {}",
        names.join(", ")
    )
}

async fn names(cluster: &Cluster, target: &Target) -> Vec<String> {
    // Only to help: when it fails, there is nothing to compare with.
    let listed = cluster
        .owners(target.kind)
        .list_metadata(&ListParams::default())
        .await;
    let mut names: Vec<String> = listed.map_or_else(
        |_| Vec::new(),
        |list| {
            list.items
                .into_iter()
                .filter_map(|item| item.metadata.name)
                .collect()
        },
    );
    if names.len() > NAMES_SHOWN {
        names.truncate(NAMES_SHOWN);
        names.push("…".to_owned());
    }
    names
}

/// What the API server said, if it answered at all.
fn refusal(error: &anyhow::Error) -> Option<&Status> {
    match error.downcast_ref::<watcher::Error>()? {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

/// The message of an error and of what caused it, each once.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
