//! The control plane that everything is measured on, and what the bench sees of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use test_support::{AuditLog, ControlPlane, Scratch, documents, service_account};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::{
    ACCOUNTS, Api, CLUSTER_ROLES, CONFIG_MAPS, DEFINITIONS, Kind, NAMESPACES, ROLE_BINDINGS, STEPS,
    TEMPLATES, step_definition,
};
use crate::census::Census;
use crate::downstream::{Pending, answer};
use crate::family::{Family, RUNNABLE};
use crate::layout::{Key, Owner, namespaces, namespaces_of};
use crate::objects::{
    account, chain, role, role_binding, run_status, step_crd, step_status, template, twin_of,
    watched_role,
};
use crate::observe::observe;
use crate::pace::Pace;
use crate::proc_stat::{processes_naming, usage};
use crate::seen::{OwnerSeen, Step};
use crate::tally::{Agent, CLIENT_AGENT, DOWNSTREAM_AGENT, OBSERVER_AGENT, Requests, Tally};
use crate::workers::each;

/// How long anything may take before the bench gives up.
pub(crate) const LIMIT: Duration = Duration::from_mins(15);
/// A sender that asked nothing for this long has come to rest. Longer than the controller holds a status back (2 s
/// while many owners are under way).
const QUIET: Duration = Duration::from_secs(3);
const CONTROL_PLANE_LIMIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);
const SETUP_IN_FLIGHT: usize = 16;
/// What users apply to install the controllers, and where these are then.
const INSTALL: &str = include_str!("../../deploy/install.yaml");
const SYSTEM: &str = "carto-system";

