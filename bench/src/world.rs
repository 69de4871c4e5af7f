//! The control plane that everything is measured on, and what the bench sees of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use test_support::{ControlPlane, Scratch};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::{
    ACCOUNTS, Api, CLUSTER_ROLES, CONFIG_MAPS, DEFINITIONS, NAMESPACES, ROLE_BINDINGS, STEPS,
    TEMPLATES, step_definition,
};
use crate::audit::AuditLog;
use crate::census::Census;
use crate::downstream::{Pending, answer};
use crate::family::{Family, RUNNABLE};
use crate::layout::namespaces;
use crate::objects::{
    account, chain, role, role_binding, run_status, step_crd, step_status, template,
};
use crate::observe::observe;
use crate::pace::Pace;
use crate::proc_stat::{processes_naming, usage};
use crate::seen::{OwnerSeen, Step};
use crate::tally::{Agent, CLIENT_AGENT, DOWNSTREAM_AGENT, OBSERVER_AGENT, Tally};
use crate::workers::each;

/// How long anything may take before the bench gives up.
pub(crate) const LIMIT: Duration = Duration::from_mins(15);
/// A sender that asked nothing for this long has come to rest. Longer than the controller holds a status back (250 ms).
const QUIET: Duration = Duration::from_secs(1);
const CONTROL_PLANE_LIMIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);
const SETUP_IN_FLIGHT: usize = 16;

/// A running control plane with the bench's kinds, and the bench's watches on it.
pub(crate) struct World {
    // Dropped in this order: the watches before what they watch.
    _tasks: JoinSet<()>,
    /// Stamped objects.
    pub(crate) steps: Arc<Census<Step>>,
    /// Owners of the family.
    pub(crate) owners: Arc<Census<OwnerSeen>>,
    /// What is measured here.
    pub(crate) family: &'static Family,
    /// The bench as a user, and as the bare client.
    pub(crate) client: Api,
    /// Of the machine, since the world began.
    pub(crate) pace: Pace,
    audit: AuditLog,
    plane: ControlPlane,
    home: Scratch,
}

impl World {
    /// Starts it, its API server with these further arguments.
    ///
    /// # Errors
    ///
    /// When the control plane does not start.
    pub(crate) async fn start(
        family: &'static Family,
        api_server_args: &[String],
    ) -> anyhow::Result<Self> {
        let home = Scratch::new("carto-bench-")?;
        let data = home.path().join("plane");
        // Garbage collection learns of kinds when it starts, and then only every 30 s; so they are there before it.
        let plane = ControlPlane::builder().data_dir(&data).start().await?;
        define_kinds(&Api::connect(&plane, CLIENT_AGENT)?).await?;
        drop(plane);
        let plane = ControlPlane::builder()
            .data_dir(&data)
            .controller_manager(true)
            .audit()
            .extra_apiserver_args(api_server_args)
            .start()
            .await?;
        let client = Api::connect(&plane, CLIENT_AGENT)?;
        let mut tasks = JoinSet::new();
        let (steps, owners) = watch_all(family, &plane, &mut tasks)?;
        let audit = AuditLog::new(plane.folder().join("audit.log"));
        Ok(Self {
            _tasks: tasks,
            steps,
            owners,
            family,
            client,
            pace: Pace::start(),
            audit,
            plane,
            home,
        })
    }

    /// The control plane.
    pub(crate) fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// A folder that goes with this value.
    pub(crate) fn home(&self) -> &Scratch {
        &self.home
    }

    /// Makes the namespaces of so many owners, each with a ServiceAccount and its rights, and waits until the control
    /// plane has done its own part in them.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub(crate) async fn furnish(&self, prefix: &str, owners: usize) -> anyhow::Result<()> {
        let namespaces = namespaces(prefix, owners);
        let client = self.client.clone();
        each(SETUP_IN_FLIGHT, namespaces.clone(), move |namespace| {
            let client = client.clone();
            async move { furnish(&client, &namespace).await }
        })
        .await?;
        let deadline = Instant::now() + LIMIT;
        while self.published(prefix).await? < namespaces.len() {
            ensure!(
                Instant::now() < deadline,
                "kube-controller-manager does not furnish the namespaces"
            );
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Namespaces that have got their ConfigMap, which is the last thing the control plane does in a new one.
    async fn published(&self, prefix: &str) -> anyhow::Result<usize> {
        let field = "fieldSelector=metadata.name%3Dkube-root-ca.crt";
        let maps = self
            .client
            .read(&format!("{}?{field}", CONFIG_MAPS.everywhere()))
            .await?;
        let in_ours = |map: &&Value| {
            let namespace = map["metadata"]["namespace"].as_str().unwrap_or_default();
            namespace
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with('-'))
        };
        Ok(maps["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(in_ours)
            .count())
    }

    /// Makes the templates and the chain.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub(crate) async fn write_blueprint(&self, steps: u8) -> anyhow::Result<()> {
        for step in 1..=steps {
            self.client
                .create(&TEMPLATES.everywhere(), &template(self.family, step))
                .await?;
        }
        self.client
            .create(
                &self.family.blueprints.everywhere(),
                &chain(self.family, steps),
            )
            .await?;
        Ok(())
    }

    /// Removes all owners and stamped objects of so many owners; nothing is left to garbage collection.
    ///
    /// # Errors
    ///
    /// When they do not go.
    pub(crate) async fn clear(&self, prefix: &str, owners: usize) -> anyhow::Result<()> {
        for kind in [STEPS, self.family.owners] {
            let client = self.client.clone();
            each(
                SETUP_IN_FLIGHT,
                namespaces(prefix, owners),
                move |namespace| {
                    let client = client.clone();
                    async move { client.delete_all(&kind.within(&namespace)).await }
                },
            )
            .await?;
        }
        self.steps
            .emptied("all stamped objects are gone", LIMIT)
            .await?;
        self.owners.emptied("all owners are gone", LIMIT).await
    }

