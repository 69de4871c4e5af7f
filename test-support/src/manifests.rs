//! YAML manifests applied like `kubectl apply --server-side` does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, ApiResource, Scope, oneshot};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::control_plane::ControlPlane;

const FIELD_MANAGER: &str = "test-support";
/// A CRD is established within a second; discovery and the cache of its kind follow. On a busy machine it takes longer.
const CRD_LIMIT: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(20);

impl ControlPlane {
    /// Applies every document of a YAML text, as administrator and by force. Namespaced objects without a namespace go to
    /// `default`. After a CRD it waits until its kinds are served, so its objects may follow in the same text.
    ///
    /// # Errors
    ///
    /// At the first document that does not parse, has an unknown kind or is refused.
    pub async fn apply_yaml(&self, yaml: &str) -> anyhow::Result<Vec<DynamicObject>> {
        self.apply_yaml_in("default", yaml).await
    }

    /// As [`ControlPlane::apply_yaml`], with a namespace for objects that name none.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::apply_yaml`].
    pub async fn apply_yaml_in(
        &self,
        namespace: &str,
        yaml: &str,
    ) -> anyhow::Result<Vec<DynamicObject>> {
        let client = self.client()?;
        let mut applied = Vec::new();
        for object in parse(yaml)? {
            let what = describe(&object);
            let object = apply(&client, namespace, object)
                .await
                .with_context(|| format!("apply {what}"))?;
            if is_crd(&object) {
                self.until_served(&object.name_any()).await?;
            }
            applied.push(object);
        }
        Ok(applied)
    }

    /// Applies all `.yaml` files of a folder, which hold CRDs, and waits until all their kinds are served.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or is refused, or a kind is not served in time.
    pub async fn install_crds(&self, folder: impl AsRef<Path>) -> anyhow::Result<()> {
        let mut definitions = Vec::new();
        for file in yaml_files(folder.as_ref())? {
            let yaml =
                std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            definitions.extend(documents(&yaml).with_context(|| file.display().to_string())?);
        }
        self.define(definitions).await
    }

    /// Applies CRDs, and waits until all their kinds are served: they are waited for together.
    ///
    /// # Errors
    ///
    /// When one is refused, or a kind is not served in time.
    pub async fn define(&self, definitions: Vec<Value>) -> anyhow::Result<()> {
        let client = self.client()?;
        let mut names = Vec::new();
        for definition in definitions {
            let object: DynamicObject = serde_json::from_value(definition)?;
            let what = describe(&object);
            let applied = apply(&client, "default", object).await;
            names.push(applied.with_context(|| format!("apply {what}"))?.name_any());
        }
        for name in names {
            self.until_served(&name).await?;
        }
        Ok(())
    }

    /// Waits until the kinds of a CRD are established, in discovery, and listed from the API server's cache. Whoever comes
    /// next would be refused while one of these is missing.
    async fn until_served(&self, name: &str) -> anyhow::Result<()> {
        // Not the patient client: a cache is filled sooner than the server says to come again.
        let client = Client::try_from(self.config()?)?;
        let served = async {
            let crd = established(&client, name).await;
            for version in crd.spec.versions.iter().filter(|version| version.served) {
                let names = &crd.spec.names;
                let kind = GroupVersionKind::gvk(&crd.spec.group, &version.name, &names.kind);
                let (resource, _) = discover(&client, &kind).await?;
                until_listed(Api::all_with(client.clone(), &resource)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(CRD_LIMIT, served)
            .await
            .with_context(|| {
                format!("CustomResourceDefinition {name} is not served after {CRD_LIMIT:?}")
            })?
    }
}

/// The `.yaml` files of a folder, by name.
///
/// # Errors
///
/// When the folder cannot be read or has none.
pub fn yaml_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("{} has no .yaml file", folder.display());
    }
    Ok(files)
}

/// The documents of a YAML text, without empty ones.
///
/// # Errors
///
/// When it is not YAML.
pub fn documents(yaml: &str) -> anyhow::Result<Vec<Value>> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(yaml).context("parse YAML")?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// Documents as one YAML text again.
pub fn as_yaml<'a>(documents: impl IntoIterator<Item = &'a Value>) -> String {
    // JSON is YAML.
    let texts: Vec<String> = documents.into_iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}

fn parse(yaml: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let objects = documents(yaml)?.into_iter().map(serde_json::from_value);
    objects
        .collect::<Result<_, _>>()
        .context("a document is no Kubernetes object")
}

async fn apply(
    client: &Client,
    namespace: &str,
    object: DynamicObject,
) -> anyhow::Result<DynamicObject> {
    let types = object.types.as_ref().context("no apiVersion and kind")?;
    let kind = GroupVersionKind::try_from(types).context("apiVersion")?;
    let (resource, capabilities) = discover(client, &kind).await?;
    let api = if capabilities.scope == Scope::Namespaced {
        let namespace = object.namespace().unwrap_or_else(|| namespace.to_owned());
        Api::namespaced_with(client.clone(), &namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let params = PatchParams::apply(FIELD_MANAGER).force();
    Ok(api
        .patch(&object.name_any(), &params, &Patch::Apply(&object))
        .await?)
}

/// Discovery lags behind a CRD that was established just now.
async fn discover(
    client: &Client,
    kind: &GroupVersionKind,
) -> anyhow::Result<(ApiResource, ApiCapabilities)> {
    let deadline = Instant::now() + CRD_LIMIT;
    loop {
        match oneshot::pinned_kind(client, kind).await {
            Ok(found) => return Ok(found),
            Err(error) if Instant::now() > deadline => {
                return Err(error).with_context(|| format!("the API server serves no {kind:?}"));
            }
            Err(_) => sleep(LOOK).await,
        }
    }
}

/// A list without a selector may be read from etcd, one with it only from the cache.
async fn until_listed(api: Api<DynamicObject>) {
    let selected = ListParams::default().labels("no=body");
    while api.list_metadata(&selected).await.is_err() {
        sleep(LOOK).await;
    }
}

async fn established(client: &Client, name: &str) -> CustomResourceDefinition {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    loop {
        if let Ok(crd) = crds.get(name).await
            && is_established(&crd)
        {
            return crd;
        }
        sleep(LOOK).await;
    }
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}

fn is_crd(object: &DynamicObject) -> bool {
    object
        .types
        .as_ref()
        .is_some_and(|types| types.kind == "CustomResourceDefinition")
}

fn describe(object: &DynamicObject) -> String {
    let kind = object
        .types
        .as_ref()
        .map_or("object", |types| types.kind.as_str());
    format!("{kind} {}", object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_hold_only_comments_are_skipped() {
        let objects = parse(
            "# head\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n# tail\n",
        )
        .unwrap();
        assert_eq!(
            objects.iter().map(describe).collect::<Vec<_>>(),
            ["Namespace a"]
        );
    }

    #[test]
    fn a_folder_without_manifests_is_an_error_and_not_an_empty_success() {
        let folder = tempfile::tempdir().unwrap();
        let error = yaml_files(folder.path()).unwrap_err();
        assert!(error.to_string().ends_with("has no .yaml file"), "{error}");
    }
}
