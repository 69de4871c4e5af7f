//! What the controller is made of, and whom a template wakes.

use std::sync::Arc;
use std::time::Duration;

use controller_kit::owner::{Dependency, OwnerShell};
use controller_kit::ytt::Ytt;

use crate::templates::RunTemplates;

/// One edit of a template may arrive as several events; its Runnables are woken once.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Reconciles Runnables.
pub(crate) struct RunnableController {
    pub(crate) shell: Arc<OwnerShell>,
    pub(crate) templates: RunTemplates,
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
}
