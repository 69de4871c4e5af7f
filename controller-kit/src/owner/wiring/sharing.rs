//! Following this replica's share of the owners: what is kept of it, and what is reconciled when there is more.

use std::sync::Arc;

use crate::owner::{BlueprintFamily, OwnerController, OwnerShell};
use crate::process::Process;
use crate::scheduler::Lane;
use crate::share::{OwnShare, Share};

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
    };
    process
        .tasks
        .spawn_until_stopped("share", follower.run(wake_beside));
}

struct Follower {
    shell: Arc<OwnerShell>,
    share: Arc<OwnShare>,
    /// What was held before,
    held: Share,
    /// and what was accepted.
    accepted: Share,
}

impl Follower {
    async fn run(mut self, wake_beside: impl Fn() + Send) {
        let (mut changes, mut listed) = (self.share.changes(), self.share.owners_listed());
        let mut read = None;
        loop {
            let listing = self.share.listing();
            self.follow_accepted();
            if let Some(number) = listing.filter(|number| read != Some(*number)) {
                self.shell.submitter.watches().read_anew();
                read = Some(number);
            }
            self.wake_gained(&wake_beside);
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                complete = listed.wait_for(|complete| listing.is_some_and(|it| *complete >= it)) => {
                    let Ok(complete) = complete.map(|complete| *complete) else {
                        return;
                    };
                    self.share.listed(complete);
                }
            }
        }
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
        let Some(share) = &self.shard.share.0 else {
            return;
        };
        self.owners
            .keep_only(|key| share.accepts(&key.namespace), &|change| {
                self.owner_changed(&change);
            });
        self.submitter.watches().keep_only_accepted();
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
