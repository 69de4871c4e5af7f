//! Immutable objects: one object per rendering, found again by what status knows of it.
//!
//! Labels, annotations and owner references are written by whoever may create objects in the namespace. So a member of a
//! family counts when its uid stands in the owner's status, when this process has just made it, or when the rendering's
//! values are in it: then it is the run that is due, whoever made it (a process that died before it wrote the status, the
//! Go controller). Everything else is looked at for retention only, where it is older than all others.

use std::sync::Arc;

use http::StatusCode;
use realizer::Write;
use serde_json::Value;
use submission::{Candidate, address, candidates, contains, is_rendering, marking, relabelling};

use super::attempt::Attempt;
use super::error::SubmitError;
use super::failure::{self, Failure, OwnerRequestError, contested, during};
use super::family::{Member, state_of};
use super::{Listed, Submitted, now};
use crate::cluster::{Call, Identity, encode};
use crate::stamped::{KnownAs, Stamped};

/// Whoever can create objects can also take the names that ours would have; so many further ones are tried.
const NAMES: u64 = 4;

/// Of an immutable object.
impl Attempt<'_> {
    pub(super) async fn submit_immutable(self, listed: Listed) -> Result<Submitted, Failure> {
        let found = match listed.0 {
            Some(found) => found,
            None => self.find().await?,
        };
        let mut members = self.members(found);
        if let Some(present) = self.present(&members)? {
            return Ok(present);
        }
        let (made, write) = if let Some(adopted) = self.adopt_unknown(&members, true).await? {
            (adopted, Write::Unchanged)
        } else {
            self.refuse_if_behind(&members).await?;
            self.hold_back_creation()?;
            self.create().await?
        };
        members.retain(|member| member.object.key != made.key);
        let made = Member::of(made, &self.submission.recorded.runs, false);
        let current = made.observed(self.served());
        members.push(made);
        let mut outcome = self.family(current, &members, write);
        let render_loops = &self.submitter.render_loops;
        let warning = render_loops.written(self.applicant, self.submission, now());
        outcome.events.extend(warning);
        Ok(outcome)
    }

    /// What is there, if nothing is to be made now.
    fn present(self, members: &[Member]) -> Result<Option<Submitted>, Failure> {
        let (submission, served) = (self.submission, self.served());
        let is_current = |member: &&Member| member.is_submitted(submission);
        if let Some(current) = members.iter().find(is_current) {
            self.submitter.requests.avoided();
            let current = current.observed(served);
            return Ok(Some(self.family(current, members, Write::Unchanged)));
        }
        if submission.recorded.position.is_there {
            // It went between the look and now. What it came to is to be read first.
            let was_current = |member: &&Member| member.was_submitted(submission);
            let last = members.iter().find(was_current);
            let last = last.ok_or(Failure::Reconcile(SubmitError::Behind))?;
            let last = last.observed(served);
            return Ok(Some(self.family(last, members, Write::Unchanged)));
        }
        let render_loops = &self.submitter.render_loops;
        let wait = render_loops.held_back(self.applicant.uid, submission, now());
        let newest = members.iter().rev().find(|member| member.is_live());
        let (Some(wait), Some(newest)) = (wait, newest) else {
            return Ok(None);
        };
        let mut outcome = self.family(newest.observed(served), members, Write::Deferred);
        outcome.look_again(wait);
        Ok(Some(outcome))
    }

    /// The members, of which one may be the rendering though nothing is known of any: the status was lost, or an earlier
    /// version wrote it.
    pub(super) async fn recognised(self, members: Vec<Member>) -> Result<Vec<Member>, Failure> {
        let Some(known) = self.adopt_unknown(&members, false).await? else {
            return Ok(members);
        };
        let recorded = &self.submission.recorded.runs;
        let replaced = members.into_iter().map(|member| {
            if member.object.key == known.key {
                Member::of(known.clone(), recorded, false)
            } else {
                member
            }
        });
        Ok(replaced.collect())
    }

    /// The newest member is the rendering, or the one created last, if the rendering's values are in it, and nothing else is
    /// known of it: status knows no member yet (an object of the Go controller, or of an earlier version), or it does not know
    /// the digest of this one (values of a Secret). A takeover runs nothing again. One without a digest is marked with it, if
    /// that may be written.
    async fn adopt_unknown(
        self,
        members: &[Member],
        may_write: bool,
    ) -> Result<Option<Arc<Stamped>>, Failure> {
        let nothing_known = members.iter().all(|member| member.known.is_none())
            && self.submission.recorded.runs.is_empty();
        let live: Vec<&Member> = members.iter().filter(|member| member.is_live()).collect();
        let created: Vec<String> = live.iter().map(|member| member.created()).collect();
        for place in candidates(&created) {
            let found = self.adopt_if_rendering(live[place], nothing_known, may_write);
            if let Some(found) = found.await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn adopt_if_rendering(
        self,
        newest: &Member,
        nothing_known: bool,
        may_write: bool,
    ) -> Result<Option<Arc<Stamped>>, Failure> {
        let claimed = newest.object.annotations.digest.as_deref();
        let known = newest.known.as_ref().map(|known| known.digest.as_deref());
        let candidate = Candidate {
            known,
            nothing_known,
            claimed,
        };
        if !candidate.may_be(&self.submission.digest, may_write) {
            return Ok(None);
        }
        let name = newest.object.key.name.clone();
        let Some(live) = self.read(&name, "patch").await? else {
            return Ok(None);
        };
        let rendered = self.manifest().placed();
        if !is_rendering(&live, &newest.object.uid, &rendered) {
            return Ok(None);
        }
        let position = newest.known.as_ref().map(|known| known.sequence);
        let recorded = self.submission.recorded.position.sequence;
        let position = position.unwrap_or_else(|| recorded.max(1));
        if claimed.is_some() {
            return Ok(Some(self.known(&live, position)));
        }
        // On an object of the Go controller the digest is written, for people.
        let patch = marking(&live, &newest.object.uid, &self.submission.digest);
        let body = self.patch(&name, &patch).await?;
        Ok(Some(self.known(&body, position)))
    }

    async fn create(self) -> Result<(Arc<Stamped>, Write), Failure> {
        let first = self.submission.recorded.position.sequence;
        for sequence in first..first.saturating_add(NAMES) {
            let object = self.manifest().created(sequence);
            let object = object.map_err(|error| failure::rejected(format!("create: {error}")))?;
            failure::check_size(&object, self.submitter.longest)?;
            match self.client().create(&object).await {
                Ok(answer) => {
                    self.count_creation();
                    return Ok((self.made(&answer.body, sequence), Write::Created));
                }
                Err(OwnerRequestError::Request(error))
                    if error.is(StatusCode::CONFLICT) && !error.passes_by_itself() =>
                {
                    if let Some(adopted) = self.adopt(&object, sequence).await? {
                        return Ok(adopted);
                    }
                    let is_generated = self.submission.object["metadata"]["name"]
                        .as_str()
                        .is_none_or(str::is_empty);
                    if !is_generated {
                        return Err(during("create", OwnerRequestError::Request(error)));
                    }
                }
                Err(error) => return Err(during("create", error)),
            }
        }
        Err(contested(format!(
            "other objects have the names that [{}] would have; delete those in namespace [{}] whose name begins so and that \
             no controller made",
            address(self.submission),
            self.applicant.namespace,
        )))
    }

    /// A create that answers AlreadyExists was done before, and the object is ours, if the rendering is in it: its reply was
    /// lost, or somebody stripped the label by which the watch would show it. The labels are put back, or nobody would hear
    /// of the object any more.
    async fn adopt(
        self,
        object: &Value,
        sequence: u64,
    ) -> Result<Option<(Arc<Stamped>, Write)>, Failure> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let Some(live) = self.read(name, "create").await? else {
            return Ok(None);
        };
        let applicant = self.applicant;
        let stamped = self.project(&live);
        let ours = stamped.belongs_to(applicant.kind, &applicant.key(), applicant.uid);
        let mut unlabelled = self.manifest().placed();
        if let Some(metadata) = unlabelled["metadata"].as_object_mut() {
            metadata.remove("labels");
        }
        if !ours || stamped.terminating || !contains(&live, &unlabelled) {
            return Ok(None);
        }
        let Some(patch) = relabelling(&live, object) else {
            return Ok(Some((self.known(&live, sequence), Write::Unchanged)));
        };
        let body = self.patch(name, &patch).await?;
        Ok(Some((self.known(&body, sequence), Write::Patched)))
    }

    /// A process that has lost its leadership knows an older owner than its successor. It must not run for that what nobody
    /// wants any more. What an object says of the owner's generation is not believed: the API server is asked.
    async fn refuse_if_behind(self, members: &[Member]) -> Result<(), Failure> {
        let known = self.applicant.generation;
        let claims_newer = |member: &Member| {
            member.is_live() && member.object.annotations.owner_generation > known
        };
        if !members.iter().any(claims_newer) {
            return Ok(());
        }
        let path = format!(
            "/apis/{}/namespaces/{}/{}?fieldSelector={}",
            api_types::API_VERSION,
            encode(self.applicant.namespace.as_str()),
            self.applicant.plural,
            encode(&format!("metadata.name={}", self.applicant.name)),
        );
        let cluster = &self.submitter.requests.cluster;
        let answer = cluster.send(Identity::Controller, Call::get(path)).await;
        let answer = answer.map_err(|error| during("create", error.into()))?;
        let generation = answer.body["items"][0]["metadata"]["generation"].as_i64();
        if generation.is_some_and(|generation| generation > known) {
            return Err(Failure::Reconcile(SubmitError::Behind));
        }
        Ok(())
    }

    async fn read(self, name: &str, operation: &str) -> Result<Option<Value>, Failure> {
        let live = self.client().get(&self.place(name)).await;
        live.map_err(|error| during(operation, error))
    }

    async fn patch(self, name: &str, patch: &Value) -> Result<Value, Failure> {
        let answer = self.client().json_patch(&self.place(name), patch).await;
        let answer = answer.map_err(|error| during("patch", error))?;
        Ok(answer.body)
    }

    /// Takes the reply to a create into the cache: nobody else has put anything into the object.
    fn made(self, body: &Value, sequence: u64) -> Arc<Stamped> {
        let mut stamped = self.project(body);
        let beside = stamped.beside.as_ref();
        let beside = beside.map(|beside| beside.digests().collect());
        self.know(&mut stamped, sequence, beside);
        self.keep(stamped)
    }

    /// Takes a reply into the cache, and what is known of the object with it.
    fn known(self, body: &Value, sequence: u64) -> Arc<Stamped> {
        let mut stamped = self.project(body);
        self.know(&mut stamped, sequence, None);
        self.keep(stamped)
    }

    fn know(self, stamped: &mut Stamped, sequence: u64, beside: Option<Vec<String>>) {
        let mut known = KnownAs {
            digest: Some(self.submission.digest.as_str().into()),
            sequence,
            state: None,
            beside: beside.filter(|_| self.submission.refuses_foreign_fields),
        };
        // The values are those of the rendering: it has just been created, or compared with it.
        known.state = state_of(stamped, &known).map(Box::from);
        stamped.memory.run = Some(Box::new(known));
    }
}
