//! Following one watch: its events into the store, wakes to the owners concerned.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::{KindWatch, Readiness, Stamped, Touched, WatchSettings};
use crate::cluster::chain;
use crate::reflect::{Events, Refused, Selection, WatchHealth, answer, watched};
use crate::share::{Beside, Gained, Open, PAGE_BESIDE};

/// A watch that was refused after it had been listed starts anew after this pause: the refusal may
/// have been a moment's (an API server that starts answers 403 and 404 for a while), and nothing
/// but a new listing says that it is over. Longer than what [`WatchHealth`] takes for a moment: the
/// next refusal counts. Each further pause is twice as long,
pub(super) const REFUSED_PAUSE: Duration = Duration::from_secs(10);

/// but no longer than this: whoever may list and not watch would be sent everything again and again.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// A changed right or definition takes effect a moment after its event. Shorter than the pause after which the owners look
/// again, so that they find the new listing under way.
const CHANGE_SETTLE: Duration = Duration::from_millis(150);

/// Opens the watch, or lists beside it. Full objects: what they hold is compared with what we left there. They are projected on
/// arrival.
pub(super) fn opening(client: kube::Client, watch: &KindWatch, settings: &WatchSettings) -> Open {
    let (resource, label) = (watch.served().resource(), settings.label);
    let watching = settings.share.watching(watch.served().namespaced);
    Arc::new(move |namespace: Option<&str>| {
        let (client, kept) = watching.opens(&client, namespace);
        let selection = Selection {
            labels: Some(label),
            namespace,
            page: namespace.map(|_| PAGE_BESIDE),
            kept,
        };
        watched(client, &resource, selection)
    })
}

/// Feeds one watch's events into its store and wakes the owners concerned.
pub(super) struct Follower {
    pub(super) watch: Arc<KindWatch>,
    pub(super) settings: WatchSettings,
    /// The owners that need a first listing wait for it; nobody else has to be woken by it.
    pub(super) quiet: bool,
    pub(super) health: WatchHealth,
    /// Whether the owners of what is held have been told that it is refused.
    pub(super) notified: bool,
    /// How long it rests after the next refusal.
    pub(super) pause: Duration,
    /// How often it was to be read anew when the listing began that is followed.
    pub(super) listing: u64,
    /// For which share that was, where replicas share the owners.
    pub(super) share_listing: u64,
    /// Whether the watch has shown all that was accepted when it began, and all changes since.
    pub(super) is_whole: bool,
    /// What is listed while the watch goes on: namespaces that fell to this replica.
    pub(super) beside: Option<Beside>,
}

/// What a watch is to do next.
enum Then {
    GoOn,
    BeginAnewAfter(Duration),
}

