//! The stage with the supply-chain controller on it.

use std::ops::{Deref, DerefMut};

use serde_json::Value;
use test_support::ControlPlane;
use test_support::stage::Cast;
pub(crate) use test_support::stage::{NOTHING, PATIENCE, condition, condition_types, step};

const CAST: Cast = Cast {
    binary: env!("CARGO_BIN_EXE_supplychain-controller"),
    user_agent: "carto-supplychain",
    api_version: "carto.run/v1alpha1",
    owner_kind: "Workload",
};

pub(crate) struct Stage(test_support::Stage);

impl Stage {
    /// Everything but the controller.
    pub(crate) async fn set() -> Self {
        Self(test_support::Stage::set(CAST).await)
    }

    /// Everything but the controller, on this control plane.
    pub(crate) async fn on(plane: ControlPlane) -> Self {
        Self(test_support::Stage::on(CAST, plane).await)
    }

    /// With the controller.
    pub(crate) async fn open() -> Self {
        Self(test_support::Stage::open(CAST).await)
    }

    pub(crate) async fn workload(&self, name: &str) -> Value {
        self.owner(name).await
    }

    pub(crate) async fn edit_workload(&self, name: &str, patch: Value) {
        self.edit_owner(name, patch).await;
    }
}

impl Deref for Stage {
    type Target = test_support::Stage;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
