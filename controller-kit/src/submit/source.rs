//! Where the present state of a kind is read from.

use std::sync::Arc;
use std::time::Duration;

use realizer::Submission;

use super::Submitter;
use super::failure::{self, Failure};
use crate::mapper::{Kind, Served};
use crate::stamped::{KindWatch, Projection, Readiness};

/// How often a watch may be replaced by a greater one while it is waited for.
const REPLACEMENTS: u32 = 8;

/// A kind that cannot be watched is read at this interval.
pub const SLOW_READ: Duration = Duration::from_secs(30);

/// Where the present state of a kind is read from.
pub(super) enum Source {
    /// The shared watch.
    Watch(Arc<KindWatch>),
    /// The API server, with the owner's token: the controller may not watch the kind (text says why).
    Live(Arc<KindWatch>, String),
}

impl Source {
    pub(super) fn watch(&self) -> &KindWatch {
        match self {
            Self::Watch(watch) | Self::Live(watch, _) => watch,
        }
    }
}

impl Submitter {
    /// The source for the kind of a submission; `needed` are the paths that its template reads.
    pub(super) async fn source(
        &self,
        submission: &Submission,
        needed: &Projection,
    ) -> Result<Source, Failure> {
        let kind = Kind::of(&submission.object).ok_or_else(|| {
            failure::rejected(
                "the rendered object has no apiVersion or no kind; set both in the template",
            )
        })?;
        let served = self.mapper.served(&kind).await;
        let served = served.map_err(|error| failure::unmapped(submission, &error))?;
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
