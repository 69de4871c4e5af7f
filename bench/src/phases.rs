//! What is measured of the controller, one phase after the other, on the same objects.

pub(crate) mod chains;
pub(crate) mod change;
pub(crate) mod cold;
pub(crate) mod fairness;
pub(crate) mod runs;
pub(crate) mod steady;

use std::path::PathBuf;

use crate::controller::Controller;
use crate::layout::{Key, TEAM, owners};
use crate::tally::{Agent, Requests};
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

impl<'a> Stage<'a> {
    /// Writes the blueprint, installs and starts the controller, and measures with it. When that fails, the text has what one
    /// would look at first.
    pub(crate) async fn with_controller<T>(
        world: &'a mut World,
        count: usize,
        concurrency: usize,
        measure: impl AsyncFnOnce(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        world.write_blueprint().await?;
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

    /// The controller's requests since [`World::forget_requests`], once it has come to rest.
    pub(crate) async fn requests(&mut self) -> anyhow::Result<Requests> {
        let requests = self.world.requests_until_rest().await?;
        Ok(requests.of(Agent::Controller))
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
