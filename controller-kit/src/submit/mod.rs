//! Making the cluster hold one stamped object, with the owner's rights.
//!
//! ```text
//! Submission ─▶ held? ─▶ unchanged ───────────────────────────▶ Observation (no request)
//!                 │
//!                 ├─▶ refused before, and nothing changed ────▶ the same failure (no request)
//!                 ├─▶ belongs to somebody else ───────────────▶ Failed(Contested)
//!                 ├─▶ undone again and again ─ spaced out ────▶ Observation, look again later
//!                 ├─▶ changed by our status only ─ spaced out ▶ Observation, look again later
//!                 └─▶ apply / create ─▶ overlay the cache ────▶ Observation
//! ```

mod attempt;
mod backoff;
mod brake;
mod conflict_backoff;
mod failure;
mod family;
mod holder;
mod immutable;
mod look;
mod mutable;
mod refused;
mod remove;
mod render_loop;
mod requests;
mod select;
mod strangers;

use std::sync::Arc;
use std::time::Duration;

use api_types::{EventReason, NamespaceName, ObjectName};
use jiff::Timestamp;
use realizer::{Observation, Submission};
use serde_json::Value;
use submission::OwnerFacts;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::mapper::{Kind, Mapper, Served};
use crate::openapi::SchemaCache;
use crate::stamped::{KindWatch, ObjectKey, Projection, Readiness, Stamped, StampedWatches};
use crate::tokens::{Account, TokenCache};

pub use conflict_backoff::ConflictBackoff;
pub use failure::{Hurdle, SubmitError, Unavailable};
pub use remove::Deletion;

use brake::Brake;
use refused::{Attempted, Beside, KnownRefusals, Refused};
use render_loop::RenderLoopGuard;
use requests::Requests;
use strangers::Strangers;

/// How often a watch may be replaced by a greater one while it is waited for.
const REPLACEMENTS: u32 = 8;

/// For whom an object is submitted.
#[derive(Clone)]
pub struct Applicant<'a> {
    /// Kind of the owner.
    pub kind: &'static str,
    /// Plural of that kind, as in URLs.
    pub plural: &'static str,
    /// Namespace of the owner.
    pub namespace: &'a NamespaceName,
    /// Name of the owner.
    pub name: &'a ObjectName,
    /// uid of the owner.
    pub uid: &'a str,
    /// Generation of the owner.
    pub generation: i64,
    /// The time of day.
    pub now: Timestamp,
    /// The owners that led to it, the first one first.
    pub stamped_for: &'a [String],
    /// The service account whose rights are used.
    pub account: Account,
    /// Whether an owner of our kind with this namespace, name and uid exists.
    pub is_live_owner: &'a (dyn Fn(&str, &str, &str) -> bool + Send + Sync),
    /// Whether a step with this name stands for the rendered object.
    pub wanted_by_step: &'a (dyn Fn(&str, &Value) -> bool + Send + Sync),
}

impl Applicant<'_> {
    /// Namespace and name of the owner.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of_owner(self.namespace, self.name)
    }

    /// What the objects tell of the owner.
    fn facts(&self) -> OwnerFacts<'_> {
        OwnerFacts {
            kind: self.kind,
            namespace: self.namespace.as_str(),
            name: self.name.as_str(),
            uid: self.uid,
            generation: self.generation,
            account: (&self.account.namespace, &self.account.name),
            stamped_for: self.stamped_for,
        }
    }

    /// Where the object of a submission is.
    fn key_of(&self, submission: &Submission, served: &Served) -> ObjectKey {
        let namespace = if served.namespaced {
            self.namespace.as_str()
        } else {
            ""
        };
        let name = &submission.object["metadata"]["name"];
        ObjectKey::new(namespace, name.as_str().unwrap_or_default())
    }
}

/// What came of a submission, and what the reconcile has to know besides.
#[derive(Debug)]
pub struct Submitted {
    /// For the engine.
    pub observation: Observation,
    /// Look again after this time: a writer keeps undoing us, our own status keeps changing the rendering, or the kind
    /// cannot be watched.
    pub again: Option<Duration>,
    /// Events: reason and message.
    pub told: Vec<(EventReason, String)>,
    /// What is missing to watch the kind.
    pub unwatched: Option<String>,
}

impl Submitted {
    fn plain(observation: Observation) -> Self {
        Self {
            observation,
            again: None,
            told: Vec::new(),
            unwatched: None,
        }
    }

    fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |again| again.min(after)));
    }
}

/// The family that a look listed where its kind cannot be watched. The submission that follows need not list it again.
#[derive(Debug, Default)]
pub struct Listed(Option<Vec<Arc<Stamped>>>);

/// Submits objects for all owners of one controller.
pub struct Submitter {
    mapper: Arc<Mapper>,
    watches: Arc<StampedWatches>,
    requests: Requests,
    fights: ConflictBackoff,
    render_loops: RenderLoopGuard,
    strangers: Strangers,
    refusals: KnownRefusals,
    brake: Brake,
    /// The most bytes of a rendering that is sent.
    longest: usize,
}

/// A kind that cannot be watched is read at this interval.
pub const SLOW_READ: Duration = Duration::from_secs(30);

/// Where the present state of a kind is read from.
enum Source {
    /// The shared watch.
    Watch(Arc<KindWatch>),
    /// The API server, with the owner's token: the controller may not watch the kind (text says why).
    Live(Arc<KindWatch>, String),
}

impl Source {
    fn served(&self) -> &Arc<Served> {
        match self {
            Self::Watch(watch) | Self::Live(watch, _) => watch.served(),
        }
    }

    fn watch(&self) -> &KindWatch {
        match self {
            Self::Watch(watch) | Self::Live(watch, _) => watch,
        }
    }
}

impl Submitter {
    /// A submitter over the given parts; no rendering with more than `longest` bytes is sent.
    pub fn new(
        cluster: Cluster,
        mapper: Arc<Mapper>,
        watches: Arc<StampedWatches>,
        tokens: Arc<TokenCache>,
        schemas: SchemaCache,
        longest: usize,
    ) -> Self {
        let requests = Requests::new(cluster, tokens, schemas, watches.field_manager());
        Self {
            mapper,
            watches,
            requests,
            fights: ConflictBackoff::default(),
            render_loops: RenderLoopGuard::default(),
            strangers: Strangers::default(),
            refusals: KnownRefusals::default(),
            brake: Brake::default(),
            longest,
        }
    }

    /// Rights changed in a namespace, or in all, or kinds were defined anew: what was refused before may be taken now.
    pub(crate) fn forget_refusals(&self, namespace: Option<&str>) {
        self.refusals.forget(namespace);
    }

    /// The watches that this submitter reads from.
    pub fn watches(&self) -> &Arc<StampedWatches> {
        &self.watches
    }

    /// The kind mapping.
    pub fn mapper(&self) -> &Arc<Mapper> {
        &self.mapper
    }

    /// Makes the cluster hold the object; `needed` are the paths that its template reads, `listed` is what a look at the same
    /// family has just listed.
    ///
    /// Sends nothing when the object is there as rendered.
    ///
    /// # Errors
    /// [`SubmitError::Token`] when the owner's service account gives no token: nothing can be submitted
    /// for this owner. [`SubmitError::Unavailable`] when the machine was in the way. Everything else is an [`Observation::Failed`] of this one step.
    pub async fn submit(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        needed: &Projection,
        listed: Listed,
    ) -> Result<Submitted, SubmitError> {
        let outcome = match self.source(submission, needed).await {
            Ok(source) => {
                self.submit_from(&source, applicant, submission, listed)
                    .await
            }
            Err(failure) => Err(failure),
        };
        match outcome {
            Ok(submitted) => Ok(submitted),
            Err(failure::Failure::Token(error)) => Err(SubmitError::Token(error)),
            Err(failure::Failure::Behind) => Err(SubmitError::Behind),
            Err(failure::Failure::Unavailable(why)) => Err(SubmitError::Unavailable(why)),
            Err(failure::Failure::Step(step) | failure::Failure::Refused(step, _)) => {
                Ok(Submitted::plain(Observation::Failed(step)))
            }
            Err(failure::Failure::Braked(step, wait)) => {
                let mut submitted = Submitted::plain(Observation::Failed(step));
                submitted.look_again(wait);
                Ok(submitted)
            }
            Err(failure::Failure::Unserved(step)) => {
                // Discovery shows a kind for a moment longer than the server serves it.
                if let Some(kind) = Kind::of(&submission.object) {
                    self.watches.forget_group(kind.group());
                }
                Ok(Submitted::plain(Observation::Failed(step)))
            }
        }
    }

