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
mod error;
mod failure;
mod family;
mod foreign_objects;
mod holder;
mod immutable;
mod look;
mod mutable;
mod refused;
mod remove;
mod render_loop;
mod requests;
mod select;
mod source;

use std::sync::Arc;
use std::time::Duration;

use api_types::{EventReason, NamespaceName, ObjectName};
use jiff::Timestamp;
use realizer::{Observation, Submission};
use serde_json::Value;
use submission::OwnerFacts;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::mapper::{Kind, Mapper};
use crate::openapi::SchemaCache;
use crate::stamped::{ObjectKey, Projection, Stamped, StampedWatches};
use crate::tokens::{Account, TokenCache};

pub use conflict_backoff::ConflictBackoff;
pub use error::{Hurdle, SubmitError, Unavailable};
pub use remove::Deletion;
pub use source::{SLOW_READ, missing_to_watch};

use attempt::Attempt;
use brake::Brake;
use failure::Failure;
use foreign_objects::ForeignObjects;
use mutable::beside::KnownBeside;
use refused::KnownRefusals;
use render_loop::RenderLoopGuard;
use requests::Requests;
pub(crate) use select::selector_of;
use source::Source;

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
    pub events: Vec<(EventReason, String)>,
    /// What is missing to watch the kind.
    pub unwatched: Option<String>,
}

impl Submitted {
    fn plain(observation: Observation) -> Self {
        Self {
            observation,
            again: None,
            events: Vec::new(),
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
    conflicts: ConflictBackoff,
    render_loops: RenderLoopGuard,
    foreign_objects: ForeignObjects,
    known_beside: KnownBeside,
    refusals: KnownRefusals,
    brake: Brake,
    /// The most bytes of a rendering that is sent.
    longest: usize,
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
        let requests = Requests {
            cluster,
            tokens,
            schemas,
            field_manager: watches.field_manager(),
        };
        Self {
            mapper,
            watches,
            requests,
            conflicts: ConflictBackoff::default(),
            render_loops: RenderLoopGuard::default(),
            foreign_objects: ForeignObjects::default(),
            known_beside: mutable::beside::nothing_known(),
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
        let submitted = async {
            let source = self.source(submission, needed).await?;
            let attempt = Attempt {
                submitter: self,
                applicant,
                submission,
                source: &source,
            };
            attempt.submit(listed).await
        };
        let failure = match submitted.await {
            Ok(submitted) => return Ok(submitted),
            Err(failure) => failure,
        };
        if let (Failure::Unserved(_), Some(kind)) = (&failure, Kind::of(&submission.object)) {
            // Discovery shows a kind for a moment longer than the server serves it.
            self.watches.forget_group(kind.group());
        }
        let again = match &failure {
            Failure::Braked(_, wait) => Some(*wait),
            _ => None,
        };
        let observation = Observation::Failed(failure.of_step()?);
        Ok(Submitted {
            again,
            ..Submitted::plain(observation)
        })
    }

    /// Has a kind watched from now on, and waits until its objects are known. One that cannot be watched is not known.
    pub async fn watch(&self, kind: &Kind) {
        if let Ok(served) = self.mapper.served(kind).await {
            let watch = self.watches.ensure(&served, &Projection::default());
            watch.ready().await;
        }
    }
}

fn now() -> Instant {
    Instant::now()
}
