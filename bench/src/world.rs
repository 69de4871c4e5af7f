//! The control plane that everything is measured on, and what the bench sees of it.

mod objects;
mod presets;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use test_support::stage::condition;
use test_support::{
    AuditLog, CONTROLLERS_NAMESPACE, Change, ControlPlane, Scratch, Usage, documents, eventually,
    observe, service_account,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::{Api, Kind, STEPS};
use crate::args::Args;
use crate::census::Census;
use crate::cpu::{CpuSeconds, add_spent};
use crate::downstream::{Pending, answer};
use crate::family::{CONVENTIONS, Family, Measured, RUNNABLE};
use crate::objects::{Chain, blueprint, twin_of};
use crate::pace::Pace;
use crate::seen::Seen;
use crate::tally::{Agent, CLIENT_AGENT, DOWNSTREAM_AGENT, OBSERVER_AGENT, Requests, Tally};

/// How long anything may take before the bench gives up.
pub(crate) const LIMIT: Duration = Duration::from_mins(15);
/// A sender that asked nothing for this long has come to rest. Longer than the controller holds a status back (2 s
/// while many owners are under way).
const QUIET: Duration = Duration::from_secs(3);
const CONTROL_PLANE_LIMIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);
const KINDS: &str = include_str!("../templates/kinds.yaml");
const RIGHTS: &str = include_str!("../templates/rights.yaml");

/// A running control plane with the bench's kinds, and the bench's watches on it.
pub(crate) struct World {
    // Dropped in this order: the watches before what they watch.
    _tasks: JoinSet<()>,
    /// Stamped objects.
    pub(crate) steps: Arc<Census>,
    /// Owners of the family.
    pub(crate) owners: Arc<Census>,
    /// Those that the bare client writes, of another kind.
    pub(crate) bare_owners: Arc<Census>,
    /// What is measured here.
    pub(crate) family: &'static Family,
    /// The controller's binary.
    pub(crate) binary: PathBuf,
    pub(crate) args: Args,
    /// What is measured here, in the names of files.
    name: String,
    /// The bench as a user, and as the bare client.
    pub(crate) client: Api,
    /// Of the machine, since the world began.
    pub(crate) pace: Pace,
    audit: AuditLog,
    plane: ControlPlane,
    home: Scratch,
}

