//! One walk for one owner: the engine asks, the cluster answers.

mod artifacts;

use std::collections::BTreeSet;
use std::time::Duration;

use api_types::{EventReason, ResourceName};
use realizer::{
    Ask, AskFeed, FailedRemoval, FoundObject, KnownObject, Looked, ObjectQuery, ObjectRef,
    Observation, Outcome, Removal, Submission, SubmitFailure, SubmitFailureKind, Unread,
};
use tokio::time::Instant;
use tracing::{Instrument as _, debug, debug_span, instrument};

use super::{Dependency, LiveOwners, Overload, OwnerShell, Realized, Unselected, Wanted};
use crate::mapper::Kind;
use crate::selections::{NotOne, Selection};
use crate::stamped::{ObjectKey, Projection};
use crate::submit::{Applicant, Deletion, Listed, SubmitError, Submitted};
use crate::telemetry::TRACED;
use crate::ytt::Ytt;
use submission::StepObjects;

/// Where the paths come from that are read on objects of a kind.
pub type Reads<'w> = &'w (dyn Fn(&Kind) -> Projection + Send + Sync);

/// Where one object has labels and several are found, so many of them are named.
const MOST_NAMED: usize = 4;

/// What was not deleted of what is not wanted any more.
#[derive(Debug, Default)]
pub struct Removed {
    /// What could not be, and why.
    pub failed: Vec<FailedRemoval>,
    /// What was gone already, or on its way out.
    pub absent: Vec<Removal>,
}

/// One walk: for whom it is, and what it collects beside the outcome.
pub struct Walk<'w> {
    shell: &'w OwnerShell,
    applicant: &'w Applicant<'w>,
    live_owners: &'w LiveOwners<'w>,
    step_objects: &'w StepObjects<'w>,
    reads: Reads<'w>,
    again: Option<Duration>,
    awaited: Vec<Dependency>,
    events: Vec<(EventReason, String)>,
    unwatched: BTreeSet<String>,
    kinds: BTreeSet<Kind>,
    /// What its rules read beside what it stamps.
    selections: Vec<Selection>,
    /// What the last look listed, and for which step.
    listed: Option<(ResourceName, Listed)>,
    /// What the API server did not carry out.
    overload: Option<Overload>,
}

impl<'w> Walk<'w> {
    /// Nothing asked yet. `live_owners` is what the applicant asks, too. A watch is started with all paths that `reads` says, so that it need not grow.
    pub fn new(
        shell: &'w OwnerShell,
        applicant: &'w Applicant<'w>,
        live_owners: &'w LiveOwners<'w>,
        step_objects: &'w StepObjects<'w>,
        reads: Reads<'w>,
    ) -> Self {
        Self {
            shell,
            applicant,
            live_owners,
            step_objects,
            reads,
            again: None,
            awaited: Vec::new(),
            events: Vec::new(),
            unwatched: BTreeSet::new(),
            kinds: BTreeSet::new(),
            selections: Vec::new(),
            listed: None,
            overload: None,
        }
    }

    /// Answers the machine until it asks no more, or until the API server does not carry out a request: as nothing is said of
    /// that at first, nothing more is asked either.
    ///
    /// # Errors
    /// When the owner's service account gives no token.
    pub async fn drive(
        &mut self,
        machine: &mut (impl AskFeed + Send),
        ytt: &Ytt,
    ) -> Result<(), SubmitError> {
        loop {
            match machine.next() {
                Ask::Render(call) => {
                    let span = debug_span!(target: TRACED, "render", step = %call.resource);
                    let rendering = ytt.render(self.applicant.namespace.as_str(), &call);
                    machine.record_rendered(rendering.instrument(span).await);
                }
                Ask::Look(submission) => match self.look(&submission).await? {
                    Some(looked) => machine.record_looked(looked),
                    None => return Ok(()),
                },
                Ask::Submit(submission) => match self.submit(&submission).await? {
                    Some(observation) => machine.record_observed(observation),
                    None => return Ok(()),
                },
                Ask::Read(query) => match self.read(&query).await? {
                    Some(found) => machine.record_read(found),
                    None => return Ok(()),
                },
                Ask::Done => return Ok(()),
            }
        }
    }

