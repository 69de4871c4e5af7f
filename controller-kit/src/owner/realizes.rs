//! What is the same in each reconcile of an owner, whatever sort it is of: Workloads and Deliverables, which blueprints
//! realize, and Runnables, which a template does.
//!
//! ```text
//! dereference ─▶ Self::Owner ─▶ realize ─▶ Realized ─▶ report
//!  (caches)                   (engine, requests)      (status, events)
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::Reason;
use jiff::Timestamp;
use serde_json::Value;
use tracing::{Instrument as _, debug_span, warn};

use super::{OwnerShell, Realized, Subject};
use crate::cluster::chain;
use crate::mapper::Kind;
use crate::process::{Queue, Reconciled};
use crate::stamped::ObjectKey;
use crate::telemetry::TRACED;

/// Makes of one sort of owner what it asks for.
pub trait Realizes: Send + Sync + 'static {
    /// What the caches say about one owner.
    type Owner: Send + Sync;

    /// What it has in common with the others.
    fn shell(&self) -> &Arc<OwnerShell>;

    /// The owner as the caches have it; nothing when it is gone, on its way out, or cannot be read.
    fn dereference(&self, key: &ObjectKey) -> Option<Self::Owner>;

    /// Whom the report is about.
    fn subject<'o>(&self, owner: &'o Self::Owner) -> Subject<'o>;

    /// Has the cluster hold what the owner asks for, as far as that can be; `None` when the owner has been changed and this
    /// process has not seen that yet.
    fn realize(
        &self,
        owner: &Self::Owner,
        now: Timestamp,
    ) -> impl Future<Output = Option<Realized>> + Send;

    /// The owner is gone: what is remembered of it beside the shell is dropped.
    fn forget(&self, _: &ObjectKey) {}

    /// The kinds that stand literally in templates.
    fn stamped_kinds(&self) -> BTreeSet<Kind>;
}

/// Reconciles the owners of this controller.
pub(super) fn queue<R: Realizes>(controller: &Arc<R>) -> Queue {
    let shell = controller.shell();
    let controller = controller.clone();
    shell.queue(&shell.scheduler, shell.kind.kind, move |key| {
        let controller = controller.clone();
        async move { reconcile(&*controller, &key).await }
    })
}

/// Reconciles one owner. Nothing is sent when nothing changed.
async fn reconcile<R: Realizes>(controller: &R, key: &ObjectKey) -> Reconciled {
    let shell = controller.shell();
    async {
        let Some(owner) = controller.dereference(key) else {
            shell.forget(key);
            controller.forget(key);
            return Reconciled::gone(shell.clean_up(key).await);
        };
        let now = (shell.clock)();
        let rights_changes = shell.dependencies.rights_changes();
        let Some(realized) = controller.realize(&owner, now).await else {
            return Reconciled::behind();
        };
        let subject = controller.subject(&owner);
        let outcome = &realized.outcome;
        let (ready, reason) = (outcome.ready.as_str(), Reason::label(&outcome.reason));
        let span = debug_span!(target: TRACED, "report", ready, reason);
        let reporting = shell.report(key, subject, realized, rights_changes);
        let reconciled = reporting.instrument(span).await;
        shell.forget_if_gone(key, subject.uid);
        reconciled
    }
    .instrument((shell.kind.span)(key))
    .await
}

impl OwnerShell {
    /// The owner as it is stored; nothing when it is gone, on its way out, or cannot be read.
    pub fn read<O, E: std::error::Error>(
        &self,
        key: &ObjectKey,
        parse: impl FnOnce(Arc<Value>) -> Result<O, E>,
        is_terminating: impl FnOnce(&O) -> bool,
    ) -> Option<O> {
        let entry = self.owners.get(key)?;
        match parse(Arc::new(entry.object())) {
            // What was stamped for it goes with it; writing more would fight the garbage collector.
            Ok(owner) if is_terminating(&owner) => None,
            Ok(owner) => Some(owner),
            Err(error) => {
                warn!(error = %chain(&error), "this object cannot be read and is left alone; correct or delete it");
                None
            }
        }
    }

    /// How many bytes an owner has without its status.
    pub fn size_of(&self, owner: &ObjectKey) -> usize {
        self.owners.get(owner).map_or(0, |entry| entry.size)
    }
}
