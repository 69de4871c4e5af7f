//! What is listed when a replica's share grows: by the shares alone, and through a watch of the owners.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{StreamExt as _, stream};
use kube::runtime::watcher::{self, Event};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{myself, name, nobody, teams, view};
use crate::cluster::Fence;
use crate::reflect::Events;
use crate::share::gained::Gains;
use crate::share::{Gained, Identity, OwnShare, Record, Share};

fn share(names: &[&str]) -> Share {
    Share::of(&name("a"), &view(names), [])
}

/// Of three, each knows all namespaces.
fn gains() -> Gains {
    let mut gains = Gains::default();
    for team in teams() {
        gains.arrives(&team, false);
    }
    gains.changes(&Share::Nothing, &share(&["a", "b", "c"]), Some(1));
    gains
}

fn sorted(gained: Gained) -> BTreeSet<Box<str>> {
    match gained {
        Gained::Namespaces(namespaces) => namespaces.into_iter().collect(),
        Gained::Everything => panic!("everything is listed"),
    }
}

fn between(more: &Share, less: &Share) -> BTreeSet<Box<str>> {
    let gained = teams().filter(|it| more.takes(it) && !less.takes(it));
    gained.map(Box::from).collect()
}

#[test]
fn who_takes_a_part_of_a_dead_ones_share_lists_that_part() {
    let (three, two) = (share(&["a", "b", "c"]), share(&["a", "b"]));
    let mut gains = gains();
    gains.changes(&three, &two, Some(2));
    let gained = sorted(gains.since(1, &two));
    assert_eq!(gained, between(&two, &three));
    assert!(!gained.is_empty());
    assert_eq!(sorted(gains.since(2, &two)), BTreeSet::new());
    assert_eq!(gains.since(7, &two), Gained::Everything, "no such listing");
}

#[test]
fn what_was_lost_in_between_is_listed_again() {
    let (two, three) = (share(&["a", "b"]), share(&["a", "b", "c"]));
    let mut gains = Gains::default();
    for team in teams() {
        gains.arrives(&team, false);
    }
    gains.changes(&Share::Nothing, &two, Some(1));
    gains.changes(&two, &three, None);
    gains.has_dropped(gains.losses());
    gains.changes(&three, &two, Some(2));
    assert_eq!(sorted(gains.since(1, &two)), between(&two, &three));
}

#[test]
fn everything_is_listed_while_what_was_lost_may_be_kept_still() {
    let (two, three) = (share(&["a", "b"]), share(&["a", "b", "c"]));
    let mut gains = Gains::default();
    for team in teams() {
        gains.arrives(&team, false);
    }
    gains.changes(&Share::Nothing, &two, Some(1));
    gains.changes(&two, &three, None);
    gains.changes(&three, &two, Some(2));
    assert_eq!(gains.since(1, &two), Gained::Everything);

    let mut gains = self::gains();
    let stray = between(&two, &three).pop_first().unwrap();
    gains.arrives(&stray, true);
    gains.changes(&three, &two, Some(2));
    assert_eq!(gains.since(1, &two), Gained::Everything);
}

#[test]
fn everything_is_listed_by_who_gains_most_of_it() {
    let three = share(&["a", "b", "c"]);
    let mut gains = gains();
    gains.changes(&three, &Share::All, Some(2));
    assert_eq!(gains.since(1, &Share::All), Gained::Everything);
}

/// A replica that shares with two others.
pub(crate) struct OneOfThree {
    pub(crate) share: Arc<OwnShare>,
    record: Record,
}

impl OneOfThree {
    pub(crate) fn new() -> Self {
        Self {
            share: OwnShare::new("a", Arc::<Fence>::default()),
            record: renewed_by(Record::founded(0), &["a", "b", "c"]),
        }
    }

    /// It hears of the others.
    pub(crate) fn begins(&self) {
        self.share.seen(&self.record, Self::until());
    }

