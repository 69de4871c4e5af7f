//! Restarts who owns pods that carry older presets, if the operator and whoever wrote the owner both
//! asked for it.
//!
//! ```text
//! pods that are stale ─▶ their owners ─▶ (those that want it) ─▶ GET ─▶ one annotation of the template
//!    stale.rs              watched                                        the digest of its presets
//! ```
//!
//! Pods say themselves what they carry and whose they are, so a tenant can claim both for any owner of
//! his namespace. What decides is the owner as the API server has it: it is restarted once for each set
//! of presets that select its template, whatever pods say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_types::EventReason;
use controller_kit::cluster::{Call, Cluster, Identity, RequestError, chain};
use controller_kit::events::{EventRecorder, InvolvedObject};
use controller_kit::metrics::Metrics;
use controller_kit::process::Process;
use controller_kit::reflect::{Entry, Reflector, Watched};
use controller_kit::stamped::ObjectKey;
use parking_lot::Mutex;
use pod_presets::StaleOwner;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use super::entries::{labels_of, text};
use super::template::TemplatePresets;

/// Annotation of an owner that is to be restarted, if it is exactly `true`.
const WANTED: &str = "settings.carto.run/restart-on-preset-change";
/// Annotation of a template: the digest of the presets that it was restarted for.
const RESTARTED_FOR: &str = "settings.carto.run/presets";
/// For this long nothing may have changed: by then every replica knows it, and who edits several
/// presets makes one restart of it.
const SETTLED: Duration = Duration::from_secs(30);
/// After this what is stale is looked at again.
const ROUND: Duration = Duration::from_secs(10);
/// Kinds that roll their pods out again when their template changes.
const KINDS: [Watched; 3] = [
    kind("Deployment", "deployments"),
    kind("StatefulSet", "statefulsets"),
    kind("DaemonSet", "daemonsets"),
];

const fn kind(kind: &'static str, plural: &'static str) -> Watched {
    Watched {
        group: "apps",
        version: "v1",
        kind,
        plural,
    }
}

/// How often presets, or the labels of namespaces, have changed, and when that was last.
pub(super) struct Epoch(Mutex<(u64, Instant)>);

impl Default for Epoch {
    fn default() -> Self {
        Self(Mutex::new((0, Instant::now())))
    }
}

impl Epoch {
    /// Something changed.
    pub(super) fn begin(&self) {
        let mut last = self.0.lock();
        *last = (last.0 + 1, Instant::now());
    }

    /// Nothing if it was a moment ago.
    fn settled(&self) -> Option<u64> {
        let (epoch, since) = *self.0.lock();
        (since.elapsed() >= SETTLED).then_some(epoch)
    }
}

/// What is kept of an owner.
pub(super) struct OwnerEntry {
    generation: i64,
    is_wanted: bool,
}

impl Entry for OwnerEntry {
    fn build(object: Value) -> Self {
        Self {
            generation: object["metadata"]["generation"]
                .as_i64()
                .unwrap_or_default(),
            is_wanted: is_wanted(&object),
        }
    }
}

fn is_wanted(owner: &Value) -> bool {
    owner["metadata"]["annotations"][WANTED] == "true"
}

/// Restarts owners of stale pods.
pub(super) struct Restarter {
    cluster: Cluster,
    metrics: Arc<Metrics>,
    field_manager: &'static str,
    presets: TemplatePresets,
    events: EventRecorder,
    epoch: Arc<Epoch>,
    owners: [Arc<Reflector<OwnerEntry>>; 3],
    /// What was looked at: the generation of the owner, and the epoch.
    seen: Mutex<BTreeMap<StaleOwner, (i64, u64)>>,
    /// Between two restarts.
    apart: Duration,
}

impl Restarter {
    /// Restarts no more than that many owners in a minute.
    pub(super) fn new(
        process: &Process,
        presets: TemplatePresets,
        events: EventRecorder,
        epoch: Arc<Epoch>,
        per_minute: u32,
    ) -> Self {
        Self {
            cluster: process.cluster.clone(),
            metrics: process.metrics.clone(),
            field_manager: process.program.field_manager,
            presets,
            events,
            epoch,
            owners: Default::default(),
            seen: Mutex::default(),
            apart: Duration::from_mins(1) / per_minute.max(1),
        }
    }

