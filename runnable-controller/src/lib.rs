//! Runs Runnables by their ClusterRunTemplates.
//!
//! ```text
//! watches:   ClusterRunTemplates ──▶ templates.rs ─┐
//!            selected objects (kit) ─▶ select.rs ──┼─▶ reconcile.rs ─▶ realizer::runnable::Run ─▶ status, events
//!            Runnables, accounts, rights (kit) ────┘
//! ```
//!
//! A separate deployable: it speaks with the other controllers only through objects and their status on the API server.
//! What it shares with them is in `controller-kit` and `realizer`.

mod controller;
mod reconcile;
mod select;
mod templates;

use std::sync::Arc;

use controller_kit::args::{ConcurrencyFlag, OwnerArgs};
use controller_kit::owner::{OwnerKind, Settings, begin, only_webhook, shell, ytt};
use controller_kit::process::{Process, Program, Work};
use controller_kit::reflect::Watched;

use controller::RunnableController;
use templates::RunTemplates;

/// This controller.
pub const PROGRAM: Program = Program {
    name: "runnable-controller",
    about: "Runs Runnables by their ClusterRunTemplates

Creates an object whenever what it is rendered from changes, with the rights of the Runnable's service account, and \
reports its outcome and outputs in the Runnable's status.",
    version: env!("CARGO_PKG_VERSION"),
    user_agent: concat!("carto-runnable/", env!("CARGO_PKG_VERSION")),
    field_manager: "carto-runnable",
    concurrency: ConcurrencyFlag::new("max-concurrent-runnables", "Runnables"),
};

const RUNNABLES: OwnerKind = OwnerKind {
    kind: realizer::runnable::KIND,
    plural: "runnables",
    name_label: "carto.run/runnable-name",
    span: |key| tracing::error_span!("reconcile", runnable = %key),
};

/// Starts its watches.
///
/// # Errors
/// When the flags do not fit together; the operator must correct them.
pub async fn start(process: &Process, args: &OwnerArgs) -> anyhow::Result<Work> {
    if let Some(work) = only_webhook(args)? {
        return Ok(work);
    }
    let (cluster, tasks) = (&process.cluster, &process.tasks);
    let shell = shell(Settings::new(RUNNABLES, process, args).await?, process);
    let controller = Arc::new(RunnableController {
        templates: RunTemplates::default(),
        ytt: ytt(process, args),
        shell,
    });
    let mut work = Work::default();
    let listener = controller.clone();
    work.follow(
        tasks,
        "template-watch",
        &controller.templates,
        Watched::carto("ClusterRunTemplate", "clusterruntemplates")
            .objects(cluster.controller().clone()),
        move |change| listener.template_changed(&change.key.name),
    );
    begin(&controller, process, args, &mut work);
    Ok(work)
}

#[cfg(test)]
mod tests {
    use controller_kit::stamped::ObjectKey;

    use super::*;

    #[test]
    fn every_line_of_a_reconcile_names_the_runnable() {
        let span = (RUNNABLES.span)(&ObjectKey::new("dev", "app"));
        let metadata = span.metadata().unwrap();
        assert_eq!(metadata.name(), "reconcile");
        assert!(metadata.fields().field("runnable").is_some());
    }
}
