//! What a controller of owners hears of: the watches that it has from its start on, and what each of them wakes.

use std::sync::Arc;

use api_types::TemplateKind;
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;

use super::Environment;
use crate::owner::{BlueprintFamily, OwnerController, OwnerShell};
use crate::reflect::{Change, Entry, Events, Reflector, Watched, follow_changes};
use crate::shutdown::Tasks;
use crate::stamped::ObjectKey;

/// What has to be listed once before anything is reconciled.
#[derive(Clone, Default)]
pub struct Synced(Vec<signal::Receiver<bool>>);

impl Synced {
    /// Follows a kind from now on; it has to be listed, too.
    pub fn follow<E: Entry>(
        &mut self,
        tasks: &Tasks,
        name: &'static str,
        store: &Arc<Reflector<E>>,
        events: Events,
        changed: impl Fn(Change<'_, E>) + Send + 'static,
    ) {
        self.0.push(store.synced_signal());
        let following = store.clone().follow(events, tasks.token().clone(), changed);
        tasks.spawn(name, following);
    }

    /// Whether everything was listed once.
    pub fn is_synced(&self) -> bool {
        self.0.iter().all(|synced| *synced.borrow())
    }

    /// Waits until everything was listed once: before that, a template that exists would look missing.
    pub(super) async fn wait(&self) {
        for synced in &self.0 {
            // The sender lives as long as the store, which the controller holds.
            let _ = synced.clone().wait_for(|synced| *synced).await;
        }
    }
}

/// Follows the blueprints of a family and their templates.
pub(super) fn follow_blueprints<F: BlueprintFamily>(
    controller: &Arc<OwnerController<F>>,
    environment: Environment<'_>,
    synced: &mut Synced,
) {
    let client = || environment.cluster.controller().clone();
    for (kind, store) in controller.templates.stores() {
        let told = controller.clone();
        let events = Watched::carto(kind.as_str(), template_plural(kind)).objects(client());
        synced.follow(
            environment.tasks,
            "template-watch",
            store,
            events,
            move |change| told.template_changed(kind, &change),
        );
    }
    let told = controller.clone();
    let blueprints = Watched::carto(F::FAMILY.blueprint_kind(), F::FAMILY.blueprint_plural());
    synced.follow(
        environment.tasks,
        "blueprint-watch",
        &controller.blueprints,
        blueprints.objects(client()),
        move |change| told.blueprint_changed(&change),
    );
}

/// Follows owners, service accounts, rights and definitions.
pub fn follow_owners(shell: &Arc<OwnerShell>, environment: Environment<'_>, synced: &mut Synced) {
    let client = || environment.cluster.controller().clone();
    let tasks = environment.tasks;
    let accounts = Watched {
        group: "",
        version: "v1",
        kind: "ServiceAccount",
        plural: "serviceaccounts",
    };
    let told = shell.clone();
    synced.follow(
        tasks,
        "account-watch",
        &shell.accounts,
        accounts.metadata(client()),
        move |change| told.account_changed(&change),
    );
    let told = shell.clone();
    let owners = Watched::carto(shell.kind.kind, shell.kind.plural);
    synced.follow(
        tasks,
        "owner-watch",
        &shell.owners,
        owners.objects(client()),
        move |change| told.owner_changed(&change),
    );
    follow_rights(shell, environment);
    follow_definitions(shell, environment);
    tasks.spawn(
        "status-key-changes",
        follow_status_key(shell.clone(), tasks.token().clone()),
    );
}

/// Another key gives each secret value another digest.
async fn follow_status_key(shell: Arc<OwnerShell>, shutdown: CancellationToken) {
    let mut keys = shell.status_keys.clone();
    let follow = async {
        keys.known().await;
        let mut key = keys.now();
        while keys.replaced(&mut key).await {
            shell.wake_everyone();
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = follow => {}
    }
}

fn follow_rights(shell: &Arc<OwnerShell>, environment: Environment<'_>) {
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
        let told = shell.clone();
        let events = watched.metadata(environment.cluster.controller().clone());
        notice(environment.tasks, "rights-watch", events, move |key| {
            told.rights_changed(key.map(|key| &*key.namespace));
        });
    }
}

fn follow_definitions(shell: &Arc<OwnerShell>, environment: Environment<'_>) {
    let definitions = Watched {
        group: "apiextensions.k8s.io",
        version: "v1",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
    };
    let told = shell.clone();
    let noticed = move |key: Option<&ObjectKey>| match key {
        Some(key) => told.definition_changed(&key.name),
        None => told.definitions_missed(),
    };
    let events = definitions.metadata(environment.cluster.controller().clone());
    notice(environment.tasks, "definition-watch", events, noticed);
}

/// Follows a kind of which only the changes count.
fn notice(
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

fn template_plural(kind: TemplateKind) -> &'static str {
    match kind {
        TemplateKind::Source => "clustersourcetemplates",
        TemplateKind::Image => "clusterimagetemplates",
        TemplateKind::Config => "clusterconfigtemplates",
        TemplateKind::Plain => "clustertemplates",
        TemplateKind::Deployment => "clusterdeploymenttemplates",
        TemplateKind::Validation => "clusterdeploymentvalidationtemplates",
    }
}
