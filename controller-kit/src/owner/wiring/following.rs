//! What a controller of owners hears of: the watches that it has from its start on, and what each of them wakes.

use std::sync::Arc;

use tokio::sync::watch as signal;

use crate::owner::{BlueprintFamily, OwnerController, OwnerShell};
use crate::process::{Process, Work};
use crate::reflect::{Events, Watched, follow_changes};
use crate::shutdown::Tasks;
use crate::stamped::ObjectKey;

/// Follows the blueprints of a family and their templates.
pub(super) fn follow_blueprints<F: BlueprintFamily>(
    controller: &Arc<OwnerController<F>>,
    process: &Process,
    work: &mut Work,
) {
    let client = || process.cluster.controller().clone();
    for (kind, store) in controller.templates.stores() {
        let listener = controller.clone();
        let events = Watched::carto(kind.as_str(), kind.plural()).objects(client());
        work.follow(
            &process.tasks,
            "template-watch",
            store,
            events,
            move |change| listener.template_changed(kind, &change),
        );
    }
    let listener = controller.clone();
    work.follow(
        &process.tasks,
        "blueprint-watch",
        &controller.blueprints,
        F::watched().objects(client()),
        move |change| listener.blueprint_changed(&change),
    );
}

/// Follows owners, service accounts, rights and definitions.
pub(super) fn follow_owners(shell: &Arc<OwnerShell>, process: &Process, work: &mut Work) {
    let client = || process.cluster.controller().clone();
    let tasks = &process.tasks;
    let accounts = Watched {
        group: "",
        version: "v1",
        kind: "ServiceAccount",
        plural: "serviceaccounts",
    };
    let listener = shell.clone();
    work.follow(
        tasks,
        "account-watch",
        &shell.accounts,
        accounts.metadata(client()),
        move |change| listener.account_changed(&change),
    );
    let (listener, owners) = (shell.clone(), shell.owners.clone());
    let held = Arc::new(move || owners.len());
    work.follow(
        tasks,
        "owner-watch",
        &shell.owners,
        shell.shard.events(shell.kind.watched(), client(), held),
        move |change| listener.owner_changed(&change),
    );
    follow_rights(shell, process);
    follow_definitions(shell, process);
    tasks.spawn_until_stopped("status-key-changes", follow_status_key(shell.clone()));
}

/// Another key gives each secret value another digest.
async fn follow_status_key(shell: Arc<OwnerShell>) {
    let mut keys = shell.status_keys.clone();
    keys.known().await;
    let mut key = keys.now();
    while keys.replaced(&mut key).await {
        shell.wake_everyone();
    }
}

fn follow_rights(shell: &Arc<OwnerShell>, process: &Process) {
    for (kind, plural) in [
        ("Role", "roles"),
        ("RoleBinding", "rolebindings"),
        ("ClusterRole", "clusterroles"),
        ("ClusterRoleBinding", "clusterrolebindings"),
    ] {
        let watched = Watched {
            group: "rbac.authorization.k8s.io",
            version: "v1",
            kind,
            plural,
        };
        let listener = shell.clone();
        let events = watched.metadata(process.cluster.controller().clone());
        watch_changes(&process.tasks, "rights-watch", events, move |key| {
            listener.rights_changed(key.map(|key| &*key.namespace));
        });
    }
}

fn follow_definitions(shell: &Arc<OwnerShell>, process: &Process) {
    let definitions = Watched {
        group: "apiextensions.k8s.io",
        version: "v1",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
    };
    let listener = shell.clone();
    let noticed = move |key: Option<&ObjectKey>| match key {
        Some(key) => listener.definition_changed(&key.name),
        None => listener.definitions_missed(),
    };
    let events = definitions.metadata(process.cluster.controller().clone());
    watch_changes(&process.tasks, "definition-watch", events, noticed);
}

/// Follows a kind of which only the changes count.
fn watch_changes(
    tasks: &Tasks,
    name: &'static str,
    events: Events,
    noticed: impl Fn(Option<&ObjectKey>) + Send + 'static,
) {
    let synced = signal::Sender::new(false);
    tasks.spawn(
        name,
        follow_changes(events, tasks.token().clone(), synced, noticed),
    );
}