impl World {
    /// Starts one, measures in it, and keeps its audit log if that was asked for.
    pub(crate) async fn within<T>(
        args: &Args,
        (family, binary): &Measured,
        name: String,
        measure: impl AsyncFnOnce(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut world = Self::start(args, family, binary.clone(), name).await?;
        let measured = measure(&mut world).await;
        if args.logs.is_some() {
            let to = world.log_file("audit")?;
            std::fs::copy(world.audit.path(), &to).with_context(|| to.display().to_string())?;
        }
        measured
    }

    async fn start(
        args: &Args,
        family: &'static Family,
        binary: PathBuf,
        name: String,
    ) -> anyhow::Result<Self> {
        let home = Scratch::new("carto-bench-")?;
        let data = home.path().join("plane");
        // Garbage collection learns of kinds when it starts, and then only every 30 s; so they are there before it.
        let plane = ControlPlane::builder().data_dir(&data).start().await?;
        plane.define(definitions(family)?).await?;
        plane.apply_yaml(RIGHTS).await?;
        drop(plane);
        let plane = ControlPlane::builder()
            .data_dir(&data)
            .controller_manager(true)
            .audit()
            .extra_apiserver_args(&args.api_server)
            .start()
            .await?;
        let mut tasks = JoinSet::new();
        let steps = watch_steps(&plane, &mut tasks)?;
        let owners = watch(family.owners, &plane, &mut tasks, |_| ())?;
        let bare_owners = watch(family.bare().owners, &plane, &mut tasks, |_| ())?;
        Ok(Self {
            _tasks: tasks,
            steps,
            owners,
            bare_owners,
            family,
            binary,
            args: args.clone(),
            name,
            client: Api::connect(&plane, CLIENT_AGENT)?,
            pace: Pace::start()?,
            audit: AuditLog::new(plane.folder().join("audit.log")),
            plane,
            home,
        })
    }

    /// A file for what is to be kept, or goes with this value.
    pub(crate) fn log_file(&self, of: &str) -> anyhow::Result<PathBuf> {
        let folder = self.args.logs.as_deref();
        let folder = folder.unwrap_or_else(|| self.home.path());
        std::fs::create_dir_all(folder)?;
        Ok(folder.join(format!("{of}-{}.log", self.name)))
    }

    /// Makes a blueprint and what it needs.
    pub(crate) async fn write_blueprint(&self, chain: Chain) -> anyhow::Result<()> {
        for (kind, object) in blueprint(self.family, chain, self.args.steps)? {
            self.client.create(&kind.everywhere(), &object).await?;
        }
        Ok(())
    }

    /// The controller has taken up its work when it says so of the blueprint.
    pub(crate) async fn blueprint_ready(&self, chain: Chain) {
        let path = self.family.blueprints.named(chain.name);
        let what = format!("the Cluster{} is Ready", self.family.blueprint);
        eventually(&what, LIMIT, async || {
            let blueprint = self.client.read(&path).await?;
            let ready = condition(&blueprint["status"], "Ready");
            ensure!(ready["status"] == "True", "{ready}");
            anyhow::Ok(())
        })
        .await;
    }

    /// Makes the controller's service account with the rights that are shipped, and the right to watch what is stamped here;
    /// a kubeconfig with a token of it. An administrator would be exempt from the API server's priorities.
    pub(crate) async fn install(&self) -> anyhow::Result<PathBuf> {
        let (system, name) = (CONTROLLERS_NAMESPACE, &self.family.binary());
        if self.family.is(&CONVENTIONS) {
            self.plane.install_conventions().await?;
        } else {
            self.plane.install_controllers().await?;
            let user = service_account(system, name);
            let right = "watch steps.bench.carto.run";
            self.plane.until_it_may(&user, right).await;
        }
        self.plane.kubeconfig_of_service_account(system, name).await
    }

    /// Forgets the requests so far.
    pub(crate) fn forget_requests(&mut self) -> anyhow::Result<()> {
        self.audit.drain().map(drop)
    }

    /// Waits until the controller has come to rest, as far as its requests are `counted`, and adds
    /// all requests of all senders since [`World::forget_requests`]. Events go out at a slow pace,
    /// and go on long after all is done.
    pub(crate) async fn add_requests_until_rest(
        &mut self,
        counted: fn(&Requests) -> u64,
        to: &mut Tally,
    ) -> anyhow::Result<()> {
        let rests = self.watch_for_rest(Agent::Controller, LIMIT, counted, to);
        ensure!(rests.await?, "the controller does not come to rest");
        Ok(())
    }

    /// The same, and returns the controller's own.
    pub(crate) async fn requests_until_rest(
        &mut self,
        counted: fn(&Requests) -> u64,
    ) -> anyhow::Result<Requests> {
        let mut requests = Tally::default();
        self.add_requests_until_rest(counted, &mut requests).await?;
        Ok(requests.of(Agent::Controller))
    }

    /// Gives garbage collection and the like time to end, before something else is measured.
    pub(crate) async fn let_control_plane_rest(&mut self) -> anyhow::Result<()> {
        // It never rests for long; what is under way every few seconds is no burden.
        let (limit, requests) = (CONTROL_PLANE_LIMIT, &mut Tally::default());
        let rest = self.watch_for_rest(Agent::Other, limit, Requests::sum, requests);
        rest.await.map(drop)
    }

    async fn watch_for_rest(
        &mut self,
        agent: Agent,
        limit: Duration,
        counted: fn(&Requests) -> u64,
        requests: &mut Tally,
    ) -> anyhow::Result<bool> {
        let deadline = Instant::now() + limit;
        let (mut last, mut before) = (Instant::now(), counted(&requests.of(agent)));
        while last.elapsed() < QUIET {
            self.audit
                .drain()?
                .iter()
                .for_each(|record| requests.add(record));
            let now = counted(&requests.of(agent));
            if now > before {
                (last, before) = (Instant::now(), now);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(true)
    }

    /// Does something; `used` gets the CPU time meanwhile of each part of the control plane, of the bench, and of the controller
    /// if it runs.
    pub(crate) async fn measure_cpu<T>(
        &self,
        controller: Option<u32>,
        used: &mut CpuSeconds,
        work: impl AsyncFnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let before = self.cpu_seconds(controller)?;
        let result = work().await?;
        add_spent(used, &before, self.cpu_seconds(controller)?);
        Ok(result)
    }

    fn cpu_seconds(&self, controller: Option<u32>) -> anyhow::Result<CpuSeconds> {
        let mut processes = self.plane.processes();
        processes.push(("bench".to_owned(), std::process::id()));
        processes.extend(controller.map(|pid| ("controller".to_owned(), pid)));
        let used = |(name, pid)| Ok((name, Usage::of(pid)?.cpu_seconds));
        processes.into_iter().map(used).collect()
    }
}

/// The kinds that the controller knows, that of the bare client's owners, and the stamped kind.
fn definitions(family: &Family) -> anyhow::Result<Vec<Value>> {
    let mut definitions = documents(KINDS)?;
    let known = if family.is(&CONVENTIONS) {
        [conventions::crds(), pod_presets::crds()].concat()
    } else {
        api_types::crds()
    };
    for definition in known {
        let definition = serde_json::to_value(definition)?;
        let kind = &definition["spec"]["names"]["kind"];
        if kind == RUNNABLE.kind || kind == CONVENTIONS.kind {
            definitions.push(twin_of(definition.clone()));
        }
        definitions.push(definition);
    }
    Ok(definitions)
}

/// Watches the stamped objects, and has their statuses written.
fn watch_steps(plane: &ControlPlane, tasks: &mut JoinSet<()>) -> anyhow::Result<Arc<Census>> {
    let (due, to_answer) = mpsc::unbounded_channel();
    let downstream = Api::connect(plane, DOWNSTREAM_AGENT)?;
    tasks.spawn(answer(downstream, to_answer));
    let mut pending = Pending::default();
    watch(STEPS, plane, tasks, move |change| {
        for step in pending.due(change) {
            // The other end is there as long as this task.
            let _ = due.send(step);
        }
    })
}

/// Watches a kind; each change is told before it is counted.
fn watch(
    kind: Kind,
    plane: &ControlPlane,
    tasks: &mut JoinSet<()>,
    mut told: impl FnMut(&Change<Seen>) + Send + 'static,
) -> anyhow::Result<Arc<Census>> {
    let census = Arc::new(Census::new(LIMIT));
    let (observer, seen) = (Api::connect(plane, OBSERVER_AGENT)?, census.clone());
    tasks.spawn(async move {
        let told = |change| {
            told(&change);
            seen.record(change);
        };
        observe(&observer.client, &kind.everywhere(), told).await;
    });
    Ok(census)
}
