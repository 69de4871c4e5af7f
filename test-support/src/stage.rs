//! A stage for a controller's tests: an API server of its own, the CRDs, rights, and the real binary.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot set its stage has failed"
)]

mod another;
mod asked;
mod controller_user;
mod go;
mod history;
mod particulars;
mod port;
mod reconciled;
mod rights;
mod tenant;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

pub use another::Another;
pub use history::{History, Reports, Versions};
pub use particulars::Particulars;
pub use port::Port;
pub use reconciled::Run;
pub use tenant::{Tenant, forged_copy};

use crate::control_plane::Lent;
use crate::scrape::{idle, metric};
use crate::{ControlPlane, Process, eventually, objects_in};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectList;
use serde_json::{Value, json};

/// Long enough for a loaded machine, and for what is only looked at again after a minute. Tests wait for states, so a fast
/// machine never waits this long.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// What is expected where nothing is requested, or told.
pub const NOTHING: [String; 0] = [];

/// Kinds of which tests stamp objects.
const TEST_KIND: &str = include_str!("../fixtures/test-crd.yaml");
const TYPED_KIND: &str = include_str!("../fixtures/typed-crd.yaml");

/// The controller that a stage is for.
#[derive(Debug, Clone, Copy)]
pub struct Cast {
    /// The binary.
    pub binary: &'static str,
    /// How its requests are told apart; the start of its user agent.
    pub user_agent: &'static str,
    /// The group and version of the kind that it reconciles.
    pub api_version: &'static str,
    /// The kind it reconciles.
    pub owner_kind: &'static str,
}

impl Cast {
    /// Whether it stamps objects for owners; it needs ytt then.
    fn stamps(&self) -> bool {
        self.api_version.starts_with("carto.run/")
    }

    /// Where the definitions of its kinds are.
    fn crds(&self) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        root.join(if self.stamps() {
            "../deploy/crds"
        } else {
            "../deploy/conventions/crds"
        })
    }

    /// Has its kinds served, and those that tests stamp.
    async fn define(&self, plane: &ControlPlane) -> anyhow::Result<()> {
        plane.install_crds(self.crds()).await?;
        for kind in [TEST_KIND, TYPED_KIND] {
            plane.apply_yaml(kind).await?;
        }
        Ok(())
    }
}

/// One test's API server and controller.
pub struct Stage {
    // Dropped first: the API server may be lent to another test then.
    controller: Option<Process>,
    /// The API server.
    pub plane: Lent,
    /// An administrator's requests.
    pub client: kube::Client,
    /// Where the test's objects are.
    pub namespace: String,
    cast: Cast,
    starts: u32,
    metrics: Port,
    touches: AtomicU32,
}

impl Stage {
    /// Everything but the controller.
    pub async fn set(cast: Cast) -> Self {
        let define = async |plane: &ControlPlane| cast.define(plane).await;
        Self::of(cast, Lent::with(&cast.crds(), define).await.unwrap()).await
    }

    /// Everything but the controller, on this control plane.
    pub async fn on(cast: Cast, plane: ControlPlane) -> Self {
        cast.define(&plane).await.unwrap();
        Self::of(cast, plane.into()).await
    }

    /// On a control plane that has the definitions.
    async fn of(cast: Cast, plane: Lent) -> Self {
        let stage = Self {
            controller: None,
            client: plane.client().unwrap(),
            namespace: plane.create_namespace("dev").await.unwrap(),
            plane,
            cast,
            starts: 0,
            metrics: Port::reserve(),
            touches: AtomicU32::new(0),
        };
        stage.apply_rights().await;
        stage
    }

    /// Goes on in another namespace, with the same rights there.
    pub async fn move_to_new_namespace(&mut self) {
        self.namespace = self.plane.create_namespace("dev").await.unwrap();
        self.apply_rights().await;
    }

    /// With the controller.
    pub async fn open(cast: Cast) -> Self {
        let mut stage = Self::set(cast).await;
        stage.start_controller();
        stage
    }

    /// Starts the controller as an administrator.
    pub fn start_controller(&mut self) {
        self.start_controller_with(&Particulars::default());
    }

    /// With the identity in this kubeconfig.
    pub fn start_controller_as(&mut self, kubeconfig: &Path) {
        self.start_controller_with(&Particulars {
            kubeconfig: Some(kubeconfig),
            ..Particulars::default()
        });
    }

