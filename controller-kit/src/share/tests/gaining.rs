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

use super::{myself, name, nobody, teams};
use crate::cluster::Fence;
use crate::reflect::Events;
use crate::share::gained::MOST_DELETED;
use crate::share::{DueListing, Gained, Growth, Identity, OwnShare, Record, Share};

/// Objects that are held already.
const MANY: usize = 10_000;

fn everywhere() -> Vec<Box<str>> {
    teams().map(Box::from).collect()
}

/// What there is to list now, which is told to be due.
fn grows(share: &OwnShare, after: u64) -> Growth {
    grows_among(share, after, &everywhere())
}

/// The same where there are these namespaces.
pub(crate) fn grows_among(share: &OwnShare, after: u64, namespaces: &[Box<str>]) -> Growth {
    let growth = share.take_growth(after).unwrap();
    share.is_due(growth.among(namespaces));
    growth
}

fn gained(due: &DueListing, listing: u64) -> BTreeSet<Box<str>> {
    match due.since(listing, MANY).unwrap() {
        Gained::Namespaces(namespaces) => namespaces.iter().cloned().collect(),
        Gained::Everything => panic!("everything is listed"),
    }
}

fn between(more: &Share, less: &Share) -> BTreeSet<Box<str>> {
    let gained = teams().filter(|it| more.takes(it) && !less.takes(it));
    gained.map(Box::from).collect()
}

#[test]
fn who_takes_a_part_of_a_dead_ones_share_lists_that_part() {
    let mut replica = OneOfThree::that_has_begun();
    let three = replica.share.accepted();
    replica.share.listed(1);
    assert!(replica.share.take_growth(1).is_none());

    replica.one_dies();
    let growth = grows(&replica.share, 1);
    let (two, due) = (replica.share.accepted(), replica.share.due_listing());
    assert_eq!(gained(&due, 1), between(&two, &three));
    assert!(!gained(&due, 1).is_empty());
    assert_eq!(due.since(2, MANY), None, "that is this one");
    assert_eq!(
        due.since(0, MANY),
        Some(Gained::Everything),
        "it missed one"
    );
    assert!(replica.share.take_growth(2).is_none(), "it is told once");
    assert!(teams().all(|team| growth.stays(&team) == three.takes(&team)));
}

/// A namespace that comes after they were listed is not among them: what is in it arrives by the watch.
#[test]
fn only_namespaces_that_there_are_are_listed() {
    let mut replica = OneOfThree::that_has_begun();
    replica.one_dies();
    let growth = replica.share.take_growth(1).unwrap();
    let all = everywhere();
    let of_all = gained(&growth.among(&all), 1);
    let without: Vec<Box<str>> = all[1..].to_vec();
    let mut expected = of_all.clone();
    expected.remove(&all[0]);
    assert_eq!(gained(&growth.among(&without), 1), expected);
    assert_eq!(
        growth.among(&of_all.into_iter().collect::<Vec<_>>()),
        DueListing::everything(2),
        "one request tells as much as many"
    );
}

/// Whoever makes many namespaces would have others wait for a request for each of them.
#[test]
fn very_many_namespaces_are_asked_for_one_by_one_only_where_everything_is_as_much() {
    let mut replica = OneOfThree::that_has_begun();
    replica.one_dies();
    let growth = replica.share.take_growth(1).unwrap();
    let crowd: Vec<Box<str>> = (0..1000).map(|it| format!("crowd-{it}").into()).collect();
    let due = growth.among(&crowd);
    assert_eq!(due.since(1, 50), Some(Gained::Everything));
    let of_many = due.since(1, 100_000).unwrap();
    assert!(matches!(of_many, Gained::Namespaces(gained) if gained.len() > 100));
}

#[test]
fn what_was_lost_in_between_is_dropped_and_listed_again() {
    let mut replica = OneOfThree::that_has_begun();
    let three = replica.share.accepted();
    replica.one_dies();
    grows(&replica.share, 1);
    let two = replica.share.accepted();
    replica.share.listed(2);
    // Nobody looks in between.
    replica.one_comes();
    assert!(between(&two, &replica.share.accepted()).len() > 4);
    replica.one_dies();
    let growth = grows(&replica.share, 2);
    let again = between(&two, &three);
    assert_eq!(gained(&replica.share.due_listing(), 2), again);
    assert!(again.iter().all(|namespace| !growth.stays(namespace)));
}

/// What it reads must not be dropped under it.
#[test]
fn everything_is_listed_while_a_reconcile_is_under_way_in_what_was_lost_in_between() {
    let mut replica = OneOfThree::that_has_begun();
    let three = replica.share.accepted();
    replica.one_dies();
    grows(&replica.share, 1);
    replica.share.listed(2);
    let two = replica.share.accepted();
    let busy = between(&two, &three).pop_first().unwrap();
    let permit = replica.share.enter(&busy).unwrap();
    replica.one_comes();
    replica.one_dies();
    let growth = grows(&replica.share, 2);
    assert!(growth.stays(&busy));
    assert_eq!(replica.share.due_listing(), DueListing::everything(3));
    drop(permit);
}

