//! Following one watch: its events into the store, wakes to the owners concerned.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tracing::{debug, warn};

use super::watch::{KindWatch, Readiness, WatchSettings};
use super::{Stamped, Touched};
use crate::reflect::{Events, watched};

/// Objects per page of a listing: a page is held in memory whole.
const PAGE: u32 = 100;

/// A watch that was refused after it had been listed starts anew after this pause: the refusal may have been a moment's
/// (an API server that starts answers 403 and 404 for a while), and nothing but a new listing says that it is over.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);

/// Full objects where a path is read, metadata otherwise: the API server then sends a fraction of the bytes.
pub(super) fn events(client: kube::Client, watch: &KindWatch, label: &str) -> Events {
    let served = watch.served();
    let resource = served.resource();
    let config = watcher::Config::default().labels(label).page_size(PAGE);
    if watch.projection().is_metadata_only() {
        watched::<true>(client, &resource, config)
    } else {
        watched::<false>(client, &resource, config)
    }
}

/// Feeds one watch's events into its store and wakes the owners concerned.
pub(super) struct Follower {
    pub(super) watch: Arc<KindWatch>,
    pub(super) settings: WatchSettings,
    /// The owners that need a first listing wait for it; nobody else has to be woken by it.
    pub(super) quiet: bool,
}

impl Follower {
    pub(super) async fn run(mut self, open: impl Fn() -> Events + Send) {
        let cancel = self.watch.cancel.clone();
        let mut events = open();
        loop {
            let event = tokio::select! {
                () = cancel.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                Some(Ok(event)) => self.follow(event),
                Some(Err(error)) => {
                    if self.fail(&error) {
                        tokio::select! {
                            () = cancel.cancelled() => return,
                            () = tokio::time::sleep(REFUSED_PAUSE) => events = open(),
                        }
                    }
                }
                None => return,
            }
        }
    }

    fn follow(&mut self, event: Event<Value>) {
        let touched = match event {
            Event::Init => {
                self.watch.write().begin_listing();
                Touched::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                self.watch.write().show(self.project(&object))
            }
            Event::Delete(object) => {
                let object = self.project(&object);
                self.watch.write().hide(&object.key, &object.uid)
            }
            Event::InitDone => self.end_listing(),
        };
        if !self.quiet {
            self.wake(&touched);
        }
        if *self.watch.readiness.borrow() == Readiness::Synced {
            self.quiet = false;
        }
    }

    fn end_listing(&self) -> Touched {
        let mut gone = self.watch.write().end_listing();
        gone.extend(self.gone_since_the_predecessor());
        self.watch.readiness.send_if_modified(|readiness| {
            let changes = *readiness != Readiness::Synced;
            *readiness = Readiness::Synced;
            changes
        });
        gone
    }

    /// What the replaced watch held and the first listing here does not show: its deletion was seen by neither.
    fn gone_since_the_predecessor(&self) -> Touched {
        let mut gone = Touched::new();
        let mut predecessor = self.watch.take_predecessor();
        while let Some(replaced) = predecessor {
            gone.extend(replaced.read().missing_in(&self.watch.read()));
            predecessor = replaced.take_predecessor();
        }
        gone
    }

    fn project(&self, object: &Value) -> Stamped {
        Stamped::from_value(
            object,
            &self.watch.served().kind,
            self.watch.projection(),
            self.settings.field_manager,
        )
    }

    fn wake(&self, touched: &Touched) {
        for object in touched {
            if let Some(controller) = object
                .controller
                .as_ref()
                .filter(|controller| *controller.kind == *self.settings.owner_kind)
            {
                (self.settings.wake)(&object.owner_namespace(), &controller.name);
            }
        }
    }

    /// Errors heal by the watcher's own back-off; what a user can mend is made known. Returns whether the watch has to
    /// start anew: when it was refused after its listing, nothing else would tell that it goes on.
    fn fail(&self, error: &watcher::Error) -> bool {
        let kind = &self.watch.served().kind;
        match refusal(error) {
            Some(status) if status.code == 403 || status.code == 404 || status.code == 405 => {
                warn!(%kind, error = %status.message, "this kind cannot be watched");
                self.watch
                    .readiness
                    .send_replace(Readiness::Unavailable(status.message.clone()));
                !matches!(error, watcher::Error::InitialListFailed(_))
            }
            _ => {
                debug!(%kind, error = %crate::cluster::chain(error), "watch interrupted");
                false
            }
        }
    }
}

/// What the API server said, if it is the API server that refused the watch.
pub(crate) fn refusal(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}