    /// One more process, which the caller ends by dropping it.
    pub fn another_controller(&mut self) -> Another {
        self.another_controller_with(&[])
    }

    /// The same with these flags.
    pub fn another_controller_with(&mut self, flags: &[&str]) -> Another {
        self.another_controller_as(&Particulars {
            flags,
            ..Particulars::default()
        })
    }

    fn log_file(&self, start: u32) -> PathBuf {
        self.plane.folder().join(format!("controller-{start}.log"))
    }

    /// What the controller has logged since the beginning, over all starts.
    pub fn log(&self) -> String {
        (1..=self.starts)
            .map(|start| std::fs::read_to_string(self.log_file(start)).unwrap())
            .collect()
    }

    /// The process.
    pub fn controller_pid(&self) -> u32 {
        self.controller.as_ref().unwrap().pid()
    }

    /// kill -9.
    pub fn kill_controller(&mut self) {
        if let Some(mut controller) = self.controller.take() {
            controller.kill();
        }
    }

    /// Applies manifests, in the namespace where they name none.
    pub async fn apply(&self, yaml: &str) {
        self.plane
            .apply_yaml_in(&self.namespace, yaml)
            .await
            .unwrap();
    }

    /// Requests for a kind in the namespace.
    pub fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        objects_in(&self.client, &self.namespace, api_version, kind)
    }

    /// The object with this name.
    pub async fn get(&self, api_version: &str, kind: &str, name: &str) -> Option<Value> {
        let object = self.api(api_version, kind).get_opt(name).await.unwrap()?;
        Some(serde_json::to_value(object).unwrap())
    }

    /// The owner with this name.
    pub async fn owner(&self, name: &str) -> Value {
        self.get(self.cast.api_version, self.cast.owner_kind, name)
            .await
            .unwrap()
    }

    /// What a third-party controller would report.
    pub async fn report(&self, name: &str, status: Value) {
        let api = self.api("test.run/v1alpha1", "Test");
        api.patch_status(
            name,
            &PatchParams::apply("downstream").force(),
            &Patch::Apply(json!({
            "apiVersion": "test.run/v1alpha1", "kind": "Test", "status": status})),
        )
        .await
        .unwrap();
    }

    /// Waits until the owner's Ready condition has this status and reason.
    pub async fn ready(&self, name: &str, status: &str, reason: &str) -> Value {
        eventually(
            &format!(
                "{} {name} is Ready={status}, {reason}",
                self.cast.owner_kind
            ),
            PATIENCE,
            async || {
                let owner = self.owner(name).await;
                let ready = condition(&owner["status"], "Ready");
                if ready["status"] == status && ready["reason"] == reason {
                    Ok(Some(owner))
                } else {
                    Err(owner["status"].to_string())
                }
            },
        )
        .await
    }

    /// The sum over a metric's series that have all these labels; see [`crate::sum_of`].
    pub async fn metric(&self, name: &str, labels: &[&str]) -> Option<f64> {
        metric(self.metrics.number(), name, labels).await
    }

    /// Waits until no owner or blueprint is being reconciled or about to be.
    pub async fn idle(&self) {
        idle(self.metrics.number()).await;
    }

    /// The same of another process.
    pub async fn idle_of(&self, another: &Another) {
        idle(another.metrics.number()).await;
    }

    /// A merge patch by somebody.
    pub async fn edit(&self, api_version: &str, kind: &str, name: &str, patch: Value) {
        self.edited(api_version, kind, name, patch).await;
    }

    /// The same; the object as it is then.
    async fn edited(&self, api_version: &str, kind: &str, name: &str, patch: Value) -> Value {
        let by_somebody = PatchParams {
            field_manager: Some("somebody".into()),
            ..PatchParams::default()
        };
        self.api(api_version, kind)
            .patch(name, &by_somebody, &Patch::Merge(patch))
            .await
            .map(|object| serde_json::to_value(object).unwrap())
            .unwrap()
    }

    /// The same for an owner.
    pub async fn edit_owner(&self, name: &str, patch: Value) {
        self.edit(self.cast.api_version, self.cast.owner_kind, name, patch)
            .await;
    }

    /// Writes the status of an owner, as only controllers may.
    pub async fn set_owner_status(&self, name: &str, status: Value) {
        let api = self.api(self.cast.api_version, self.cast.owner_kind);
        // Lists are replaced as a whole.
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Deletes an object.
    pub async fn delete(&self, api_version: &str, kind: &str, name: &str) {
        self.api(api_version, kind)
            .delete(name, &DeleteParams::background())
            .await
            .unwrap();
    }

    /// Creates an object as another controller would.
    pub async fn create_as(&self, field_manager: &str, object: Value) -> Value {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap();
        let api = self.api(text("/apiVersion"), text("/kind"));
        let by = PostParams {
            field_manager: Some(field_manager.into()),
            ..PostParams::default()
        };
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        serde_json::to_value(api.create(&by, &object).await.unwrap()).unwrap()
    }

    /// The objects of a kind in the namespace, oldest submission first.
    pub async fn all(&self, api_version: &str, kind: &str) -> Vec<Value> {
        self.all_in(&self.namespace, api_version, kind).await
    }

    /// The same in another namespace.
    pub async fn all_in(&self, namespace: &str, api_version: &str, kind: &str) -> Vec<Value> {
        let listed = listed(&objects_in(&self.client, namespace, api_version, kind)).await;
        let mut objects: Vec<Value> = listed
            .into_iter()
            .map(|object| serde_json::to_value(object).unwrap())
            .collect();
        objects.sort_by_key(|object| {
            let annotation = object["metadata"]["annotations"]["carto.run/submission"].as_str();
            annotation.map_or(0, |text| text.parse::<u64>().unwrap())
        });
        objects
    }

    /// The objects of the kind that stands for a third party, oldest submission first.
    pub async fn tests(&self) -> Vec<Value> {
        self.all("test.run/v1alpha1", "Test").await
    }

    /// The events so far, each as often as it was told: `type reason: message`.
    pub async fn events(&self) -> Vec<String> {
        let events = self.all("v1", "Event").await;
        events.iter().flat_map(told).collect()
    }

    /// Waits until the owner is as described by `probe`, which says what it sees instead.
    pub async fn until(&self, name: &str, what: &str, probe: impl Fn(&Value) -> bool) -> Value {
        eventually(
            &format!("{} {name}: {what}", self.cast.owner_kind),
            PATIENCE,
            async || {
                let seen = self.owner(name).await;
                if probe(&seen) {
                    Ok(Some(seen))
                } else {
                    Err(seen["status"].to_string())
                }
            },
        )
        .await
    }
}

