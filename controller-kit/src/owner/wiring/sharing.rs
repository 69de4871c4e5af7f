//! Following this replica's share of the owners: what is kept of it, and what is reconciled when there is more.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use tokio::time::timeout;
use tracing::info;

use crate::cluster::chain;
use crate::owner::{BlueprintFamily, OwnerController, OwnerShell};
use crate::process::Process;
use crate::scheduler::Lane;
use crate::share::{DueListing, Growth, OwnShare, Share};

/// A listing of the namespaces that takes longer is not waited for: everything is listed.
const NAMESPACES: Duration = Duration::from_secs(5);

/// Between two listings that only spare others from being sent what is dropped.
const BETWEEN: Duration = Duration::from_secs(30);

/// Namespaces per page of a listing.
const PAGE: u32 = 500;

/// Keeps what is in memory in step with the share. `wake_beside` wakes what is reconciled beside the owners.
pub(super) fn follow_share(
    shell: &Arc<OwnerShell>,
    share: &Arc<OwnShare>,
    process: &Process,
    wake_beside: impl Fn() + Send + 'static,
) {
    let follower = Follower {
        shell: shell.clone(),
        share: share.clone(),
        held: Share::Nothing,
        accepted: Share::Nothing,
        due: None,
    };
    let client = shell.cluster.controller().clone();
    let knowing = know_namespaces(client, share.clone());
    let tasks = &process.tasks;
    tasks.spawn_until_stopped("share-namespaces", knowing);
    tasks.spawn_until_stopped("share", follower.run(wake_beside));
}

/// Lists the namespaces when something arrives from one that is not known: watches leave out those of others.
async fn know_namespaces(client: kube::Client, share: Arc<OwnShare>) {
    loop {
        share.meets_another().await;
        if let Ok(Ok(namespaces)) = timeout(NAMESPACES, namespaces(client.clone())).await {
            share.knows_of(&namespaces);
        }
        tokio::time::sleep(BETWEEN).await;
    }
}

struct Follower {
    shell: Arc<OwnerShell>,
    share: Arc<OwnShare>,
    /// What was held before,
    held: Share,
    /// and what was accepted.
    accepted: Share,
    /// The newest listing that was told to be due.
    due: Option<u64>,
}

impl Follower {
    async fn run(mut self, wake_beside: impl Fn() + Send) {
        let (mut changes, mut listed) = (self.share.changes(), self.share.owners_listed());
        loop {
            self.follow_accepted();
            self.list_gained().await;
            self.wake_gained(&wake_beside);
            // The kinds have been told of this one, so that nobody relies on what they held before.
            let awaited = self.share.listing().filter(|it| self.due == Some(*it));
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                complete = listed.wait_for(|complete| awaited == Some(*complete)) => {
                    let Ok(complete) = complete.map(|complete| *complete) else {
                        return;
                    };
                    self.share.listed(complete);
                }
            }
        }
    }

    /// Has the watches list what is gained. The order matters (`share/gained.rs`).
    async fn list_gained(&mut self) {
        let Some(growth) = self.share.take_growth(self.due.unwrap_or_default()) else {
            if self.due.is_none() && self.share.is_known() {
                // Nothing is to be listed, and whoever waits for it is told.
                self.due = Some(0);
                self.share.is_due(DueListing::default());
            }
            return;
        };
        let due = self.due_after(&growth).await;
        self.due = Some(due.number);
        self.share.is_due(due);
        self.shell.submitter.watches().read_anew();
    }

    async fn due_after(&self, growth: &Growth) -> DueListing {
        if growth.is_of_everything() {
            return DueListing::everything(growth.number());
        }
        self.shell.keep_only(|namespace| growth.stays(namespace));
        let client = self.shell.cluster.controller().clone();
        let why = match timeout(NAMESPACES, namespaces(client)).await {
            Ok(Ok(mut namespaces)) => {
                self.share.knows_of(&namespaces);
                namespaces.retain(|it| self.shell.shard.selects(it));
                return growth.among(&namespaces);
            }
            Ok(Err(error)) => chain(&error),
            Err(late) => chain(&late),
        };
        info!(error = %why, "namespaces cannot be listed, so that everything is read anew; allow the controller to list them");
        DueListing::everything(growth.number())
    }

    /// Drops what fell to others. Accounts may be lent to owners elsewhere; their tokens are asked for again.
    fn follow_accepted(&mut self) {
        let accepted = self.share.accepted();
        if accepted != self.accepted {
            self.shell.keep_only_accepted();
            self.shell.scheduler.share_among(accepted.replicas());
            let tokens = &self.shell.tokens;
            tokens.keep_only(|namespace| accepted.takes(namespace));
            self.accepted = accepted;
        }
    }

    /// What falls to this replica now was reconciled by another before: nobody else wakes it here. Whoever waits for
    /// something changed it last, and need not wait for the thousands that did not.
    fn wake_gained(&mut self, wake_beside: &impl Fn()) {
        let held = self.share.held();
        let before = std::mem::replace(&mut self.held, held);
        let is_gained = |namespace: &str| self.held.takes(namespace) && !before.takes(namespace);
        if self.held == before {
            return;
        }
        let owners = &self.shell.owners;
        let gained = owners.newest_first(|key| is_gained(&key.namespace));
        self.shell.wake_all(gained, None);
        let watches = self.shell.submitter.watches();
        watches.wake_for_cluster_scoped(is_gained);
        if is_gained("") {
            wake_beside();
        }
    }
}

impl OwnerShell {
    /// Drops what fell to others: they see to it.
    pub(crate) fn keep_only_accepted(&self) {
        if let Some(share) = &self.shard.share.0 {
            self.keep_only(|namespace| share.accepts(namespace));
        }
    }

    /// Drops what is in other namespaces.
    fn keep_only(&self, is_kept: impl Fn(&str) -> bool) {
        self.owners
            .keep_only(|key| is_kept(&key.namespace), &|change| {
                self.owner_changed(&change);
            });
        self.submitter.watches().keep_only(is_kept);
    }
}

/// The names of all namespaces, as they are now.
async fn namespaces(client: kube::Client) -> Result<Vec<Box<str>>, kube::Error> {
    let api: Api<Namespace> = Api::all(client);
    let mut params = ListParams::default().limit(PAGE);
    let mut names = Vec::new();
    loop {
        let page = api.list_metadata(&params).await?;
        let shown = page.items.into_iter();
        names.extend(shown.filter_map(|it| it.metadata.name.map(Box::from)));
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(names),
        }
    }
}

impl<F: BlueprintFamily> OwnerController<F> {
    /// Another replica reported on them before.
    pub(super) fn wake_blueprints(&self) {
        for (key, _) in self.blueprints.all() {
            self.blueprint_scheduler.wake(key, Lane::Fresh, None);
        }
    }
}
