//! Immutable objects: one object per rendering, found again by what status knows of it.
//!
//! Labels, annotations and owner references are written by whoever may create objects in the namespace. So a member of a
//! family counts when its uid stands in the owner's status, when this process has just made it, or when the rendering's
//! values are in it: then it is the run that is due, whoever made it (a process that died before it wrote the status, the
//! Go controller). Everything else is looked at for retention only, where it is older than all others.

use std::fmt::Display;
use std::sync::Arc;

use api_types::labels;
use http::StatusCode;
use realizer::{Labels, Observation, Observed, Submission, Write};
use serde_json::Value;
use submission::{address, contains, marking, relabelling};

use super::attempt::Attempt;
use super::failure::{self, Failure, OwnerRequestError, contested, during, listing};
use super::family::{Member, is_member};
use super::{Applicant, Listed, Source, Submitted, Submitter, now};
use crate::cluster::{Call, Identity, encode};
use crate::stamped::{KnownAs, Stamped};

/// Whoever can create objects can also take the names that ours would have; so many further ones are tried.
const NAMES: u64 = 4;

impl Submitter {
    pub(super) async fn submit_immutable(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        listed: Listed,
    ) -> Result<Submitted, Failure> {
        let found = match listed.0 {
            Some(found) => found,
            None => self.find(applicant, submission, source).await?,
        };
        let mut members = Self::members(applicant, submission, source, found);
        if let Some(current) = members
            .iter()
            .find(|member| member.is_submitted(submission))
        {
            self.requests.avoided();
            let current = current.observed(source.served());
            return Ok(Self::family(source, current, &members, Write::Unchanged));
        }
        if submission.told.position.is_there {
            // It went between the look and now. What it came to is to be read first.
            let last = members
                .iter()
                .find(|member| member.was_submitted(submission));
            let last = last.ok_or(Failure::Behind)?.observed(source.served());
            return Ok(Self::family(source, last, &members, Write::Unchanged));
        }
        if let Some(wait) = self
            .render_loops
            .held_back(applicant.uid, submission, now())
            && let Some(newest) = members.iter().rev().find(|member| member.is_live())
        {
            let newest = newest.observed(source.served());
            let mut outcome = Self::family(source, newest, &members, Write::Deferred);
            outcome.look_again(wait);
            return Ok(outcome);
        }
        let run = self.attempt(applicant, submission, source);
        let (made, write) = if let Some(adopted) = run.adopt_unknown(&members, true).await? {
            (adopted, Write::Unchanged)
        } else {
            run.refuse_if_behind(&members).await?;
            self.hold_back_creation(applicant, submission, source)?;
            run.create().await?
        };
        members.retain(|member| member.object.key != made.key);
        let made = Member::of(made, &submission.told.runs, false);
        let current = made.observed(source.served());
        members.push(made);
        let mut outcome = Self::family(source, current, &members, write);
        let warning = self.render_loops.written(applicant, submission, now());
        outcome.told.extend(warning);
        Ok(outcome)
    }

    /// The members, of which one may be the rendering though nothing is known of any: the status was lost, or an earlier
    /// version wrote it.
    pub(super) async fn recognised(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        members: Vec<Member>,
    ) -> Result<Vec<Member>, Failure> {
        let run = self.attempt(applicant, submission, source);
        let Some(known) = run.adopt_unknown(&members, false).await? else {
            return Ok(members);
        };
        let told = &submission.told.runs;
        let replaced = members.into_iter().map(|member| {
            if member.object.key == known.key {
                Member::of(known.clone(), told, false)
            } else {
                member
            }
        });
        Ok(replaced.collect())
    }

    /// The members of the family: completely owned by this owner, all step labels equal; known ones in order of submission
    /// after all others. Those that are gone are among them as long as what they came to may not have been read.
    pub(super) fn members(
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        found: Vec<Arc<Stamped>>,
    ) -> Vec<Member> {
        let gone = match source {
            Source::Watch(watch) => watch.departed(applicant.uid),
            Source::Live(..) => Vec::new(),
        };
        let owner = applicant.key();
        let is_member = |object: &Arc<Stamped>| {
            object.belongs_to(applicant.kind, &owner, applicant.uid)
                && is_member(&object.labels(), &submission.family)
        };
        let told = &submission.told.runs;
        let found = found.into_iter().filter(is_member);
        let gone = gone.into_iter().filter(is_member);
        let mut members: Vec<Member> = found
            .map(|object| Member::of(object, told, false))
            .chain(gone.map(|object| Member::of(object, told, true)))
            .collect();
        members.sort_by_cached_key(|member| {
            let position = member.known.as_ref().map(|known| known.sequence);
            (position, member.claimed_age(), member.object.key.clone())
        });
        members
    }

