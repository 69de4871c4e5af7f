//! Pods and presets out of a cluster.

use std::collections::BTreeMap;

use anyhow::anyhow;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use pod_presets::{Candidate, Origin};
use serde_json::Value;

use super::Known;
use super::files::Subject;
use crate::cluster::Cluster;

/// Objects that are listed at once.
const PAGE: u32 = 500;

/// Kinds with a pod: words for them, group, version, kind and plural.
const KINDS: [(&[&str], &str, &str, &str, &str); 8] = [
    (&["pod", "pods", "po"], "", "v1", "Pod", "pods"),
    (
        &["deployment", "deployments", "deploy"],
        "apps",
        "v1",
        "Deployment",
        "deployments",
    ),
    (
        &["statefulset", "statefulsets", "sts"],
        "apps",
        "v1",
        "StatefulSet",
        "statefulsets",
    ),
    (
        &["daemonset", "daemonsets", "ds"],
        "apps",
        "v1",
        "DaemonSet",
        "daemonsets",
    ),
    (
        &["replicaset", "replicasets", "rs"],
        "apps",
        "v1",
        "ReplicaSet",
        "replicasets",
    ),
    (&["job", "jobs"], "batch", "v1", "Job", "jobs"),
    (
        &["cronjob", "cronjobs", "cj"],
        "batch",
        "v1",
        "CronJob",
        "cronjobs",
    ),
    (
        &["podintent", "podintents"],
        "conventions.carto.run",
        "v1alpha1",
        "PodIntent",
        "podintents",
    ),
];

/// An object of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTarget {
    resource: ApiResource,
    name: String,
}

impl LiveTarget {
    /// `KIND/NAME`, for the kinds that have a pod; nothing for other texts.
    pub fn of(text: &str) -> Option<Self> {
        let (word, name) = text.split_once('/')?;
        let word = word.to_ascii_lowercase();
        let mut kinds = KINDS.iter();
        let (_, group, version, kind, plural) =
            kinds.find(|(words, ..)| words.contains(&&*word))?;
        let is_name = !name.is_empty() && !name.contains('/');
        let kind = GroupVersionKind::gvk(group, version, kind);
        is_name.then(|| Self {
            resource: ApiResource::from_gvk_with_plural(&kind, plural),
            name: name.to_owned(),
        })
    }
}

/// An object of the cluster, in the namespace of the connection.
///
/// # Errors
///
/// If it is not there or may not be read.
pub async fn subject(cluster: &Cluster, target: &LiveTarget) -> anyhow::Result<Subject> {
    let LiveTarget { resource, name } = target;
    let client = cluster.client.clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, &cluster.namespace, resource);
    let what = format!(
        "{} {name} of namespace {}",
        resource.kind, cluster.namespace
    );
    let read = api.get(name).await;
    let object = read.map_err(|error| refused(cluster, &what, "get", &resource.plural, &error))?;
    let is_live = resource.kind == "Pod";
    let mut object = serde_json::to_value(&object)?;
    object["kind"] = resource.kind.clone().into();
    Ok(Subject {
        is_live,
        namespace: cluster.namespace.clone(),
        ..Subject::of(&object)?
    })
}

/// The presets that may be for pods of a namespace, and its labels.
///
/// # Errors
///
/// If they may not be read. Kinds that are not installed have none.
pub async fn known(cluster: &Cluster, namespace: &str) -> anyhow::Result<Known> {
    let namespace = match namespace {
        "" => &cluster.namespace,
        named => named,
    };
    let (mut candidates, mut installed) = (Vec::new(), 0);
    for origin in Origin::ALL {
        if let Some(objects) = presets(cluster, origin, namespace).await? {
            installed += 1;
            candidates.extend(objects.iter().filter_map(|it| Candidate::read(it).ok()));
        }
    }
    if installed == 0 {
        return Err(anyhow!(
            "the cluster at {} knows no pod presets\n  next: install them: kubectl apply --server-side -f deploy/conventions/crds, then see the head of deploy/conventions/pod-presets.yaml; or name files with --presets",
            cluster.address
        ));
    }
    let asks = |it: &Candidate| !it.name.origin.is_namespaced();
    let namespace_labels = if candidates.iter().any(asks) {
        labels_of(cluster, namespace).await?
    } else {
        BTreeMap::new()
    };
    Ok(Known {
        candidates,
        namespace_labels,
    })
}

/// Nothing if the kind is not installed.
async fn presets(
    cluster: &Cluster,
    origin: Origin,
    namespace: &str,
) -> anyhow::Result<Option<Vec<Value>>> {
    let kind = GroupVersionKind::gvk(origin.group(), Origin::VERSION, origin.kind());
    let resource = ApiResource::from_gvk_with_plural(&kind, origin.plural());
    let client = cluster.client.clone();
    let api: Api<DynamicObject> = if origin.is_namespaced() {
        Api::namespaced_with(client, namespace, &resource)
    } else {
        Api::all_with(client, &resource)
    };
    let mut objects = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = match api.list(&page).await {
            Ok(list) => list,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(error) => {
                let plural = format!("{}.{}", origin.plural(), origin.group());
                return Err(refused(cluster, &plural, "list", &plural, &error));
            }
        };
        for object in list.items {
            let mut object = serde_json::to_value(&object)?;
            // An entry of a list says neither.
            object["apiVersion"] = origin.api_version().into();
            object["kind"] = origin.kind().into();
            objects.push(object);
        }
        match list.metadata.continue_ {
            Some(token) if !token.is_empty() => page = page.continue_token(&token),
            _ => return Ok(Some(objects)),
        }
    }
}

async fn labels_of(cluster: &Cluster, name: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let what = format!("namespace {name}, whose labels ClusterPodPresets ask for");
    let namespace = api.get_metadata(name).await;
    let namespace =
        namespace.map_err(|error| refused(cluster, &what, "get", "namespaces", &error))?;
    Ok(namespace.metadata.labels.unwrap_or_default())
}

fn refused(
    cluster: &Cluster,
    what: &str,
    verb: &str,
    resource: &str,
    error: &kube::Error,
) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if status.code == 404 => {
            anyhow!("there is no {what}\n  next: name another one, or another namespace with -n")
        }
        kube::Error::Api(status) if status.code == 403 => anyhow!(
            "you may not read {what}: {}\n  next: ask for the right to {verb} {resource}, or name files with --presets",
            status.message
        ),
        kube::Error::Api(status) => anyhow!(
            "the cluster at {} answered {}: {}",
            cluster.address,
            status.code,
            status.message
        ),
        error => anyhow!(
            "the cluster at {} cannot be reached: {error}\n  next: see that it runs and that the address is right: kubectl cluster-info",
            cluster.address
        ),
    }
}
