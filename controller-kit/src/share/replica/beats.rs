//! The Lease as the others renew it.
//!
//! Who reads it with its own renewals only hears of a beat up to a renewal late, and waits as much longer for one that was
//! the last. So it is watched, too. Without the right to watch it, all goes on by the renewals.

use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{PartialObjectMeta, WatchEvent, WatchParams};
use tokio::time::Instant;

use super::{Record, record_of};

/// Between two watches that begin: one that is refused is refused again.
const PACE: Duration = Duration::from_secs(10);

type Events = BoxStream<'static, Result<WatchEvent<PartialObjectMeta<Lease>>, kube::Error>>;

pub(super) struct Beats {
    leases: Api<Lease>,
    name: String,
    events: Option<Events>,
    /// When the next watch may begin.
    again: Option<Instant>,
}

impl Beats {
    pub(super) fn new(leases: &Api<Lease>, name: &str) -> Self {
        Self {
            leases: leases.clone(),
            name: name.to_owned(),
            events: None,
            again: None,
        }
    }

    /// The next record that is written, by whomever. Whoever stops waiting loses none.
    pub(super) async fn next(&mut self) -> Record {
        loop {
            let Some(events) = &mut self.events else {
                self.begin().await;
                continue;
            };
            match events.next().await {
                Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => {
                    if let Some(record) = record_of(&lease.metadata) {
                        return record;
                    }
                }
                Some(Ok(WatchEvent::Deleted(_) | WatchEvent::Bookmark(_))) => {}
                Some(Ok(WatchEvent::Error(_)) | Err(_)) | None => self.events = None,
            }
        }
    }

    async fn begin(&mut self) {
        if let Some(again) = self.again {
            tokio::time::sleep_until(again).await;
        }
        self.again = Some(Instant::now() + PACE);
        let named = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        // From the newest: what comes from a cache may be older than what the last renewal has read.
        let events = self.leases.watch_metadata(&named, "").await;
        self.events = events.ok().map(StreamExt::boxed);
    }
}