    /// Forgets the requests so far.
    ///
    /// # Errors
    ///
    /// When the audit log cannot be read.
    pub(crate) fn forget_requests(&mut self) -> anyhow::Result<()> {
        self.audit.drain().map(drop)
    }

    /// Waits until a sender has come to rest, and returns all requests of all senders since [`World::forget_requests`].
    ///
    /// # Errors
    ///
    /// When it never rests, or the audit log cannot be read.
    pub(crate) async fn requests_until_rest(&mut self, agent: Agent) -> anyhow::Result<Tally> {
        let (requests, rests) = self.watch_for_rest(agent, LIMIT).await?;
        ensure!(rests, "{agent:?} does not come to rest");
        Ok(requests)
    }

    /// Gives garbage collection and the like time to end, before something else is measured.
    ///
    /// # Errors
    ///
    /// When the audit log cannot be read.
    pub(crate) async fn let_control_plane_rest(&mut self) -> anyhow::Result<()> {
        // It never rests for long; what is under way every few seconds is no burden.
        self.watch_for_rest(Agent::Other, CONTROL_PLANE_LIMIT)
            .await
            .map(drop)
    }

    async fn watch_for_rest(
        &mut self,
        agent: Agent,
        limit: Duration,
    ) -> anyhow::Result<(Tally, bool)> {
        let deadline = Instant::now() + limit;
        let mut requests = Tally::default();
        let mut last = Instant::now();
        while last.elapsed() < QUIET {
            let new = self.audit.drain()?;
            if new.of(agent).sum() > 0 {
                last = Instant::now();
            }
            requests.merge(new);
            if Instant::now() > deadline {
                return Ok((requests, false));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok((requests, true))
    }

    /// Copies the audit log, which goes with the control plane.
    ///
    /// # Errors
    ///
    /// When it cannot be copied.
    pub(crate) fn keep_audit_log(&self, to: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(to.parent().unwrap_or(to))?;
        std::fs::copy(self.audit.path(), to).with_context(|| to.display().to_string())?;
        Ok(())
    }

    /// CPU time so far, in seconds, of each part of the control plane, of the bench, and of the controller if it runs.
    ///
    /// # Errors
    ///
    /// When one of them has ended.
    pub(crate) fn cpu_seconds(
        &self,
        controller: Option<u32>,
    ) -> anyhow::Result<BTreeMap<String, f64>> {
        let mut processes = processes_naming(self.plane.folder());
        processes.push(("bench".to_owned(), std::process::id()));
        processes.extend(controller.map(|pid| ("controller".to_owned(), pid)));
        processes
            .into_iter()
            .map(|(name, pid)| Ok((name, usage(pid)?.cpu_seconds)))
            .collect()
    }
}

async fn furnish(client: &Api, namespace: &str) -> anyhow::Result<()> {
    let itself = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    client.create(&NAMESPACES.everywhere(), &itself).await?;
    client
        .create(&ACCOUNTS.within(namespace), &account(namespace))
        .await?;
    client
        .create(&ROLE_BINDINGS.within(namespace), &role_binding(namespace))
        .await?;
    Ok(())
}

async fn define_kinds(client: &Api) -> anyhow::Result<()> {
    let mut definitions = vec![step_crd()];
    for definition in api_types::crds() {
        definitions.push(serde_json::to_value(definition)?);
    }
    for definition in &definitions {
        client.create(&DEFINITIONS.everywhere(), definition).await?;
    }
    client.create(&CLUSTER_ROLES.everywhere(), &role()).await?;
    let deadline = Instant::now() + LIMIT;
    for definition in &definitions {
        let name = definition["metadata"]["name"]
            .as_str()
            .context("a definition without a name")?;
        while !is_established(&client.read(&DEFINITIONS.named(name)).await?) {
            ensure!(
                Instant::now() < deadline,
                "{name} (with {}) is not established",
                step_definition()
            );
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(())
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

type Watched = (Arc<Census<Step>>, Arc<Census<OwnerSeen>>);

fn watch_all(
    family: &'static Family,
    plane: &ControlPlane,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<Watched> {
    let (steps, owners) = (Arc::new(Census::default()), Arc::new(Census::default()));
    let (due, to_answer) = mpsc::unbounded_channel();
    let status = if family.is(&RUNNABLE) {
        run_status
    } else {
        step_status
    };
    let downstream = Api::connect(plane, DOWNSTREAM_AGENT)?;
    tasks.spawn(answer(downstream, status, to_answer));
    let (observer, census) = (Api::connect(plane, OBSERVER_AGENT)?, steps.clone());
    tasks.spawn(async move {
        let mut pending = Pending::default();
        let told = |change| {
            for step in pending.due(&change) {
                // The other end is there as long as this task.
                let _ = due.send(step);
            }
            census.record(change);
        };
        observe(&observer, STEPS, told).await;
    });
    let (observer, census) = (Api::connect(plane, OBSERVER_AGENT)?, owners.clone());
    tasks.spawn(
        async move { observe(&observer, family.owners, |change| census.record(change)).await },
    );
    Ok((steps, owners))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_established_when_its_condition_says_so() {
        let with =
            |status| json!({"status": {"conditions": [{"type": "Established", "status": status}]}});
        assert!(
            is_established(&with("True"))
                && !is_established(&with("False"))
                && !is_established(&json!({}))
        );
    }
}