    /// What the API server refused for what it is, is not sent again as it is.
    async fn submit_from(
        &self,
        source: &Source,
        applicant: &Applicant<'_>,
        submission: &Submission,
        listed: Listed,
    ) -> Result<Submitted, failure::Failure> {
        let attempt = Attempted::of(applicant, submission, source);
        let beside = || self.beside(applicant);
        let known = |attempt| self.refusals.known(attempt, beside, now());
        if let Some(refused) = attempt.and_then(known) {
            self.requests.avoided();
            return Err(failure::Failure::Step(refused));
        }
        let outcome = if submission.lifecycle.is_immutable() {
            self.submit_immutable(applicant, submission, source, listed)
                .await
        } else {
            self.submit_mutable(applicant, submission, source).await
        };
        if let (Some(attempt), Err(failure::Failure::Refused(refused, why))) = (attempt, &outcome) {
            let refused = Refused {
                namespace: applicant.namespace.as_str(),
                failure: refused,
                why: *why,
                beside: beside(),
            };
            self.refusals.learn(attempt, refused, now());
        }
        outcome
    }

    /// The objects of an owner, by their uids.
    fn beside(&self, applicant: &Applicant<'_>) -> Beside {
        let owned = self.watches.owned_by(&applicant.key(), applicant.uid);
        Beside::of(owned.iter().map(|(_, object)| &*object.uid))
    }

    /// Has a kind watched from now on, and waits until its objects are known. One that cannot be watched is not known.
    pub async fn watch(&self, kind: &Kind) {
        if let Ok(served) = self.mapper.served(kind).await {
            let watch = self.watches.ensure(&served, &Projection::default());
            watch.ready().await;
        }
    }

    async fn source(
        &self,
        submission: &Submission,
        needed: &Projection,
    ) -> Result<Source, failure::Failure> {
        let kind = Kind::of(&submission.object).ok_or_else(|| {
            failure::rejected(
                "the rendered object has no apiVersion or no kind; set both in the template",
            )
        })?;
        let served = self
            .mapper
            .served(&kind)
            .await
            .map_err(|error| failure::unmapped(submission, &error))?;
        let mut watch = self.watches.ensure(&served, needed);
        for _ in 0..REPLACEMENTS {
            match watch.ready().await {
                Readiness::Synced => return Ok(Source::Watch(watch)),
                Readiness::Unavailable(why) => return Ok(Source::Live(watch, why)),
                // Another owner needed more paths meanwhile; the watch that has them is what to wait for.
                Readiness::Starting(_) | Readiness::Failing { .. } | Readiness::Stale { .. }
                    if watch.is_replaced() =>
                {
                    watch = self.watches.ensure(&served, needed);
                }
                Readiness::Starting(_) => return Err(failure::not_listed_yet(&kind)),
                Readiness::Failing { why, since } => {
                    return Err(failure::not_listed(&kind, &why, since));
                }
                Readiness::Stale { why, since, at } => {
                    return Err(failure::not_listed_any_more(&served, &why, since, at));
                }
            }
        }
        Err(failure::not_listed_yet(&kind))
    }

    /// The object as it will be kept: projected like the watch projects it.
    fn project(&self, source: &Source, value: &serde_json::Value) -> Stamped {
        let watch = source.watch();
        Stamped::from_value(
            value,
            &watch.served().kind,
            watch.projection(),
            self.watches.field_manager(),
        )
    }

    /// Takes the reply to our own write into the cache.
    fn keep(source: &Source, stamped: Stamped) -> Arc<Stamped> {
        source.watch().overlay(stamped.clone());
        Arc::new(stamped)
    }

    fn note_unwatched(source: &Source, submitted: &mut Submitted) {
        if let Source::Live(watch, why) = source {
            submitted.look_again(SLOW_READ);
            submitted.unwatched = Some(missing_to_watch(watch.served(), why));
        }
    }
}

/// What is missing to watch a kind, which is read at [`SLOW_READ`] instead; `why` is what the API server said.
pub fn missing_to_watch(served: &Served, why: &str) -> String {
    let resource = served.qualified();
    format!(
        "[{resource}] is read every {} s only, because the controller cannot watch it: {why}; \
         grant it the verbs list and watch on {resource}",
        SLOW_READ.as_secs()
    )
}

fn now() -> Instant {
    Instant::now()
}
