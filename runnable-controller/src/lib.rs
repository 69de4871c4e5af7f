//! Runs Runnables by their ClusterRunTemplates.
//!
//! ```text
//! watch.rs:  ClusterRunTemplates ──▶ templates.rs ─┐
//!            selected objects ─────▶ selections.rs ┼─▶ reconcile.rs ─▶ realizer::runnable::Run ─▶ status, events
//!            Runnables, accounts, rights (kit) ────┘
//! ```
//!
//! A separate deployable: it speaks with the other controllers only through objects and their status on the API server.
//! What it shares with them is in `controller-kit` and `realizer`.

mod controller;
mod reconcile;
mod select;
mod selections;
mod templates;

use std::sync::Arc;

use controller_kit::args::CommonArgs;
use controller_kit::owner::OwnerKind;
use controller_kit::process::Program;
use controller_kit::reflect::Watched;
use controller_kit::wiring::{
    Environment, Queue, Settings, Synced, Wired, follow_owners, shell, ytt,
};

use controller::RunnableController;
use selections::Selections;
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
};

const RUNNABLES: OwnerKind = OwnerKind {
    kind: realizer::runnable::KIND,
    plural: "runnables",
    name_label: "carto.run/runnable-name",
};

/// Starts its watches.
pub fn wire_up(args: &CommonArgs, environment: Environment<'_>) -> Wired {
    let settings = Settings {
        kind: RUNNABLES,
        concurrency: args.concurrency.runnables(),
        field_manager: PROGRAM.field_manager,
    };
    let shell = shell(settings, environment);
    let controller = Arc::new(RunnableController {
        selections: Selections::new(environment.cluster, &shell.scheduler, environment.tasks),
        templates: RunTemplates::default(),
        ytt: ytt(environment),
        shell,
    });
    let mut synced = Synced::default();
    let told = controller.clone();
    synced.follow(
        environment.tasks,
        "template-watch",
        controller.templates.store(),
        Watched::carto("ClusterRunTemplate", "clusterruntemplates")
            .objects(environment.cluster.controller().clone()),
        move |change| told.template_changed(&change.key.name),
    );
    follow_owners(&controller.shell, environment, &mut synced);
    environment.tasks.spawn(
        "selection-sweep",
        controller
            .clone()
            .sweep_selections(environment.tasks.token().clone()),
    );
    let runnables = controller.clone();
    let queue = Queue::new(&controller.shell.scheduler, RUNNABLES.kind, move |key| {
        let controller = runnables.clone();
        async move { controller.reconcile(&key).await }
    });
    let templates = controller.clone();
    let stamped_kinds = Arc::new(move || templates.templates.stamped_kinds());
    Wired::new(controller.shell.clone(), vec![queue], synced, stamped_kinds)
}