    /// What becomes of a step that the API server prevented: `None` while nothing is said of that, and the walk ends.
    fn bear(
        &mut self,
        step: &str,
        error: SubmitError,
    ) -> Result<Option<SubmitFailure>, SubmitError> {
        // A token is needed for every step, so that it is told of the owner and not of a step.
        let is_of_owner = matches!(error, SubmitError::Token(_));
        let mut unavailable = error.unavailable()?;
        let (owner, now) = (self.applicant.key(), Instant::now());
        let outages = &self.shell.outages;
        let overload = outages.met(&owner, &unavailable, now).and(self.overload);
        self.overload = Some(overload);
        if overload.is_borne {
            let why = &unavailable.failure.message;
            debug!(step, %why, "not carried out; trying again");
            return Ok(None);
        }
        let step = if is_of_owner { "" } else { step };
        unavailable.failure.message = outages.words(&owner, step, &unavailable, now);
        if is_of_owner {
            return Err(SubmitError::Unavailable(unavailable));
        }
        Ok(Some(unavailable.failure))
    }

    /// Whether the walk has ended early, and nothing is said of it.
    fn is_broken_off(&self) -> bool {
        self.overload.is_some_and(|overload| overload.is_borne)
    }

    #[instrument(level = "debug", target = TRACED, skip_all, fields(step = %submission.resource))]
    async fn submit(
        &mut self,
        submission: &Submission,
    ) -> Result<Option<Observation>, SubmitError> {
        self.step_objects
            .walk(&submission.resource, &submission.object);
        let kind = Kind::of(&submission.object);
        let needed = self.use_kind(submission, kind.as_ref());
        let listed = self.listed.take();
        let listed = listed.filter(|(step, _)| *step == submission.resource);
        let listed = listed.map(|(_, listed)| listed).unwrap_or_default();
        let submitted = match self.send(submission, &needed, listed).await {
            Ok(submitted) => submitted,
            Err(error) => {
                // Without an answer it may have been carried out.
                let owner = self.applicant.key();
                self.shell.selections.outdate_all(&owner);
                let step = submission.resource.as_str();
                return Ok(self.bear(step, error)?.map(Observation::Failed));
            }
        };
        if let Observation::Failed(failure) = &submitted.observation {
            self.await_what_failed(failure.kind, kind.as_ref(), submission);
        }
        if let Some(text) = submitted.unwatched {
            self.unwatched.insert(text);
            self.await_rights();
        }
        self.kinds.extend(kind);
        if let Some(again) = submitted.again {
            self.look_again(again);
        }
        self.events.extend(submitted.events);
        Ok(Some(submitted.observation))
    }

    /// Submits; once more if an object was left to an owner that turns out to be gone.
    async fn send(
        &self,
        submission: &Submission,
        needed: &Projection,
        listed: Listed,
    ) -> Result<Submitted, SubmitError> {
        let (submitter, applicant) = (&self.shell.submitter, self.applicant);
        let submitted = submitter
            .submit(applicant, submission, needed, listed)
            .await?;
        if !self.live_owners.have_changed().await {
            return Ok(submitted);
        }
        let nothing_listed = Listed::default();
        submitter
            .submit(applicant, submission, needed, nothing_listed)
            .await
    }

    /// What a step that failed waits for.
    fn await_what_failed(
        &mut self,
        failure: SubmitFailureKind,
        kind: Option<&Kind>,
        submission: &Submission,
    ) {
        match failure {
            SubmitFailureKind::Forbidden => self.await_rights(),
            SubmitFailureKind::Rejected | SubmitFailureKind::List => {
                let group = kind.map(|kind| Dependency::Group(kind.group().into()));
                self.awaited.extend(group);
            }
            SubmitFailureKind::Contested => {
                self.look_again(crate::submit::SLOW_READ);
                self.await_object(kind, submission);
            }
            // The machine looks again; what is there now is known. And what is prevented comes by itself. An edit makes smaller
            // what is too large, and what waits for its turn says itself for how long.
            SubmitFailureKind::TooLarge
            | SubmitFailureKind::TooOften
            | SubmitFailureKind::AnswerTooLarge
            | SubmitFailureKind::Stale
            | SubmitFailureKind::Unavailable => {}
        }
    }