    /// One of the others is dead.
    pub(crate) fn one_dies(&self) {
        let silent: BTreeSet<Identity> = BTreeSet::from([name("c")]);
        let record = self.record.renewed(&myself("a"), &silent, None);
        self.share
            .seen(&renewed_by(record, &["a", "b"]), Self::until());
    }

    fn until() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }
}

/// A record as each of these has renewed it.
fn renewed_by(mut record: Record, names: &[&str]) -> Record {
    for me in names {
        record = record.renewed(&myself(me), &nobody(), None);
    }
    for me in names {
        let newest = record.awaited_of(me);
        record = record.renewed(&myself(me), &nobody(), newest.as_ref());
    }
    record
}

type Sender = UnboundedSender<watcher::Result<Event<Value>>>;

/// An API server whose watch and listings say what a test says.
#[derive(Default)]
struct Server {
    watches: Mutex<Vec<Sender>>,
    listings: Mutex<HashMap<String, Sender>>,
}

impl Server {
    fn open(&self, namespace: Option<&str>) -> Events {
        let (sender, receiver): (Sender, UnboundedReceiver<_>) = unbounded();
        match namespace {
            None => self.watches.lock().push(sender),
            Some(namespace) => {
                self.listings.lock().insert(namespace.to_owned(), sender);
            }
        }
        receiver.boxed()
    }

    fn watch_says(&self, event: Event<Value>) {
        let watches = self.watches.lock();
        watches.last().unwrap().unbounded_send(Ok(event)).unwrap();
    }

    fn listing_says(&self, namespace: &str, event: watcher::Result<Event<Value>>) {
        let listings = self.listings.lock();
        listings[namespace].unbounded_send(event).unwrap();
    }

    fn listed(&self) -> BTreeSet<Box<str>> {
        let listings = self.listings.lock();
        listings.keys().map(|it| Box::from(it.as_str())).collect()
    }
}

fn owner(namespace: &str, version: u32) -> Value {
    json!({"metadata": {"namespace": namespace, "name": "app", "resourceVersion": version.to_string()}})
}

/// A replica that has read its share of three, one of which dies then.
struct Survivor {
    server: Arc<Server>,
    share: Arc<OwnShare>,
    events: Events,
    gained: Vec<String>,
}

impl Survivor {
    async fn of_three() -> Self {
        let server = Arc::<Server>::default();
        let three = OneOfThree::new();
        let share = three.share.clone();
        let opened = server.clone();
        let mut events = share.owners(Arc::new(move |namespace: Option<&str>| {
            opened.open(namespace)
        }));
        three.begins();
        let nothing = tokio::time::timeout(Duration::from_millis(1), events.next()).await;
        assert!(nothing.is_err(), "the watch is open, and has said nothing");
        server.watch_says(Event::Init);
        for team in teams() {
            server.watch_says(Event::InitApply(owner(&team, 5)));
        }
        server.watch_says(Event::InitDone);
        let before = share.accepted();
        let shown = teams().filter(|team| before.takes(team)).count();
        let all: Vec<_> = events.by_ref().take(shown + 2).collect().await;
        assert!(matches!(all.last(), Some(Ok(Event::InitDone))));
        let quiet = tokio::time::timeout(Duration::from_millis(1), events.next()).await;
        assert!(quiet.is_err(), "and the end of the listing is followed");
        assert_eq!(*share.owners_listed().borrow(), share.listing().unwrap());
        share.listed(share.listing().unwrap());
        three.one_dies();
        let after = share.accepted();
        let gained = teams().filter(|it| after.takes(it) && !before.takes(it));
        let gained: Vec<String> = gained.collect();
        assert!(gained.len() > 4, "{gained:?}");
        Self {
            server,
            share,
            events,
            gained,
        }
    }

