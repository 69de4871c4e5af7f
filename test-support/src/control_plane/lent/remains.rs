//! What a test leaves in a control plane, and how it is removed.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use http::Request;
use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::super::ControlPlane;
use super::super::raw::base64;

/// Most operations of one transaction of etcd are 128.
const BATCH: usize = 100;
/// Where the API server writes by itself, at any time.
const OF_THE_API_SERVER: [&str; 14] = [
    "/registry/apiregistration.k8s.io/",
    "/registry/configmaps/kube-system/extension-apiserver-authentication",
    "/registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
    "/registry/leases/kube-system/apiserver-",
    "/registry/masterleases/",
    "/registry/peerserverleases/",
    "/registry/namespaces/default",
    "/registry/namespaces/kube-",
    "/registry/ranges/",
    "/registry/services/endpoints/default/kubernetes",
    "/registry/services/specs/default/kubernetes",
    "/registry/endpointslices/default/kubernetes",
    "/registry/ipaddresses/",
    "/registry/servicecidrs/",
];
/// What tests make of kinds that are not defined by them, and where the API server lists it.
const BUILT_IN: [(&str, &str); 13] = [
    ("configmaps", "/api/v1/configmaps"),
    ("namespaces", "/api/v1/namespaces"),
    ("pods", "/api/v1/pods"),
    ("resourcequotas", "/api/v1/resourcequotas"),
    ("secrets", "/api/v1/secrets"),
    ("serviceaccounts", "/api/v1/serviceaccounts"),
    ("deployments", "/apis/apps/v1/deployments"),
    ("jobs", "/apis/batch/v1/jobs"),
    ("leases", "/apis/coordination.k8s.io/v1/leases"),
    (
        "clusterrolebindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    ),
    (
        "clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ),
    ("roles", "/apis/rbac.authorization.k8s.io/v1/roles"),
    (
        "rolebindings",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    ),
];
/// Nobody reads them back.
const EVENTS: &str = "/registry/events/";

/// Each key of etcd with the revision of its last change.
type Keys = BTreeMap<String, String>;

/// A control plane before a test.
#[derive(Debug)]
pub(super) struct Beginning {
    keys: Keys,
    /// The start of the keys of a kind, and where the API server lists it.
    lists: BTreeMap<String, String>,
    files: HashSet<OsString>,
}

impl Beginning {
    /// As it is now.
    pub(super) async fn of(plane: &ControlPlane) -> anyhow::Result<Self> {
        Ok(Self {
            lists: lists(plane).await?,
            keys: keys(plane).await?,
            files: files(plane)?,
        })
    }

    /// Removes what came since. False if that is not enough to have it as it was.
    pub(super) async fn is_restored(&self, plane: &ControlPlane) -> anyhow::Result<bool> {
        let Some(remains) = self.remains(keys(plane).await?) else {
            return Ok(false);
        };
        let client = plane.client()?;
        let removed = remains
            .iter()
            .map(|(list, keys)| remove(plane, &client, *list, keys));
        try_join_all(removed).await?;
        for file in files(plane)?.difference(&self.files) {
            let path = plane.folder().join(file);
            if path.is_dir() {
                fs::remove_dir_all(path)?;
            } else {
                fs::remove_file(path)?;
            }
        }
        plane.forget_requests()?;
        Ok(true)
    }

    /// What came since, by where it is listed. Nothing if something else has changed, or what came is of a kind of which
    /// more than its objects is to be thought of.
    fn remains(&self, now: Keys) -> Option<BTreeMap<Option<&str>, Vec<String>>> {
        let is_own = |key: &str| OF_THE_API_SERVER.iter().any(|start| key.starts_with(start));
        let is_as_before =
            |(key, revision): (&String, &String)| is_own(key) || now.get(key) == Some(revision);
        if !self.keys.iter().all(is_as_before) {
            return None;
        }
        let mut remains: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
        for key in now.into_keys() {
            if self.keys.contains_key(&key) || is_own(&key) {
                continue;
            }
            let list = if key.starts_with(EVENTS) {
                None
            } else {
                Some(self.list_of(&key)?)
            };
            remains.entry(list).or_default().push(key);
        }
        Some(remains)
    }

    fn list_of(&self, key: &str) -> Option<&str> {
        let of = self.lists.iter().find(|(start, _)| key.starts_with(*start));
        of.map(|(_, list)| list.as_str())
    }
}

/// Removes keys of one kind, and waits until the API server knows of it.
async fn remove(
    plane: &ControlPlane,
    client: &Client,
    list: Option<&str>,
    keys: &[String],
) -> anyhow::Result<()> {
    let mut revision = None;
    for keys in keys.chunks(BATCH) {
        let deletes = keys
            .iter()
            .map(|key| json!({"request_delete_range": {"key": base64(key.as_bytes())}}));
        let deletes: Vec<Value> = deletes.collect();
        let request = json!({"success": deletes});
        let done = plane.etcd("/v3/kv/txn", request).await?;
        ensure!(done["succeeded"] == true, "etcd removed nothing: {done}");
        revision = done["header"]["revision"].as_str().map(str::to_owned);
    }
    let (Some(list), Some(revision)) = (list, revision) else {
        return Ok(());
    };
    let query = format!("limit=1&resourceVersionMatch=NotOlderThan&resourceVersion={revision}");
    let request = Request::get(format!("{list}?{query}")).body(Vec::new())?;
    client.request_text(request).await?;
    Ok(())
}

/// All that etcd has.
async fn keys(plane: &ControlPlane) -> anyhow::Result<Keys> {
    let [key, end] = ["/registry/", "/registry0"].map(|key| base64(key.as_bytes()));
    let range = json!({"key": key, "range_end": end, "keys_only": true});
    let mut found = plane.etcd("/v3/kv/range", range).await?;
    let kvs = found["kvs"].as_array_mut().context("etcd has nothing")?;
    let read = |kv: &mut Value| {
        let key: ByteString = serde_json::from_value(kv["key"].take())?;
        let revision = kv["mod_revision"].as_str().context("no revision")?;
        Ok((String::from_utf8(key.0)?, revision.to_owned()))
    };
    kvs.iter_mut().map(read).collect()
}

/// Where each kind is listed whose objects can be removed.
async fn lists(plane: &ControlPlane) -> anyhow::Result<BTreeMap<String, String>> {
    let of = |(plural, list): (&str, &str)| (format!("/registry/{plural}/"), list.to_owned());
    let mut lists: BTreeMap<_, _> = BUILT_IN.into_iter().map(of).collect();
    let kinds: Api<CustomResourceDefinition> = Api::all(plane.client()?);
    for kind in kinds.list(&ListParams::default()).await? {
        let (group, plural) = (kind.spec.group, kind.spec.names.plural);
        let version = kind.spec.versions.iter().find(|version| version.served);
        let version = &version.context("a kind that is not served")?.name;
        let list = format!("/apis/{group}/{version}/{plural}");
        lists.insert(format!("/registry/{group}/{plural}/"), list);
    }
    Ok(lists)
}

fn files(plane: &ControlPlane) -> anyhow::Result<HashSet<OsString>> {
    let entries = fs::read_dir(plane.folder())?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    names.collect()
}