    /// Follows owners, and restarts those that are found, until the process ends.
    pub(super) async fn keep(
        &self,
        process: &Process,
        stale: watch::Receiver<Arc<BTreeSet<StaleOwner>>>,
    ) {
        let following = KINDS.iter().zip(&self.owners).map(|(kind, store)| {
            let events = kind.metadata(process.cluster.controller().clone());
            let cancel = process.tasks.token().clone();
            store.clone().follow(events, cancel, |_| {})
        });
        tokio::select! {
            _ = futures::future::join_all(following) => {}
            () = self.restart_all(stale) => {}
        }
    }

    async fn restart_all(&self, stale: watch::Receiver<Arc<BTreeSet<StaleOwner>>>) {
        loop {
            tokio::time::sleep(ROUND).await;
            let owners = stale.borrow().clone();
            self.seen.lock().retain(|owner, _| owners.contains(owner));
            for owner in &*owners {
                let leads = self.metrics.term().is_some();
                let Some(epoch) = self.epoch.settled().filter(|_| leads) else {
                    break;
                };
                match self.look_at(owner, epoch).await {
                    Ok(true) => tokio::time::sleep(self.apart).await,
                    Ok(false) => {}
                    // The API server has trouble: the others would only add to it.
                    Err(()) => break,
                }
            }
        }
    }

    /// Whether it was restarted.
    async fn look_at(&self, owner: &StaleOwner, epoch: u64) -> Result<bool, ()> {
        let at = KINDS.iter().position(|kind| kind.kind == owner.kind);
        let Some((kind, store)) = at.map(|at| (KINDS[at], &self.owners[at])) else {
            return Ok(false);
        };
        let entry = store.get(&ObjectKey::new(&owner.namespace, &owner.name));
        let Some(entry) = entry.filter(|it| it.is_wanted) else {
            return Ok(false);
        };
        let version = (entry.generation, epoch);
        if self.seen.lock().get(owner) == Some(&version) {
            return Ok(false);
        }
        match self.restart(kind, owner).await {
            Ok(restarted) => {
                self.seen.lock().insert(owner.clone(), version);
                Ok(restarted)
            }
            Err(error) => match Trouble::of(&error) {
                Trouble::Outrun => Ok(false),
                Trouble::OfThisOne => {
                    not_restarted(owner, &error);
                    self.seen.lock().insert(owner.clone(), version);
                    Ok(false)
                }
                Trouble::OfTheServer => {
                    not_restarted(owner, &error);
                    Err(())
                }
            },
        }
    }

    async fn restart(&self, kind: Watched, owner: &StaleOwner) -> Result<bool, RequestError> {
        let path = kind.path(Some(&owner.namespace), &owner.name);
        let read = self.cluster.send(Identity::Controller, Call::get(&path));
        let object = read.await?.body;
        let labels = labels_of(&object["spec"]["template"]);
        let Ok(selected) = self.presets.select(&owner.namespace, &labels) else {
            return Ok(false);
        };
        let Some(operations) = restart_of(&object, &selected.digest()) else {
            return Ok(false);
        };
        let call = Call::json_patch(&path, self.field_manager, &operations);
        self.cluster.send(Identity::Controller, call).await?;
        let StaleOwner {
            namespace, name, ..
        } = owner;
        info!(
            kind = kind.kind,
            namespace, name, "restarted for its presets"
        );
        let uid = text(&object["metadata"]["uid"]);
        let involved = InvolvedObject::of(kind, namespace, name, uid);
        let (reason, message) = (
            EventReason::PresetRestart.as_str(),
            "Restarted: pods carried older versions of their presets",
        );
        self.events.record(involved, false, reason, message);
        Ok(true)
    }
}

fn not_restarted(owner: &StaleOwner, error: &RequestError) {
    let StaleOwner {
        kind,
        namespace,
        name,
        ..
    } = owner;
    warn!(kind, namespace, name, error = %chain(error), "not restarted");
}