    /// Somebody else's object stands where ours is to be: its end is heard of.
    fn await_object(&mut self, kind: Option<&Kind>, submission: &Submission) {
        let name = submission.object["metadata"]["name"].as_str();
        let (Some(kind), Some(name)) = (kind, name) else {
            return;
        };
        // Whether the kind is namespaced is not known here; no kind has both.
        for namespace in [self.applicant.namespace.as_str(), ""] {
            let what = Dependency::Object(kind.clone(), ObjectKey::new(namespace, name));
            // Before it is watched: what the watch tells before this walk ends would wake nobody.
            let owner = self.applicant.key();
            self.shell.dependencies.add(&owner, what.clone());
            self.awaited.push(what);
        }
        let watches = self.shell.submitter.watches();
        watches.attend(kind, self.applicant.namespace.as_str(), name);
    }

    /// Has the kind watched for this owner; returns the paths to keep of its objects.
    fn use_kind(&mut self, submission: &Submission, kind: Option<&Kind>) -> Projection {
        let mut needed = Projection::new(submission.reads.iter().cloned());
        if let Some(kind) = kind {
            if !self.shell.submitter.watches().covers(kind, &needed) {
                needed.grow(&(self.reads)(kind));
            }
            self.shell
                .submitter
                .watches()
                .add_use(self.applicant.uid, kind);
        }
        needed
    }

    #[instrument(level = "debug", target = TRACED, skip_all, fields(step = %submission.resource))]
    async fn look(&mut self, submission: &Submission) -> Result<Option<Looked>, SubmitError> {
        let kind = Kind::of(&submission.object);
        let needed = self.use_kind(submission, kind.as_ref());
        let (submitter, applicant) = (&self.shell.submitter, self.applicant);
        let mut looked = submitter.look(applicant, submission, &needed).await;
        if self.live_owners.have_changed().await {
            looked = submitter.look(applicant, submission, &needed).await;
        }
        let (looked, listed) = match looked {
            Ok(looked) => looked,
            Err(error) => {
                let step = submission.resource.as_str();
                return Ok(self.bear(step, error)?.map(Err));
            }
        };
        self.listed = Some((submission.resource.clone(), listed));
        if let Err(failure) = &looked {
            self.await_what_failed(failure.kind, kind.as_ref(), submission);
        }
        self.kinds.extend(kind);
        Ok(Some(looked))
    }

    /// An object that a rule reads beside the stamped one.
    #[instrument(level = "debug", target = TRACED, skip_all, fields(step = %query.resource))]
    async fn read(&mut self, query: &ObjectQuery) -> Result<Option<FoundObject>, SubmitError> {
        let wanted = Wanted {
            owner: &self.applicant.key(),
            account: &self.applicant.account,
            kind: Kind::new(&query.api_version, &query.kind),
            choice: query.choice.clone(),
            most: MOST_NAMED,
            part: Some(Projection::new(query.reads.iter().cloned())),
            is_fresh: query.is_fresh,
            needed: query.needed,
        };
        let selected = match self.shell.select(wanted).await {
            Ok(selected) => selected,
            Err(error) => {
                let borne = self.bear(query.resource.as_str(), error)?;
                return Ok(borne.map(|failure| Err(Unread::Unavailable(failure.message)).into()));
            }
        };
        self.selections.extend(selected.selection);
        self.awaited.extend(selected.awaited);
        self.unwatched.extend(selected.unwatched);
        if let Some(again) = selected.again {
            self.look_again(again);
        }
        Ok(Some(FoundObject {
            object: selected.object.map_err(unread),
            version: selected.version,
        }))
    }

    /// From here on the objects that were read are watched for this owner, and no others.
    pub fn retain_selections(&mut self) {
        let (owner, followed) = (self.applicant.key(), &self.shell.selections);
        if self.is_broken_off() {
            // It did not come to all of them, and may have applied something without a look at what the rules read besides.
            followed.outdate_all(&owner);
        } else {
            followed.retain(&owner, &self.selections);
        }
    }

    /// Kinds that status remembers and this walk did not come to: the step has gone, or failed early. After a restart
    /// nobody watches them, and of a family status names one member only; the others would never be found.
    pub async fn watch_remembered(&mut self, objects: Vec<ObjectRef>) {
        if self.is_broken_off() {
            return;
        }
        for object in objects {
            let kind = Kind::new(&object.api_version, &object.kind);
            if !self.kinds.contains(&kind) {
                self.shell.submitter.watch(&kind).await;
                self.kinds.insert(kind);
            }
        }
    }