/// A running control plane with the bench's kinds, and the bench's watches on it.
pub(crate) struct World {
    // Dropped in this order: the watches before what they watch.
    _tasks: JoinSet<()>,
    /// Stamped objects.
    pub(crate) steps: Arc<Census<Step>>,
    /// Owners of the family.
    pub(crate) owners: Arc<Census<OwnerSeen>>,
    /// Those that the bare client writes, of another kind.
    pub(crate) bare_owners: Arc<Census<OwnerSeen>>,
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
        let steps = watch_steps(family, &plane, &mut tasks)?;
        let owners = watch_owners(family, &plane, &mut tasks)?;
        let bare_owners = watch_owners(family.bare(), &plane, &mut tasks)?;
        let audit = AuditLog::new(plane.folder().join("audit.log"));
        Ok(Self {
            _tasks: tasks,
            steps,
            owners,
            bare_owners,
            family,
            client,
            pace: Pace::start(),
            audit,
            plane,
            home,
        })
    }

    /// A folder that goes with this value.
    pub(crate) fn home(&self) -> &Scratch {
        &self.home
    }

    /// Makes so many namespaces, each with a ServiceAccount and its rights, and waits until the control
    /// plane has done its own part in them.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub(crate) async fn furnish(&self, prefix: &str, count: usize) -> anyhow::Result<()> {
        let namespaces = namespaces(prefix, count);
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
            let rest = namespace.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with('-'))
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

    /// Makes the controller's service account with the rights that are shipped, and the right to watch what is stamped here;
    /// a kubeconfig with a token of it. An administrator would be exempt from the API server's priorities.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub(crate) async fn install(&self) -> anyhow::Result<PathBuf> {
        // What makes sense inside a cluster only.
        let inside = ["Deployment", "Service", "ValidatingWebhookConfiguration"];
        let mut shipped = documents(INSTALL)?;
        shipped.retain(|document| !inside.iter().any(|kind| document["kind"] == *kind));
        shipped.push(watched_role());
        let shipped: Vec<String> = shipped.iter().map(Value::to_string).collect();
        self.plane.apply_yaml(&shipped.join("\n---\n")).await?;
        let name = self.family.binary;
        let user = service_account(SYSTEM, name);
        // A right is in force later than the API server answers who granted it.
        for right in [
            "watch serviceaccounts",
            &format!("watch {}", step_definition()),
        ] {
            self.plane.until_it_may(&user, right).await;
        }
        self.plane.kubeconfig_of_service_account(SYSTEM, name).await
    }

    /// Removes all owners and stamped objects of so many owners of the bare client; nothing is left to garbage collection.
    ///
    /// # Errors
    ///
    /// When they do not go.
    pub(crate) async fn clear(&self, prefix: &'static str, owners: usize) -> anyhow::Result<()> {
        let namespaces = namespaces(prefix, namespaces_of(owners));
        for kind in [STEPS, self.family.bare().owners] {
            self.delete_all(kind, namespaces.clone()).await?;
        }
        let in_these = move |key: &Key| key.is_of(prefix);
        self.steps
            .emptied("all stamped objects are gone", LIMIT, in_these)
            .await?;
        self.bare_owners
            .emptied("all owners are gone", LIMIT, in_these)
            .await
    }

    /// Removes these owners of the controller, who share their namespaces with no others, and waits until garbage collection
    /// has taken their objects.
    ///
    /// # Errors
    ///
    /// When they do not go.
    pub(crate) async fn remove(&self, owners: &[Owner]) -> anyhow::Result<()> {
        let namespaces: BTreeSet<String> = owners
            .iter()
            .map(|owner| owner.key.namespace.clone())
            .collect();
        self.delete_all(self.family.owners, namespaces.iter().cloned().collect())
            .await?;
        let in_these = move |key: &Key| namespaces.contains(&key.namespace);
        self.owners
            .emptied("these owners are gone", LIMIT, in_these.clone())
            .await?;
        self.steps
            .emptied("their objects are gone", LIMIT, in_these)
            .await
    }

    async fn delete_all(&self, kind: Kind, namespaces: Vec<String>) -> anyhow::Result<()> {
        let client = self.client.clone();
        each(SETUP_IN_FLIGHT, namespaces, move |namespace| {
            let client = client.clone();
            async move { client.delete_all(&kind.within(&namespace)).await }
        })
        .await
    }

    /// Forgets the requests so far.
    ///
    /// # Errors
    ///
    /// When the audit log cannot be read.
    pub(crate) fn forget_requests(&mut self) -> anyhow::Result<()> {
        self.audit.drain().map(drop)
    }

    /// Waits until a sender has come to rest, its events aside, and returns all requests of all senders since
    /// [`World::forget_requests`].
    ///
    /// # Errors
    ///
    /// When it never rests, or the audit log cannot be read.
    pub(crate) async fn requests_until_rest(&mut self, agent: Agent) -> anyhow::Result<Tally> {
        let (requests, rests) = self.watch_for_rest(agent, LIMIT, Requests::sum).await?;
        ensure!(rests, "{agent:?} does not come to rest");
        Ok(requests)
    }

    /// Waits until the controller's events have ended, too: they go out at a slow pace, and go on long after all is done.
    ///
    /// # Errors
    ///
    /// When they never end, or the audit log cannot be read.
    pub(crate) async fn requests_until_events_end(&mut self) -> anyhow::Result<Tally> {
        let agent = Agent::Controller;
        let (requests, rests) = self
            .watch_for_rest(agent, LIMIT, |sent| sent.sum() + sent.events)
            .await?;
        ensure!(rests, "the events do not end");
        Ok(requests)
    }

    /// Gives garbage collection and the like time to end, before something else is measured.
    ///
    /// # Errors
    ///
    /// When the audit log cannot be read.
    pub(crate) async fn let_control_plane_rest(&mut self) -> anyhow::Result<()> {
        // It never rests for long; what is under way every few seconds is no burden.
        self.watch_for_rest(Agent::Other, CONTROL_PLANE_LIMIT, Requests::sum)
            .await
            .map(drop)
    }

    async fn watch_for_rest(
        &mut self,
        agent: Agent,
        limit: Duration,
        counts: fn(&Requests) -> u64,
    ) -> anyhow::Result<(Tally, bool)> {
        let deadline = Instant::now() + limit;
        let mut requests = Tally::default();
        let mut last = Instant::now();
        while last.elapsed() < QUIET {
            let new = Tally::of_records(&self.audit.drain()?);
            if counts(&new.of(agent)) > 0 {
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
        let definition = serde_json::to_value(definition)?;
        if definition["spec"]["names"]["kind"] == RUNNABLE.kind {
            definitions.push(twin_of(definition.clone()));
        }
        definitions.push(definition);
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

fn watch_steps(
    family: &'static Family,
    plane: &ControlPlane,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<Arc<Census<Step>>> {
    let steps = Arc::new(Census::default());
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
    Ok(steps)
}

fn watch_owners(
    family: &'static Family,
    plane: &ControlPlane,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<Arc<Census<OwnerSeen>>> {
    let owners = Arc::new(Census::default());
    let (observer, census) = (Api::connect(plane, OBSERVER_AGENT)?, owners.clone());
    tasks.spawn(
        async move { observe(&observer, family.owners, |change| census.record(change)).await },
    );
    Ok(owners)
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