#[test]
fn everything_is_listed_by_who_gains_most_of_it() {
    let mut replica = OneOfThree::that_has_begun();
    replica.others_die();
    let alone = replica.share.accepted();
    assert!(teams().all(|team| alone.takes(&team)));
    grows(&replica.share, 1);
    assert_eq!(replica.share.due_listing(), DueListing::everything(2));
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

    /// The same when it has heard of the others, and has been told what to list.
    fn that_has_begun() -> Self {
        let replica = Self::new();
        replica.begins();
        grows(&replica.share, 0);
        replica
    }

    /// It hears of the others.
    pub(crate) fn begins(&self) {
        self.share.seen(&self.record, Self::until());
    }

    /// One of the others is dead.
    pub(crate) fn one_dies(&mut self) {
        self.die(&["c"], &["a", "b"]);
    }

    /// Both are.
    fn others_die(&mut self) {
        self.die(&["b", "c"], &["a"]);
    }

    fn die(&mut self, dead: &[&str], alive: &[&str]) {
        let silent: BTreeSet<Identity> = dead.iter().copied().map(name).collect();
        let record = self.record.renewed(&myself("a"), &silent, None);
        self.record = renewed_by(record, alive);
        self.begins();
    }

    /// The dead one is back, and nobody has handed over anything yet.
    pub(crate) fn one_comes(&mut self) {
        self.record = self.record.renewed(&myself("c"), &nobody(), None);
        self.record = self.record.renewed(&myself("a"), &nobody(), None);
        self.begins();
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

/// So many that to list everything takes more pages than there are namespaces.
const OWNERS_EACH: usize = 50;

/// A replica that has read its share of three, one of which dies then.
struct Survivor {
    server: Arc<Server>,
    share: Arc<OwnShare>,
    three: OneOfThree,
    events: Events,
    gained: Vec<String>,
}

impl Survivor {
    async fn of_three() -> Self {
        let server = Arc::<Server>::default();
        let mut three = OneOfThree::new();
        let share = three.share.clone();
        let opened = server.clone();
        let open = move |namespace: Option<&str>| opened.open(namespace);
        // A third of all.
        let held = || teams().count() * OWNERS_EACH / 3;
        let mut events = share.owners(Arc::new(open), Arc::new(held));
        three.begins();
        grows(&share, 0);
        let nothing = tokio::time::timeout(Duration::from_millis(1), events.next()).await;
        assert!(nothing.is_err(), "the watch is open, and has said nothing");
        server.watch_says(Event::Init);
        for team in teams() {
            for number in 0..OWNERS_EACH {
                let mut owner = owner(&team, 5);
                owner["metadata"]["name"] = format!("{number}").into();
                server.watch_says(Event::InitApply(owner));
            }
        }
        server.watch_says(Event::InitDone);
        let before = share.accepted();
        let shown = teams().filter(|team| before.takes(team)).count() * OWNERS_EACH;
        let all: Vec<_> = events.by_ref().take(shown + 2).collect().await;
        assert!(matches!(all.last(), Some(Ok(Event::InitDone))));
        let quiet = tokio::time::timeout(Duration::from_millis(1), events.next()).await;
        assert!(quiet.is_err(), "and the end of the listing is followed");
        assert_eq!(*share.owners_listed().borrow(), share.listing().unwrap());
        share.listed(share.listing().unwrap());
        three.one_dies();
        grows(&share, 1);
        let after = share.accepted();
        let gained = teams().filter(|it| after.takes(it) && !before.takes(it));
        let gained: Vec<String> = gained.collect();
        assert!(gained.len() > 4, "{gained:?}");
        Self {
            server,
            share,
            three,
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

/// Each has to be remembered, and they may be many.
#[tokio::test(start_paused = true)]
async fn with_very_many_deletions_meanwhile_everything_is_listed() {
    let mut survivor = Survivor::of_three().await;
    survivor.reads().await;
    let listed = survivor.server.listed();
    let namespace = listed.first().unwrap();
    for number in 0..=MOST_DELETED {
        let mut gone = owner(namespace, 12);
        gone["metadata"]["name"] = format!("app-{number}").into();
        survivor.server.watch_says(Event::Delete(gone));
    }
    assert_eq!(survivor.reads().await.len(), MOST_DELETED + 1);
    assert!(!survivor.is_listed());
    assert_eq!(survivor.server.watches.lock().len(), 2);
}

/// The watch was opened for nothing that is read now.
#[tokio::test(start_paused = true)]
async fn a_second_growth_while_the_first_is_listed_has_everything_listed() {
    let mut survivor = Survivor::of_three().await;
    survivor.reads().await;
    survivor.share.is_due(DueListing::everything(7));
    survivor.reads().await;
    assert_eq!(survivor.server.watches.lock().len(), 2);
    let listings = survivor.server.listings.lock();
    assert!(
        listings.values().all(Sender::is_closed),
        "they are given up"
    );
}

/// A replica comes and goes while it is listed.
#[tokio::test(start_paused = true)]
async fn what_is_deleted_in_a_namespace_while_another_has_it_does_not_come_back() {
    let mut survivor = Survivor::of_three().await;
    survivor.reads().await;
    let listed = survivor.server.listed();
    let namespace = listed.first().unwrap();
    survivor.share.forgotten();
    survivor
        .server
        .watch_says(Event::Delete(owner(namespace, 12)));
    assert!(survivor.reads().await.is_empty(), "it is not accepted");
    survivor.three.one_dies();
    assert!(survivor.share.accepts(namespace));
    let read = survivor.lists(9).await;
    assert!(!applied(&read).contains(&**namespace));
    assert_eq!(applied(&read).len(), survivor.gained.len() - 1);
}
