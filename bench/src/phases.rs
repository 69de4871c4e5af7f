//! What is measured of the controller, one phase after the other, on the same objects.

pub(crate) mod attribution;
pub(crate) mod blocks;
pub(crate) mod chains;
pub(crate) mod change;
pub(crate) mod cold;
pub(crate) mod fairness;
pub(crate) mod intents;
pub(crate) mod presets;
pub(crate) mod runs;
pub(crate) mod steady;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use test_support::Usage;

use crate::args::Args;
use crate::controller::Controller;
use crate::cpu::CpuSeconds;
use crate::family::Measured;
use crate::floor::best_concurrency;
use crate::layout::{FLOOR, Key, TEAM, namespaces_of, owners};
use crate::objects::LINEAR;
use crate::tally::{Agent, ByAgent, Requests, Tally};
use crate::world::World;

/// The world with the controller in it.
pub(crate) struct Stage<'a> {
    pub(crate) world: &'a mut World,
    /// The controller's identity.
    kubeconfig: PathBuf,
    /// The controller, as long as it runs.
    pub(crate) controller: Controller,
    /// Number of owners.
    pub(crate) count: usize,
    /// Requests in flight of the bench as a user.
    pub(crate) concurrency: usize,
}

/// What the controller did in all blocks or rounds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Work {
    /// Owners reconciled, by the controller's own count.
    pub(crate) reconciles: u64,
    /// Requests of the controller, until it came to rest.
    pub(crate) requests: Requests,
    /// Requests of everybody meanwhile.
    pub(crate) by_agent: ByAgent,
    /// What the controller used since it started, at rest.
    pub(crate) usage: Usage,
    /// What the requests are counted from.
    #[serde(skip)]
    pub(crate) sent: Tally,
}

/// What a phase took.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Phase {
    /// Until what was asked for was seen.
    pub(crate) seconds: f64,
    /// Requests of the controller, until it came to rest.
    pub(crate) requests: Requests,
    /// What the controller used since it started.
    pub(crate) usage: Usage,
}

impl<'a> Stage<'a> {
    /// Measures in a world of its own, with so many owners of the controller, and of the bare client. `write` is what the bare
    /// client is tried with: it takes a number of owners and the requests in flight.
    pub(crate) async fn within<T>(
        args: &Args,
        measured: &Measured,
        (name, owners, bare_owners): (String, usize, usize),
        write: impl AsyncFn(&World, usize, usize) -> anyhow::Result<Duration>,
        measure: impl AsyncFnOnce(&mut Stage<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        World::within(args, measured, name, async |world| {
            world.furnish(FLOOR, namespaces_of(bare_owners)).await?;
            let concurrency = best_concurrency(world, owners, write).await?;
            world.furnish(TEAM, namespaces_of(owners)).await?;
            Stage::with_controller(world, owners, concurrency, measure).await
        })
        .await
    }

    /// Writes the blueprint, installs and starts the controller, and measures with it. When that fails, the text has what one
    /// would look at first.
    pub(crate) async fn with_controller<T>(
        world: &'a mut World,
        count: usize,
        concurrency: usize,
        measure: impl AsyncFnOnce(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        world.write_blueprint(LINEAR).await?;
        let kubeconfig = world.install().await?;
        let controller = Controller::start(world, &kubeconfig).await?;
        let mut stage = Self {
            world,
            kubeconfig,
            controller,
            count,
            concurrency,
        };
        let measured = measure(&mut stage).await;
        measured.map_err(|error| stage.explain(error))
    }

    /// Starts the controller anew, once it was killed.
    pub(crate) async fn start_again(&mut self) -> anyhow::Result<()> {
        self.controller = Controller::start(self.world, &self.kubeconfig).await?;
        Ok(())
    }

    /// The owners that the controller serves.
    pub(crate) fn owners(&self) -> Vec<Key> {
        owners(TEAM, self.count)
    }

    /// Has something done, and waits until the controller rests again.
    async fn phase(
        &mut self,
        task: impl AsyncFnOnce(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<Phase> {
        self.world.forget_requests()?;
        let start = Instant::now();
        task(self).await?;
        Ok(Phase {
            seconds: start.elapsed().as_secs_f64(),
            requests: self.requests().await?,
            usage: self.controller.process.usage()?,
        })
    }

    /// The controller's requests since [`World::forget_requests`], once it has come to rest.
    pub(crate) async fn requests(&mut self) -> anyhow::Result<Requests> {
        self.world.requests_until_rest(Requests::sum).await
    }

    /// Gives the controller something to do, and waits until it has sent the last of the requests that are `counted`; `done` gets
    /// what it did, and `used` the CPU time until `task` ends.
    async fn work<T>(
        &mut self,
        counted: fn(&Requests) -> u64,
        (done, used): (&mut Work, &mut CpuSeconds),
        task: impl AsyncFnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.world.let_control_plane_rest().await?;
        self.world.forget_requests()?;
        let pid = Some(self.controller.process.pid());
        let before = self.controller.reconciles().await?;
        let task = self.world.measure_cpu(pid, used, async || task(self).await);
        let result = task.await?;
        let sent = self.world.add_requests_until_rest(counted, &mut done.sent);
        sent.await?;
        done.requests = done.sent.of(Agent::Controller);
        done.by_agent = done.sent.by_agent();
        done.reconciles += self.controller.reconciles().await? - before;
        done.usage = self.controller.process.usage()?;
        Ok(result)
    }

    fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        let owner = self.world.owners.laggard().unwrap_or_default();
        error.context(format!(
            "a {} that lags: {:?}, Ready: {:?}\nthe controller's log ends with:\n{}",
            self.world.family.kind,
            owner.metadata.name,
            owner.ready(),
            self.controller.process.log_tail()
        ))
    }
}