/// What an error is about.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    /// Somebody wrote the owner meanwhile, or it is gone: the watch brings what is now.
    Outrun,
    /// It is refused, by a policy of somebody's for instance, and would be again until it changes.
    OfThisOne,
    OfTheServer,
}

impl Trouble {
    fn of(error: &RequestError) -> Self {
        match error.code().map(|code| code.as_u16()) {
            Some(404 | 409 | 422) => Self::Outrun,
            Some(code) if code < 500 && !matches!(code, 401 | 429) => Self::OfThisOne,
            _ => Self::OfTheServer,
        }
    }
}

/// The operations that restart an owner whose template has presets with this digest; nothing if it
/// does not want that, or was restarted for them.
fn restart_of(owner: &Value, digest: &str) -> Option<Value> {
    let metadata = &owner["metadata"];
    let annotations = &owner["spec"]["template"]["metadata"]["annotations"];
    let is_due = is_wanted(owner)
        && metadata["deletionTimestamp"].is_null()
        && annotations[RESTARTED_FOR] != digest;
    let at = "/spec/template/metadata/annotations";
    let added = if annotations.is_object() {
        let key = RESTARTED_FOR.replace('/', "~1");
        json!({"op": "add", "path": format!("{at}/{key}"), "value": digest})
    } else {
        json!({"op": "add", "path": at, "value": {RESTARTED_FOR: digest}})
    };
    is_due.then(|| {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
            added,
        ])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(wanted: &str, annotations: &Value) -> Value {
        json!({
            "metadata": {"uid": "u", "resourceVersion": "7", "annotations": {WANTED: wanted}},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}, "annotations": annotations}}},
        })
    }

    fn patched(mut owner: Value, digest: &str) -> Option<Value> {
        let operations = restart_of(&owner, digest)?;
        let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
        json_patch::patch(&mut owner, &patch).unwrap();
        Some(owner["spec"]["template"]["metadata"]["annotations"].take())
    }

    #[test]
    fn an_owner_is_restarted_once_for_its_presets_and_only_if_it_says_so() {
        let new = json!({RESTARTED_FOR: "d2"});
        assert_eq!(patched(owner("true", &Value::Null), "d2"), Some(new));
        let before = json!({"own": "1", RESTARTED_FOR: "d1"});
        let after = json!({"own": "1", RESTARTED_FOR: "d2"});
        assert_eq!(patched(owner("true", &before), "d2"), Some(after));
        assert_eq!(patched(owner("true", &before), "d1"), None);
        assert_eq!(patched(owner("yes", &before), "d2"), None);
        let mut deleted = owner("true", &before);
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(patched(deleted, "d2"), None);
    }

    #[test]
    fn an_owner_that_cannot_be_restarted_keeps_no_other_from_it() {
        let of = |code: u16| {
            let status = json!({"status": "Failure", "message": "no", "reason": "", "code": code});
            Trouble::of(&RequestError::Refused {
                code: code.try_into().unwrap(),
                status: Box::new(serde_json::from_value(status).unwrap()),
                retry_after: None,
            })
        };
        assert_eq!([403, 400].map(of), [Trouble::OfThisOne, Trouble::OfThisOne]);
        assert_eq!(
            [404, 409, 422].map(of).map(|it| it == Trouble::Outrun),
            [true; 3]
        );
        let of_server = [401, 429, 500, 503].map(of);
        assert_eq!(of_server.map(|it| it == Trouble::OfTheServer), [true; 4]);
        let silent = RequestError::Transport("reset".to_owned());
        assert_eq!(Trouble::of(&silent), Trouble::OfTheServer);
    }

    #[tokio::test(start_paused = true)]
    async fn what_changed_a_moment_ago_restarts_nobody_yet() {
        let epoch = Epoch::default();
        epoch.begin();
        assert_eq!(epoch.settled(), None);
        tokio::time::advance(SETTLED / 2).await;
        epoch.begin();
        tokio::time::advance(SETTLED / 2).await;
        assert_eq!(epoch.settled(), None);
        tokio::time::advance(SETTLED / 2).await;
        assert_eq!(epoch.settled(), Some(2));
    }
}