/// What an event says, once for each time that it was counted up.
fn told(event: &Value) -> impl Iterator<Item = String> {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    let says = format!("{} {}: {}", text("type"), text("reason"), text("message"));
    let times = event["count"].as_u64().unwrap_or(1);
    (0..times).map(move |_| says.clone())
}

async fn listed(api: &Api<DynamicObject>) -> ObjectList<DynamicObject> {
    // Just after a definition was installed, the server's cache of its kind is not filled yet.
    let awaited = format!("{} are listed", api.resource_url());
    eventually(&awaited, PATIENCE, async || {
        api.list(&ListParams::default()).await.map(Some)
    })
    .await
}

impl Drop for Stage {
    /// A test that fails shows what the controller logged last; its folder is gone afterwards.
    #[expect(clippy::print_stderr, reason = "it is read with the test's output")]
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(controller) = &self.controller
        {
            eprintln!("the controller logged at last:\n{}", controller.log_tail());
        }
    }
}

/// The entry of a step in an owner's status, or null.
pub fn step(owner: &Value, name: &str) -> Value {
    let entries = owner["status"]["resources"].as_array().cloned();
    entries
        .unwrap_or_default()
        .into_iter()
        .find(|entry| entry["name"] == name)
        .unwrap_or_default()
}

/// The types of the conditions in a status, in their order.
pub fn condition_types(status: &Value) -> Vec<&str> {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions
        .filter_map(|condition| condition["type"].as_str())
        .collect()
}

/// The condition of a type, or null.
pub fn condition(status: &Value, condition_type: &str) -> Value {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions
        .into_iter()
        .find(|condition| condition["type"] == condition_type)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_was_counted_up_was_told_so_often() {
        let event = |count: Value| json!({"type": "Warning", "reason": "R", "message": "m", "count": count});
        let times = |count| told(&event(count)).collect::<Vec<_>>();
        assert_eq!(times(json!(1)), ["Warning R: m"]);
        assert_eq!(times(json!(3)), ["Warning R: m"; 3]);
        // Nobody counts those of other components.
        assert_eq!(times(Value::Null), ["Warning R: m"]);
    }
}
