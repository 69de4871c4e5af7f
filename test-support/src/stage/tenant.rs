//! Somebody who may edit the namespace of the tests, and no more: what the product must not believe, he can write.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test whose tenant cannot act has failed"
)]

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::Stage;
use crate::objects_in;

/// The ClusterRole that is shipped for people who may edit a namespace.
const SHIPPED: &str = "cartographer-user-admin";

/// A user with the rights that are shipped for people, and those to edit what is stamped; none to any status.
pub struct Tenant {
    client: kube::Client,
    user: String,
    namespace: String,
}

impl Stage {
    /// A tenant of the present namespace.
    pub async fn tenant(&self) -> Tenant {
        let namespace = self.namespace.clone();
        self.tenant_of(&namespace).await
    }

    /// A tenant of another namespace, who may only read here.
    pub async fn tenant_of(&self, namespace: &str) -> Tenant {
        let user = format!("tenant-of-{namespace}");
        let rules = shipped_rules();
        let manifest = format!(
            r"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: tenant}}
rules:
  - {{apiGroups: [test.run], resources: [tests], verbs: [get, list, watch, create, update, patch, delete]}}
  - {{apiGroups: [''], resources: [configmaps, secrets], verbs: [get, list, watch, create, update, patch, delete]}}
{rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: tenant}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]
"
        );
        self.plane
            .apply_yaml_in(namespace, &manifest)
            .await
            .unwrap();
        for right in [
            "patch tests.test.run",
            "create configmaps",
            "patch workloads.carto.run",
            "patch deliverables.carto.run",
        ] {
            self.plane
                .until_it_may(&user, &format!("{right} in {namespace}"))
                .await;
        }
        Tenant {
            client: self.plane.client_as_user(&user, &[]).unwrap(),
            user,
            namespace: namespace.to_owned(),
        }
    }
}

/// As in `deploy/install.yaml`.
fn shipped_rules() -> String {
    let manifest = include_str!("../../../deploy/install.yaml");
    let role = manifest
        .split("---")
        .find(|document| document.contains(&format!("name: {SHIPPED}\n")))
        .unwrap();
    let (_, rules) = role.split_once("rules:\n").unwrap();
    assert!(rules.contains("workloads"), "{rules}");
    rules.to_owned()
}

/// Somebody else's copy of a stamped object, which says of itself that it is the newest there will ever be.
#[must_use]
pub fn forged_copy(object: &Value, name: &str) -> Value {
    let mut copy = object.clone();
    let metadata = copy["metadata"].as_object_mut().unwrap();
    for field in [
        "managedFields",
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "generation",
    ] {
        metadata.remove(field);
    }
    copy.as_object_mut().unwrap().remove("status");
    copy["metadata"]["name"] = json!(name);
    copy["metadata"]["annotations"]["carto.run/submission"] = json!("999999");
    copy["metadata"]["annotations"]["carto.run/owner-generation"] = json!("999999");
    copy
}

impl Tenant {
    /// The name of the user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// A merge patch.
    ///
    /// # Errors
    ///
    /// When the API server refuses it.
    pub async fn patch(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        patch: Value,
    ) -> kube::Result<Value> {
        let api = self.api(api_version, kind);
        let patched = api
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(serde_json::to_value(patched).unwrap())
    }

    /// A forced apply under whatever name: field managers are free text.
    ///
    /// # Errors
    ///
    /// When the API server refuses it.
    pub async fn apply_as(&self, field_manager: &str, object: &Value) -> kube::Result<Value> {
        let (api, name) = self.place(object);
        let params = PatchParams::apply(field_manager).force();
        let applied = api.patch(&name, &params, &Patch::Apply(object)).await?;
        Ok(serde_json::to_value(applied).unwrap())
    }

    /// A merge patch under whatever name.
    ///
    /// # Errors
    ///
    /// When the API server refuses it.
    pub async fn patch_as(&self, field_manager: &str, object: &Value) -> kube::Result<Value> {
        let (api, name) = self.place(object);
        let params = PatchParams {
            field_manager: Some(field_manager.into()),
            ..PatchParams::default()
        };
        let patched = api.patch(&name, &params, &Patch::Merge(object)).await?;
        Ok(serde_json::to_value(patched).unwrap())
    }

    /// Creates an object.
    ///
    /// # Errors
    ///
    /// When the API server refuses it.
    pub async fn create(&self, object: Value) -> kube::Result<Value> {
        let (api, _) = self.place(&object);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let created = api.create(&PostParams::default(), &object).await?;
        Ok(serde_json::to_value(created).unwrap())
    }

    /// Writes a status, which no tenant may.
    ///
    /// # Errors
    ///
    /// When the API server refuses it, as it should.
    pub async fn patch_status(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        patch: Value,
    ) -> kube::Result<()> {
        let api = self.api(api_version, kind);
        let patched = api
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.map(|_| ())
    }

    fn place(&self, object: &Value) -> (Api<DynamicObject>, String) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let api = self.api(text("/apiVersion").unwrap(), text("/kind").unwrap());
        (api, text("/metadata/name").unwrap_or_default().to_owned())
    }

    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        objects_in(&self.client, &self.namespace, api_version, kind)
    }
}