impl Follower {
    pub(super) async fn run(mut self, open: Open) {
        let cancel = self.watch.cancel.clone();
        let mut events = self.begin(&open);
        loop {
            let then = tokio::select! {
                () = cancel.cancelled() => return,
                () = self.watch.relist.notified() => self.list_due(&open),
                () = self.watch.again.notified() => {
                    self.pause = REFUSED_PAUSE;
                    Then::BeginAnewAfter(CHANGE_SETTLE)
                }
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        self.follow(event);
                        let is_overtaken = self.beside.as_ref().is_some_and(Beside::is_overtaken);
                        if is_overtaken { Then::BeginAnewAfter(Duration::ZERO) } else { Then::GoOn }
                    }
                    Some(Err(error)) if self.fail(&error) => Then::BeginAnewAfter(self.longer_pause()),
                    Some(Err(_)) => Then::GoOn,
                    None => return,
                },
                object = Beside::next(self.beside.as_mut()) => self.follow_listed(object),
            };
            if let Then::BeginAnewAfter(pause) = then {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.rest(pause) => events = self.begin(&open),
                }
            }
        }
    }

    /// Lists everything, and watches.
    fn begin(&mut self, open: &Open) -> Events {
        // In this order: what becomes due in between is told once more.
        self.listing = self.watch.relists();
        self.share_listing = self.settings.share.due_listing().number;
        self.is_whole = false;
        self.beside = None;
        open(None)
    }

    /// There is more to keep: only that is listed if the rest is known. Of a cluster-scoped kind no namespace can be listed.
    fn list_due(&mut self, open: &Open) -> Then {
        let relists = self.watch.relists();
        let due = self.settings.share.due_listing();
        let is_known = self.is_whole && self.beside.is_none() && self.watch.served().namespaced;
        match due.since(self.share_listing, self.watch.len()) {
            // The listing under way, or the one before, began when this was due already.
            None if self.settings.share.0.is_some() => {
                self.listing = relists;
                let is_listed = self.is_whole && self.beside.is_none();
                let is_synced = *self.watch.readiness.borrow() == Readiness::Synced;
                if !is_listed || is_synced {
                    return Then::GoOn;
                }
                if !self.is_awaited() {
                    // It was not relied upon, and only a listing that ends says that it is again.
                    return Then::BeginAnewAfter(Duration::ZERO);
                }
                self.rely_on_it();
                Then::GoOn
            }
            Some(Gained::Namespaces(gained)) if is_known && self.is_awaited() => {
                (self.listing, self.share_listing) = (relists, due.number);
                self.beside = Some(Beside::new(open, &gained));
                Then::GoOn
            }
            None | Some(Gained::Namespaces(_) | Gained::Everything) => {
                Then::BeginAnewAfter(Duration::ZERO)
            }
        }
    }

    /// Whether the kind can be listed, as far as is known.
    fn is_awaited(&self) -> bool {
        matches!(*self.watch.readiness.borrow(), Readiness::Starting(_))
    }

    /// A namespace that was gained holds this, or all of them have been listed.
    fn follow_listed(&mut self, listed: Option<watcher::Result<Value>>) -> Then {
        match listed {
            Some(Ok(object)) => {
                let is_gone = self.beside.as_ref().is_some_and(|it| it.is_gone(&object));
                if !is_gone && self.accepts(&object) {
                    let touched = self.watch.write().show(self.project(&object));
                    self.wake(&touched);
                    self.tell_of_moves(&touched);
                }
                Then::GoOn
            }
            Some(Err(error)) => {
                let kind = &self.watch.served().kind;
                debug!(%kind, error = %chain(&error), "namespaces could not be listed; everything is");
                Then::BeginAnewAfter(Duration::ZERO)
            }
            None => {
                self.beside = None;
                self.rely_on_it();
                Then::GoOn
            }
        }
    }

    /// All that is accepted has been listed, unless there is more by now.
    fn rely_on_it(&self) -> Readiness {
        let mut before = Readiness::Synced;
        self.watch.readiness.send_if_modified(|readiness| {
            before = readiness.clone();
            let is_whole = self.listing == self.watch.relists();
            let is_news = is_whole && before != Readiness::Synced;
            if is_news {
                *readiness = Readiness::Synced;
            }
            is_news
        });
        before
    }

    fn longer_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }

    /// Waits, not longer than until something changes; what was refused is then not known to be refused any more.
    async fn rest(&mut self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.watch.again.notified() => tokio::time::sleep(CHANGE_SETTLE).await,
        }
        self.watch.is_tried_again();
    }

    /// Of the objects of other replicas nothing is kept.
    fn is_dropped(&self, event: &Event<Value>) -> bool {
        match event {
            Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
                !self.accepts(object)
            }
            Event::Init | Event::InitDone => false,
        }
    }

    fn accepts(&self, object: &Value) -> bool {
        // What is null is not even read.
        !object.is_null() && {
            let namespace = Stamped::owner_namespace_in(object);
            self.settings.share.accepts(&namespace)
        }
    }

    fn follow(&mut self, event: Event<Value>) {
        let goes_on = self.health.shows(&event);
        // A listing alone does not show that it may be watched.
        if matches!(event, Event::Apply(_) | Event::Delete(_)) {
            self.pause = REFUSED_PAUSE;
            self.health.forget_logged();
        }
        if let (Event::Delete(object), Some(beside)) = (&event, &mut self.beside) {
            beside.note_deleted(object);
        }
        if self.is_dropped(&event) {
            return;
        }
        let touched = match event {
            Event::Init => {
                self.is_whole = false;
                self.beside = None;
                self.watch.write().begin_listing();
                Touched::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                self.watch.write().show(self.project(&object))
            }
            Event::Delete(object) => {
                let object = self.project(&object);
                self.watch.write().hide_last_seen(object)
            }
            Event::InitDone => self.end_listing(),
        };
        // Nobody waits for the listing of what an owner left behind that is no more.
        if !self.quiet || !self.watch.served().namespaced {
            self.wake(&touched);
        }
        self.tell_of_moves(&touched);
        if goes_on {
            self.quiet = false;
            self.notified = false;
        }
    }

    fn end_listing(&mut self) -> Touched {
        self.is_whole = true;
        let mut gone = self.watch.write().end_listing();
        gone.extend(self.gone_since_the_predecessor());
        let before = self.rely_on_it();
        if matches!(before, Readiness::Stale { .. }) {
            info!(kind = %self.watch.served().kind, "this kind is listed again");
            self.wake(&self.watch.held());
        }
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
        self.watch.project(object, self.settings.field_manager)
    }

    fn wake(&self, touched: &Touched) {
        for object in touched {
            if let Some(controller) = object
                .controller
                .as_ref()
                .filter(|controller| controller.is_ours(self.settings.owner_kind))
            {
                (self.settings.wake)(&object.owner_namespace, &controller.name);
            }
        }
    }

    /// Who waits for an object of somebody else does so for its end, or for whoever holds it to give it up; not for what
    /// happens in it.
    fn tell_of_moves(&self, touched: &Touched) {
        let kind = &self.watch.served().kind;
        for object in touched {
            let another =
                |other: &&Arc<Stamped>| other.key == object.key && !Arc::ptr_eq(other, object);
            let stays = touched.iter().find(another).is_some_and(|other| {
                other.uid == object.uid
                    && other.controller == object.controller
                    && other.annotations.adopt == object.annotations.adopt
            });
            if !stays {
                (self.settings.moved)(kind, &object.key);
            }
        }
    }

    /// Errors heal by the watcher's own back-off; what a user can mend is made known. Returns
    /// whether the watch has to start anew: when it fails after its listing, nothing else would
    /// tell that it goes on, or what is true meanwhile.
    fn fail(&mut self, error: &watcher::Error) -> bool {
        let is_listing = matches!(error, watcher::Error::InitialListFailed(_));
        let now = Instant::now();
        if let Some(refused) = self.health.fails(error, now) {
            self.refuse(&refused);
            return !is_listing;
        }
        let (kind, text) = (&self.watch.served().kind, crate::cluster::chain(error));
        let hears_others = || (self.settings.hears_others)(&self.watch.served().qualified());
        let since = self.health.fails_since(error, now, hears_others);
        let for_long =
            since.filter(|since| now.duration_since(*since) >= self.settings.stale_after);
        if !is_listing {
            debug!(%kind, error = %text, "watch interrupted");
            return for_long.is_some();
        }
        match for_long {
            Some(since) if self.health.is_relied_upon() => self.grow_stale(since, text),
            _ => self.miss_listing(text, answer(error).is_some()),
        }
        false
    }

    fn refuse(&mut self, refused: &Refused<'_>) {
        if self.health.is_news(refused.why) {
            let kind = &self.watch.served().kind;
            warn!(%kind, error = %refused.why, "this kind cannot be watched");
        }
        let unavailable = Readiness::Unavailable(refused.why.to_owned());
        self.watch.readiness.send_replace(unavailable);
        if refused.counts {
            self.notify();
        }
    }

    fn miss_listing(&mut self, why: String, is_answered: bool) {
        if is_answered && self.health.is_news(&why) {
            let kind = &self.watch.served().kind;
            warn!(%kind, error = %why, "this kind cannot be listed; it is tried again ever less often");
        }
        let progressed = self.health.progressed();
        self.watch.readiness.send_modify(|readiness| {
            readiness.fails(why);
            // A listing of many pages is well until one of them fails.
            if let (Readiness::Failing { since, .. }, Some(progressed)) = (readiness, progressed) {
                *since = progressed.max(*since);
            }
        });
    }

    /// The owners of what was listed before have to say that it is believed no longer.
    fn grow_stale(&mut self, since: Instant, why: String) {
        let now = (self.settings.clock)();
        let at = now.saturating_sub(since.elapsed()).unwrap_or(now);
        let text = why.clone();
        let mut is_news = false;
        self.watch
            .readiness
            .send_modify(|readiness| is_news = readiness.grows_stale(why, since, at));
        if is_news {
            let kind = &self.watch.served().kind;
            warn!(%kind, since = %at, error = %text, "this kind cannot be listed any more; what was known of it is not believed");
            self.notify();
        }
    }

    /// The owners of what was listed before no longer hear of changes: they have to say so, and to
    /// look otherwise from now on. Not for a moment's refusal: a server that was just starting
    /// would be asked by all of them.
    fn notify(&mut self) {
        if !self.notified {
            self.notified = true;
            self.wake(&self.watch.held());
        }
    }
}
