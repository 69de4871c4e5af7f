//! What the controller is made of, and whom a template wakes.

use std::sync::Arc;
use std::time::Duration;

use controller_kit::owner::{Dependency, OwnerShell};
use controller_kit::stamped::ObjectKey;
use controller_kit::ytt::Ytt;

use crate::selections::Selections;
use crate::templates::RunTemplates;

/// One edit of a template may arrive as several events; its Runnables are woken once.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// How often watches of selected objects are looked through for ones that nobody uses.
const SWEEP: Duration = Duration::from_secs(10);

/// Reconciles Runnables.
pub(crate) struct RunnableController {
    pub(crate) shell: Arc<OwnerShell>,
    pub(crate) templates: RunTemplates,
    pub(crate) selections: Selections,
    pub(crate) ytt: Arc<Ytt>,
}

impl RunnableController {
    /// A template appeared, changed or went: wakes the Runnables that name it.
    pub(crate) fn template_changed(&self, name: &str) {
        let concerned = self
            .shell
            .dependencies
            .take(&Dependency::Template(name.into()));
        self.shell.wake_all(concerned, Some(DEBOUNCE));
    }

    /// Stops watches of selected objects whose Runnables are gone.
    pub(crate) async fn sweep_selections(self: Arc<Self>) {
        let mut interval = tokio::time::interval(SWEEP);
        loop {
            interval.tick().await;
            self.selections
                .sweep(&|runnable: &ObjectKey| self.shell.owners.get(runnable).is_some());
        }
    }
}
