//! What is measured of the controller, one phase after the other, on the same objects.

pub(crate) mod change;
pub(crate) mod cold;
pub(crate) mod end;
pub(crate) mod fairness;
pub(crate) mod steady;

use crate::controller::{Controller, Program};
use crate::layout::{Owner, TEAM, owners};
use crate::tally::{Agent, Requests};
use crate::world::World;

/// The world with the controller in it.
pub(crate) struct Stage<'a> {
    /// The control plane.
    pub(crate) world: &'a mut World,
    /// How the controller is started.
    pub(crate) program: &'a Program,
    /// The controller, as long as it runs.
    pub(crate) controller: Controller,
    /// Number of owners.
    pub(crate) count: usize,
    /// Steps of the chain.
    pub(crate) steps: u8,
    /// Requests in flight of the bench as a user.
    pub(crate) concurrency: usize,
}

impl Stage<'_> {
    /// The owners that the controller serves.
    pub(crate) fn owners(&self) -> Vec<Owner> {
        owners(TEAM, self.count)
    }

    /// The controller's requests since [`World::forget_requests`], once it has come to rest.
    ///
    /// # Errors
    ///
    /// When it never rests.
    pub(crate) async fn requests(&mut self) -> anyhow::Result<Requests> {
        let requests = self.world.requests_until_rest(Agent::Controller).await?;
        Ok(requests.of(Agent::Controller))
    }

    /// Adds what one would look at first when a wait was in vain.
    pub(crate) fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        let owner = self.world.owners.laggard();
        let ready = owner.as_ref().and_then(|owner| owner.ready());
        let who = owner
            .as_ref()
            .map_or("none", |owner| owner.metadata.name.as_str());
        error.context(format!(
            "a {} that lags: {who}, Ready: {ready:?}\nthe controller's log ends with:\n{}",
            self.world.family.kind,
            self.controller.log_tail()
        ))
    }
}
