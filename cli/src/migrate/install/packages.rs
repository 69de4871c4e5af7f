//! Who installed what there is, and would put it back.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;

use super::{Controller, Package};
use crate::migrate::world::all_of;

/// What manages an object, as it says.
pub(super) fn managers(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut found = Vec::new();
    if labels.contains_key("kapp.k14s.io/app") {
        found.push("kapp".to_owned());
    }
    if let Some(release) = annotations.get("meta.helm.sh/release-name") {
        found.push(format!("Helm release {release}"));
    }
    for (prefix, word) in [
        ("kustomize.toolkit.fluxcd.io", "Flux Kustomization"),
        ("helm.toolkit.fluxcd.io", "Flux HelmRelease"),
    ] {
        let of = |field: &str| labels.get(&format!("{prefix}/{field}"));
        if let (Some(namespace), Some(name)) = (of("namespace"), of("name")) {
            found.push(format!("{word} {namespace}/{name}"));
        }
    }
    if let Some(tracked) = annotations.get("argocd.argoproj.io/tracking-id") {
        let app = tracked.split(':').next().unwrap_or_default();
        found.push(format!("Argo CD application {app}"));
    }
    found
}

/// What would undo that the Go controller is scaled down. Where it cannot be listed, it is not there.
pub(super) async fn packages(client: &Client, old: &[Controller]) -> Vec<Package> {
    let mut found = Vec::new();
    let kapp = [
        ("packaging.carvel.dev", "v1alpha1", "PackageInstall"),
        ("kappctrl.k14s.io", "v1alpha1", "App"),
    ];
    for (group, version, kind) in kapp {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let listed = all_of(&api, ListParams::default())
            .await
            .unwrap_or_default();
        let is_its = |object: &&Value| {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let names = [text("/metadata/name"), text("/spec/packageRef/refName")];
            let mut names = names.into_iter().flatten();
            names.any(|name| name.contains("cartographer") && !name.contains("conventions"))
                && object["spec"]["paused"] != true
        };
        found.extend(listed.iter().filter(is_its).map(|object| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let (namespace, name, word) = (text("namespace"), text("name"), kind.to_lowercase());
            Package {
                object: format!("{kind} {namespace}/{name}"),
                pause: format!(
                    "kubectl -n {namespace} patch {word} {name} --type=merge -p '{{\"spec\":{{\"paused\":true}}}}'"
                ),
            }
        }));
    }
    for managed in old.iter().flat_map(|old| &old.managed_by) {
        found.extend(flux(client, managed).await);
    }
    found
}

/// What Flux applies, unless it is suspended.
async fn flux(client: &Client, managed: &str) -> Option<Package> {
    let (kind, word, group, version) = [
        (
            "Kustomization",
            "kustomization",
            "kustomize.toolkit.fluxcd.io",
            "v1",
        ),
        ("HelmRelease", "helmrelease", "helm.toolkit.fluxcd.io", "v2"),
    ]
    .into_iter()
    .find(|(kind, ..)| managed.starts_with(&format!("Flux {kind} ")))?;
    let (namespace, name) = managed.rsplit(' ').next()?.split_once('/')?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let object = api.get_opt(name).await.ok()??;
    (object.data["spec"]["suspend"] != true).then(|| Package {
        object: format!("{kind} {namespace}/{name}"),
        pause: format!("flux suspend {word} {name} -n {namespace}"),
    })
}
