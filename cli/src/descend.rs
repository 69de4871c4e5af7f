//! Reads what stands below the objects of the steps, with the rights of whoever asks.

use std::pin::Pin;
use std::time::Duration;

use api_types::status::StampedRef;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::tree::{Below, Depth, Found, Tree, pods_of, referenced};

/// Objects may own one another without end; a chain of ours has four or five levels.
const DEEPEST: usize = 8;
/// The most that is read for one tree.
const MOST: usize = 64;
/// Pods of a Job that are shown.
const PODS: usize = 3;
/// A tree that comes late is worth less than one without what is below.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where objects are read.
pub trait Objects {
    /// One object.
    fn get(&self, depth: Depth, reference: &StampedRef) -> impl Future<Output = Found> + Send;
    /// The Pods with the label of a Job. Empty where they may not be listed.
    fn pods(&self, namespace: &str, job: &str) -> impl Future<Output = Vec<Value>> + Send;
}

/// Adds to a tree what is below its objects. What cannot be read is said to be so, or left out.
pub async fn descend(objects: &(impl Objects + Sync), tree: &mut Tree) {
    let mut left = MOST;
    let read = async {
        let mut found = Vec::new();
        for step in &tree.steps {
            found.push(match &step.object {
                Some(object) => below(objects, object.clone(), DEEPEST, &mut left).await,
                None => None,
            });
        }
        found
    };
    if let Ok(found) = tokio::time::timeout(PATIENCE, read).await {
        tree.put_below(found);
    }
}

type Reading<'a> = Pin<Box<dyn Future<Output = Option<Below>> + Send + 'a>>;

fn below<'a, O: Objects + Sync>(
    objects: &'a O,
    reference: StampedRef,
    levels: usize,
    left: &'a mut usize,
) -> Reading<'a> {
    Box::pin(async move {
        let depth = Depth::of(&reference)?;
        *left = left.checked_sub(1)?;
        let found = objects.get(depth, &reference).await;
        let mut here = Below::read(depth, &reference, &found).ok()?;
        let Found::Object(object) = found else {
            return Some(here);
        };
        if levels == 0 {
            return Some(here);
        }
        for referenced in referenced(depth, &object) {
            here.below
                .extend(below(objects, referenced, levels - 1, left).await);
        }
        if depth == Depth::Job {
            let job = reference.name.as_deref().unwrap_or_default();
            let pods = objects.pods(&here.namespace, job).await;
            for (reference, pod) in pods_of(&object, pods).into_iter().take(PODS) {
                let pod = Below::read(Depth::Pod, &reference, &Found::Object(pod));
                here.below.extend(pod.ok());
            }
        }
        Some(here)
    })
}

impl Objects for Cluster {
    async fn get(&self, depth: Depth, reference: &StampedRef) -> Found {
        let namespace = reference.namespace.as_deref().unwrap_or(&self.namespace);
        let name = reference.name.as_deref().unwrap_or_default();
        match api(self, depth, namespace).get_opt(name).await {
            Ok(Some(object)) => serde_json::to_value(object)
                .map_or_else(|error| Found::Unread(error.to_string()), Found::Object),
            Ok(None) => Found::Nothing,
            Err(kube::Error::Api(status)) => Found::Unread(status.message),
            Err(error) => Found::Unread(error.to_string()),
        }
    }

    async fn pods(&self, namespace: &str, job: &str) -> Vec<Value> {
        let its = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
        let listed = api(self, Depth::Pod, namespace).list(&its).await;
        let pods = listed.map(|pods| pods.items).unwrap_or_default();
        pods.into_iter()
            .filter_map(|pod| serde_json::to_value(pod).ok())
            .collect()
    }
}

fn api(cluster: &Cluster, depth: Depth, namespace: &str) -> Api<DynamicObject> {
    let [group, version, kind, plural] = depth.resource();
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    Api::namespaced_with(cluster.client.clone(), namespace, &resource)
}
