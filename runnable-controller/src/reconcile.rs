//! The reconcile of one Runnable (docs/behaviour/runnables.md#runs).

use std::collections::BTreeSet;
use std::sync::Arc;

use controller_kit::cluster::chain;
use controller_kit::mapper::Kind;
use controller_kit::owner::{
    Dependency, LiveOwners, Overload, OwnerShell, Realized, Realizes, StepObjects, Subject, Walk,
};
use controller_kit::stamped::ObjectKey;
use controller_kit::submit::{Applicant, SLOW_READ, SubmitError, Unavailable};
use controller_kit::tokens::Account;
use jiff::Timestamp;
use realizer::Outcome;
use realizer::runnable::{KIND, NotRun, Run, RunTemplate, Runnable, report_not_run};
use serde_json::Value;
use tokio::time::Instant;

use crate::controller::RunnableController;
use crate::templates::template;

impl Realizes for RunnableController {
    type Owner = Runnable;

    fn shell(&self) -> &Arc<OwnerShell> {
        &self.shell
    }

    fn dereference(&self, key: &ObjectKey) -> Option<Runnable> {
        let mut runnable = self
            .shell
            .read(key, Runnable::parse, Runnable::is_terminating)?;
        runnable.stamped_for = self.shell.stamped_for(key);
        Some(runnable)
    }

    fn subject<'o>(&self, runnable: &'o Runnable) -> Subject<'o> {
        Subject {
            namespace: &runnable.namespace,
            name: &runnable.name,
            uid: &runnable.uid,
            object: runnable.object(),
            ready: runnable.status_ready(),
        }
    }

    async fn realize(&self, runnable: &Runnable, now: Timestamp) -> Option<Realized> {
        let key = ObjectKey::of_owner(&runnable.namespace, &runnable.name);
        let template = Dependency::Template(runnable.run_template.as_str().into());
        // Waits before it looks: a template that changes in between would wake nobody.
        self.shell.dependencies.add(&key, template.clone());
        let mut realized = self.submit(&key, runnable, now).await?;
        realized.awaited.push(template);
        Some(realized)
    }

    fn stamped_kinds(&self) -> BTreeSet<Kind> {
        self.templates.stamped_kinds()
    }
}

impl RunnableController {
    async fn submit(
        &self,
        key: &ObjectKey,
        runnable: &Runnable,
        now: Timestamp,
    ) -> Option<Realized> {
        let accounts = &self.shell.account_args;
        let (namespace, name) = runnable.service_account(accounts.default_name());
        let not_run =
            |why, awaited| Realized::unrealized(report_not_run(runnable, why, now), awaited);
        let most = self.shell.limits.stamping_depth();
        if runnable.stamped_for.len() > most {
            return Some(not_run(NotRun::StampedTooDeep(most), Vec::new()));
        }
        let (size, most) = (self.shell.size_of(key), self.shell.limits.owner_bytes());
        if size > most {
            return Some(not_run(NotRun::TooLarge(size, most), Vec::new()));
        }
        let account = match self.shell.account(key, namespace, name) {
            Ok(account) => account,
            Err(awaited) => {
                let cause = format!("ServiceAccount \"{name}\" not found");
                let name = name.to_owned();
                return Some(not_run(
                    NotRun::ServiceAccount { name, cause },
                    vec![awaited],
                ));
            }
        };
        let awaited = || vec![Dependency::Account(account.key())];
        let template = match template(&self.templates, &runnable.run_template) {
            Ok(template) => template,
            Err(why) => return Some(not_run(why, awaited())),
        };
        let error = match self.run(runnable, &template, &account, now).await {
            Ok(realized) => return Some(realized),
            Err(SubmitError::Behind) => return None,
            Err(error) => error,
        };
        Some(match error.unavailable() {
            Ok(unavailable) => {
                let (overload, why) = self.bear(key, &unavailable);
                Realized {
                    overload: Some(overload),
                    ..not_run(NotRun::Unavailable(why), awaited())
                }
            }
            // The account may be fine and the API server not: looked at again, slowly.
            Err(error) => Realized {
                again: Some(SLOW_READ),
                ..not_run(NotRun::ServiceAccountToken(chain(&error)), awaited())
            },
        })
    }

    /// What the API server did not carry out, and the words for it.
    fn bear(&self, key: &ObjectKey, unavailable: &Unavailable) -> (Overload, String) {
        let (outages, now) = (&self.shell.outages, Instant::now());
        let overload = outages.met(key, unavailable, now);
        let why = if overload.is_borne {
            unavailable.failure.message.clone()
        } else {
            outages.words(key, "", unavailable, now)
        };
        (overload, why)
    }

    async fn run(
        &self,
        runnable: &Runnable,
        template: &RunTemplate,
        account: &Account,
        now: Timestamp,
    ) -> Result<Realized, SubmitError> {
        let look = self.select(runnable, account).await?;
        let live_owners = LiveOwners::new(&self.shell);
        let is_live_owner =
            |namespace: &str, name: &str, uid: &str| live_owners.has(namespace, name, uid);
        let applicant = Applicant {
            kind: KIND,
            plural: self.shell.kind.plural,
            namespace: &runnable.namespace,
            name: &runnable.name,
            uid: &runnable.uid,
            generation: runnable.generation,
            now,
            stamped_for: &runnable.stamped_for,
            account: account.clone(),
            is_live_owner: &is_live_owner,
            wanted_by_step: &|_: &str, _: &Value| true,
        };
        let step_objects = StepObjects::of(runnable.object());
        let reads = |kind: &Kind| self.templates.reads(kind);
        let mut walk = Walk::new(&self.shell, &applicant, &live_owners, &step_objects, &reads);
        let key = self.shell.status_keys.now();
        let run = Run::new(runnable, template, look.selected, now, key);
        let outcome = self.walk(run, runnable, look.unwatched, &mut walk).await?;
        let mut realized = walk.realized(outcome);
        realized.again = [realized.again, look.again].into_iter().flatten().min();
        realized.awaited.extend(look.awaited);
        Ok(realized)
    }

    async fn walk(
        &self,
        mut run: Run<'_>,
        runnable: &Runnable,
        unwatched: Option<String>,
        walk: &mut Walk<'_>,
    ) -> Result<Outcome, SubmitError> {
        walk.drive(&mut run, &self.ytt).await?;
        walk.watch_remembered(runnable.previous_refs()).await;
        // From here on these kinds are watched for it, and no others.
        let _ = walk.known_objects();
        let mut conclusion = run.conclude();
        conclusion.shell.unwatched = walk.unwatched().into_iter().chain(unwatched).collect();
        let removed = walk.remove(conclusion.removals()).await?;
        conclusion.shell.absent = removed.absent;
        Ok(conclusion.report(&removed.failed))
    }
}