    /// What it reads, until there is nothing more for now.
    async fn reads(&mut self) -> Vec<Event<Value>> {
        let events = stream::poll_fn(|context| self.events.poll_next_unpin(context));
        let events = events.take_until(tokio::time::sleep(Duration::from_millis(1)));
        events.map(Result::unwrap).collect().await
    }

    fn is_listed(&self) -> bool {
        *self.share.owners_listed().borrow() == self.share.listing().unwrap()
    }

    /// All listings that are asked for show this version of their owner, and end.
    async fn lists(&mut self, version: u32) -> Vec<Event<Value>> {
        let (mut shown, mut read) = (BTreeSet::new(), self.reads().await);
        while shown.len() < self.gained.len() {
            for namespace in self.server.listed().difference(&shown.clone()) {
                let object = owner(namespace, version);
                for event in [Event::Init, Event::InitApply(object), Event::InitDone] {
                    self.server.listing_says(namespace, Ok(event));
                }
                shown.insert(namespace.clone());
            }
            read.extend(self.reads().await);
        }
        read
    }
}

fn applied(events: &[Event<Value>]) -> BTreeSet<String> {
    let applied = events.iter().filter_map(|event| match event {
        Event::Apply(object) => object["metadata"]["namespace"].as_str(),
        Event::Init | Event::InitApply(_) | Event::InitDone | Event::Delete(_) => None,
    });
    applied.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn the_owners_of_a_dead_replica_are_listed_by_namespace_while_the_watch_goes_on() {
    let mut survivor = Survivor::of_three().await;
    let gained: BTreeSet<String> = survivor.gained.iter().cloned().collect();
    assert!(!survivor.is_listed());
    let read = survivor.lists(9).await;
    assert_eq!(applied(&read), gained);
    assert!(survivor.is_listed());
    assert_eq!(
        survivor.server.watches.lock().len(),
        1,
        "one watch, and no other"
    );
    survivor
        .server
        .watch_says(Event::Apply(owner(&survivor.gained[0], 10)));
    assert_eq!(survivor.reads().await.len(), 1);
}

/// A page was read before the deletion, and comes after it.
#[tokio::test(start_paused = true)]
async fn an_owner_that_is_deleted_while_its_namespace_is_listed_does_not_come_back() {
    let mut survivor = Survivor::of_three().await;
    survivor.reads().await;
    let listed = survivor.server.listed();
    let namespace = listed.first().unwrap();
    survivor
        .server
        .watch_says(Event::Delete(owner(namespace, 12)));
    assert_eq!(survivor.reads().await.len(), 1);
    let read = survivor.lists(9).await;
    assert!(!applied(&read).contains(&**namespace));
    assert_eq!(applied(&read).len(), survivor.gained.len() - 1);
    assert!(survivor.is_listed());
}

#[tokio::test(start_paused = true)]
async fn a_listing_of_a_namespace_that_fails_has_everything_listed() {
    let mut survivor = Survivor::of_three().await;
    survivor.reads().await;
    let listed = survivor.server.listed();
    let fails = Err(watcher::Error::NoResourceVersion);
    survivor.server.listing_says(listed.first().unwrap(), fails);
    assert!(survivor.reads().await.is_empty());
    assert!(!survivor.is_listed());
    assert_eq!(survivor.server.watches.lock().len(), 2);
    survivor.server.watch_says(Event::Init);
    survivor.server.watch_says(Event::InitDone);
    assert_eq!(survivor.reads().await.len(), 2);
    assert!(survivor.is_listed());
}

/// kube's watcher lists by itself when the server has forgotten where it was.
#[tokio::test(start_paused = true)]
async fn a_watch_that_lists_anew_meanwhile_stands_for_the_namespaces() {
    let mut survivor = Survivor::of_three().await;
    survivor.reads().await;
    survivor.server.watch_says(Event::Init);
    assert_eq!(survivor.reads().await.len(), 1);
    assert!(!survivor.is_listed());
    survivor.server.watch_says(Event::InitDone);
    survivor.reads().await;
    assert!(survivor.is_listed());
}