    /// The objects of the owner, from the watch or, where the kind cannot be watched, from the server.
    pub(super) async fn find(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Result<Vec<Arc<Stamped>>, Failure> {
        match source {
            Source::Watch(watch) => Ok(watch.owned_by(&applicant.key(), applicant.uid)),
            Source::Live(watch, _) => {
                let selector = family_selector(&submission.family);
                let (account, namespace) = (&applicant.account, applicant.namespace.as_str());
                let listed = self
                    .requests
                    .list(account, watch.served(), namespace, &selector)
                    .await
                    .map_err(listing)?;
                let found = listed.iter().map(|value| {
                    let mut found = self.project(source, value);
                    let known = watch.get(&found.key);
                    if let Some(known) = known.filter(|known| known.uid == found.uid) {
                        found.memory.take_over(&known.memory);
                    }
                    Arc::new(found)
                });
                Ok(found.collect())
            }
        }
    }

    fn family(source: &Source, submitted: Observed, members: &[Member], write: Write) -> Submitted {
        let served = source.served();
        let mut members: Vec<_> = members
            .iter()
            .map(|member| member.observed(served))
            .collect();
        members.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
        let observation = Observation::Family {
            submitted,
            members,
            write,
        };
        let mut outcome = Submitted::plain(observation);
        Self::note_unwatched(source, &mut outcome);
        outcome
    }
}

/// Of an immutable object that is not known to be there.
impl Attempt<'_> {
    /// The newest member is the rendering, if the rendering's values are in it, and nothing else is known of it: status knows
    /// no member yet (an object of the Go controller, or of an earlier version), or it does not know the digest of this one
    /// (values of a Secret). A takeover runs nothing again. One without a digest is marked with it, if that may be written.
    async fn adopt_unknown(
        self,
        members: &[Member],
        may_write: bool,
    ) -> Result<Option<Arc<Stamped>>, Failure> {
        let nothing_known = members.iter().all(|member| member.known.is_none())
            && self.submission.told.runs.is_empty();
        let newest = members.iter().rev().find(|member| member.is_live());
        let Some(newest) = newest.filter(|newest| match &newest.known {
            None => nothing_known,
            Some(known) => known.digest.is_none(),
        }) else {
            return Ok(None);
        };
        let claimed = newest.object.claims.digest.as_deref();
        let is_other = claimed.map_or(!may_write, |claimed| claimed != self.submission.digest);
        if is_other {
            return Ok(None);
        }
        let name = newest.object.key.name.clone();
        let Some(live) = self.read(&name, "patch").await? else {
            return Ok(None);
        };
        let rendered = self.manifest().placed();
        if live["metadata"]["uid"] != *newest.object.uid || !contains(&live, &rendered) {
            return Ok(None);
        }
        let position = newest.known.as_ref().map(|known| known.sequence);
        let told = self.submission.told.position.sequence;
        let position = position.unwrap_or_else(|| told.max(1));
        if claimed.is_some() {
            return Ok(Some(self.known(&live, position)));
        }
        self.mark(&name, &newest.object.uid, &live, position).await
    }

    /// Writes the digest on an object of the Go controller, for people.
    async fn mark(
        self,
        name: &str,
        uid: &str,
        live: &Value,
        position: u64,
    ) -> Result<Option<Arc<Stamped>>, Failure> {
        let patch = marking(live, uid, &self.submission.digest);
        let body = self.patch(name, &patch).await?;
        Ok(Some(self.known(&body, position)))
    }

    async fn create(self) -> Result<(Arc<Stamped>, Write), Failure> {
        let first = self.submission.told.position.sequence;
        for sequence in first..first.saturating_add(NAMES) {
            let object = self.manifest().created(sequence);
            let object = object.map_err(|error| failure::rejected(format!("create: {error}")))?;
            failure::check_size(&object, self.submitter.longest)?;
            let served = self.source.served();
            let requests = &self.submitter.requests;
            match requests
                .create(&self.applicant.account, served, &object)
                .await
            {
                Ok(answer) => {
                    let brake = &self.submitter.brake;
                    brake.created(self.applicant.uid, &self.submission.resource, now());
                    return Ok((self.known(&answer.body, sequence), Write::Created));
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
        let stamped = self.submitter.project(self.source, &live);
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
        let claims_newer =
            |member: &Member| member.is_live() && member.object.claims.owner_generation > known;
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
        let cluster = self.submitter.requests.cluster();
        let answer = cluster.send(Identity::Controller, Call::get(path)).await;
        let answer = answer.map_err(|error| during("create", error.into()))?;
        let generation = answer.body["items"][0]["metadata"]["generation"].as_i64();
        if generation.is_some_and(|generation| generation > known) {
            return Err(Failure::Behind);
        }
        Ok(())
    }

    async fn read(self, name: &str, operation: &str) -> Result<Option<Value>, Failure> {
        let namespace = self.applicant.namespace.as_str();
        let requests = &self.submitter.requests;
        let live = requests.get(
            &self.applicant.account,
            self.source.served(),
            namespace,
            name,
        );
        live.await.map_err(|error| during(operation, error))
    }

    async fn patch(self, name: &str, patch: &Value) -> Result<Value, Failure> {
        let namespace = self.applicant.namespace.as_str();
        let requests = &self.submitter.requests;
        let (account, served) = (&self.applicant.account, self.source.served());
        let answer = requests
            .json_patch(account, served, namespace, name, patch)
            .await;
        let answer = answer.map_err(|error| during("patch", error))?;
        Ok(answer.body)
    }

    /// Takes a reply into the cache, and what is known of the object with it.
    fn known(self, body: &Value, sequence: u64) -> Arc<Stamped> {
        let mut stamped = self.submitter.project(self.source, body);
        stamped.memory.run = Some(Box::new(KnownAs {
            digest: Some(self.submission.digest.as_str().into()),
            sequence,
        }));
        Submitter::keep(self.source, stamped)
    }
}

/// The template name is left out: the Go controller leaves it empty for options.
fn family_selector(family: &Labels) -> String {
    selector_of(
        family
            .iter()
            .filter(|(key, _)| **key != labels::CLUSTER_TEMPLATE_NAME),
    )
}

/// A label selector in the words of a request.
pub(super) fn selector_of(
    labels: impl IntoIterator<Item = (impl Display, impl Display)>,
) -> String {
    let pairs: Vec<String> = labels
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}