    /// The objects of this owner. From here on the kinds of these and of the walk are watched for it, and no others.
    pub fn known_objects(&mut self) -> Vec<KnownObject> {
        let watches = self.shell.submitter.watches();
        let owner = self.applicant.key();
        let (kind, uid) = (self.applicant.kind, self.applicant.uid);
        let known: Vec<KnownObject> = watches
            .owned_by(&owner, uid)
            .into_iter()
            .filter(|(_, object)| object.belongs_to(kind, &owner, uid))
            .map(|(served, object)| KnownObject {
                object: object.reference(&served),
                labels: object.labels(),
                terminating: object.terminating,
            })
            .collect();
        let kinds = known
            .iter()
            .map(|known| Kind::new(&known.object.api_version, &known.object.kind));
        self.kinds.extend(kinds);
        // A walk that ended early did not come to all of them.
        if !self.is_broken_off() {
            watches.set_uses(self.applicant.uid, std::mem::take(&mut self.kinds));
        }
        known
    }

    /// What is missing to watch the kinds of this walk.
    pub fn unwatched(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.unwatched)
    }

    /// Deletes; says what was not deleted.
    ///
    /// # Errors
    /// When the owner's service account gives no token, or the owner may be in another shard by now.
    pub async fn remove(&mut self, removals: &[Removal]) -> Result<Removed, SubmitError> {
        let mut removed = Removed::default();
        let (owner, uid) = (self.applicant.key(), self.applicant.uid);
        if !removals.is_empty() && !self.shell.is_still_ours(&owner, uid).await {
            return Err(SubmitError::Behind);
        }
        for removal in removals {
            match self.remove_one(removal).await? {
                Ok(Deletion::Accepted) => {}
                Ok(Deletion::Needless) => removed.absent.push(removal.clone()),
                Err(why) => removed.failed.push((removal.clone(), why)),
            }
        }
        let is_refused = |(_, why): &FailedRemoval| why.kind != SubmitFailureKind::Unavailable;
        if removed.failed.iter().any(is_refused) {
            self.await_rights();
            // Not every change of rights has an event: a policy or a webhook may have forbidden it.
            self.look_again(crate::submit::SLOW_READ);
        }
        Ok(removed)
    }

    #[instrument(level = "debug", target = TRACED, name = "remove", skip_all, fields(step = %removal.resource))]
    async fn remove_one(
        &mut self,
        removal: &Removal,
    ) -> Result<Result<Deletion, SubmitFailure>, SubmitError> {
        // Nobody is told of it.
        let not_tried = SubmitFailure {
            kind: SubmitFailureKind::Unavailable,
            message: String::new(),
        };
        if self.is_broken_off() {
            return Ok(Err(not_tried));
        }
        match self.shell.submitter.remove(self.applicant, removal).await {
            Ok(removed) => Ok(removed),
            Err(error) => {
                let borne = self.bear(removal.resource.as_str(), error)?;
                Ok(Err(borne.unwrap_or(not_tried)))
            }
        }
    }

    /// What it came to, for the report.
    pub fn realized(mut self, outcome: Outcome) -> Realized {
        let account = &self.applicant.account;
        // That it goes is told at once, not with the next write
        // (docs/behaviour/service-accounts.md#missing).
        let account = ObjectKey::new(&account.namespace, &account.name);
        self.awaited.push(Dependency::Account(account));
        Realized {
            outcome,
            again: self.again,
            awaited: self.awaited,
            events: self.events,
            overload: self.overload,
        }
    }

    fn await_rights(&mut self) {
        let applicant = self.applicant;
        // The binding is where the objects are, which is not where a lent account is; a role may be in either.
        for namespace in [applicant.namespace.as_str(), &applicant.account.namespace] {
            let rights = Dependency::Rights(namespace.into());
            if !self.awaited.contains(&rights) {
                self.awaited.push(rights);
            }
        }
    }

    fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |earlier| earlier.min(after)));
    }
}

/// Why an object is not read, for the engine.
fn unread(why: Unselected) -> Unread {
    match why {
        Unselected::Unneeded => Unread::Unneeded,
        Unselected::Unmapped(error) => Unread::Unserved(error.to_string()),
        Unselected::NotOne(NotOne::None) => Unread::Missing,
        Unselected::NotOne(NotOne::Several(names)) => Unread::Several(names),
        Unselected::Refused { failure, .. } if failure.kind == SubmitFailureKind::Forbidden => {
            Unread::Refused(failure.message)
        }
        Unselected::Refused { failure, .. } => Unread::Unserved(failure.message),
    }
}
