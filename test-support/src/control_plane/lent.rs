//! A control plane that a test has finished with is lent to the next one of the same process, with nothing of the first in it.
//! To start one takes most of the time of a short test.
//!
//! What a test leaves is taken out of etcd's data, where no finalizer, policy or missing controller holds it. The API server
//! hears of that as of any change. What it works by in other ways than by reading its caches is not trusted to be as it was:
//! after a change of definitions of kinds, of admission or of flow control, and after the API server was stopped or frozen, a
//! control plane is lent to nobody.

mod remains;

use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::Context as _;
use remains::Beginning;

use super::ControlPlane;

/// After so many tests one is taken down: what the API server keeps of the past has no limit.
const MOST_TESTS: u32 = 40;

/// Those that nobody uses now, by the folder of the definitions that they have.
static FREE: LazyLock<Mutex<HashMap<PathBuf, Vec<Used>>>> = LazyLock::new(Mutex::default);

/// One that a test has finished with.
type Used = (ControlPlane, Loan);

/// A control plane for one test. Dropping it hands it back, or, after a panic, takes it down.
#[derive(Debug)]
pub struct Lent {
    /// Nothing only while it is dropped.
    plane: Option<ControlPlane>,
    /// Nothing if it is not handed back.
    loan: Option<Loan>,
}

/// What it is lent for.
#[derive(Debug)]
struct Loan {
    definitions: PathBuf,
    beginning: Beginning,
    tests: u32,
}

impl Lent {
    /// One with the definitions of this folder and nothing else, which records requests: one that was used before, or a new
    /// one, on which `define` makes the definitions.
    ///
    /// # Errors
    ///
    /// When a new one does not start, or is not defined.
    pub async fn with(
        definitions: &Path,
        define: impl AsyncFnOnce(&ControlPlane) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        while let Some((plane, loan)) = free(definitions) {
            // What cannot be cleaned is taken down.
            if let Ok(true) = loan.beginning.is_restored(&plane).await {
                return Ok(Self::new(plane, loan));
            }
        }
        // Were the past removed in the middle of a test, it would see what it does not see on a new one.
        let builder = ControlPlane::builder().audit();
        let builder = builder.extra_apiserver_args(["--etcd-compaction-interval=0"]);
        let plane = builder.start().await?;
        define(&plane).await?;
        let beginning = Beginning::of(&plane).await.context("what etcd has")?;
        let definitions = definitions.to_owned();
        let tests = 0;
        let loan = Loan {
            definitions,
            beginning,
            tests,
        };
        Ok(Self::new(plane, loan))
    }

    fn new(plane: ControlPlane, mut loan: Loan) -> Self {
        loan.tests += 1;
        Self {
            plane: Some(plane),
            loan: Some(loan),
        }
    }
}

fn free(definitions: &Path) -> Option<Used> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    free.get_mut(definitions)?.pop()
}

impl From<ControlPlane> for Lent {
    /// One that is taken down when it is dropped.
    fn from(plane: ControlPlane) -> Self {
        Self {
            plane: Some(plane),
            loan: None,
        }
    }
}

impl Deref for Lent {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.plane
            .as_ref()
            .expect("it is there until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (Some(plane), Some(loan)) = (self.plane.take(), self.loan.take()) else {
            return;
        };
        let is_done = plane.was_disturbed() || loan.tests >= MOST_TESTS;
        if is_done || std::thread::panicking() {
            return;
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.entry(loan.definitions.clone())
            .or_default()
            .push((plane, loan));
    }
}
