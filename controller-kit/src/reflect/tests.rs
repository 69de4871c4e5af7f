//! What a store keeps of what a watch and replies say, and what it tells of the watch.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt as _;
use futures::channel::mpsc;
use kube::core::Status;
use kube::runtime::watcher;
use serde_json::json;

use super::health::MOMENT;
use super::*;

struct Seen(String);

thread_local! {
    /// What happens while the next entry is built, as if another thread had done it.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

fn meanwhile(happens: impl FnOnce() + 'static) {
    MEANWHILE.set(Some(Box::new(happens)));
}

impl Entry for Seen {
    fn build(object: Value) -> Self {
        if let Some(happens) = MEANWHILE.take() {
            happens();
        }
        let data = object["data"].as_str().unwrap_or("malformed");
        Self(data.to_owned())
    }

    fn uid(&self) -> Option<&str> {
        Some(&self.0)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the tables read better without references"
)]
fn object(name: &str, version: u64, data: Value) -> Value {
    json!({"metadata": {"name": name, "uid": data, "resourceVersion": version.to_string()}, "data": data})
}

fn listing<const N: usize>(objects: [Value; N]) -> Vec<Event<Value>> {
    let shown = objects.into_iter().map(Event::InitApply);
    let (begin, end) = ([Event::Init], [Event::InitDone]);
    begin.into_iter().chain(shown).chain(end).collect()
}

async fn changes(events: Vec<Event<Value>>, reflector: &Arc<Reflector<Seen>>) -> Vec<String> {
    let seen = Mutex::new(Vec::new());
    let stream: Events = futures::stream::iter(events.into_iter().map(Ok)).boxed();
    let note = |change: Change<'_, Seen>| {
        let text = |entry: Option<&Arc<Seen>>| {
            entry.map_or_else(|| "-".to_owned(), |entry| entry.0.clone())
        };
        seen.lock().push(format!(
            "{} {}>{}",
            change.key.name,
            text(change.before),
            text(change.after)
        ));
    };
    reflector
        .clone()
        .follow(stream, CancellationToken::new(), note)
        .await;
    let mut seen = seen.into_inner();
    seen.sort();
    seen
}

#[tokio::test]
async fn what_changed_last_comes_first_if_it_is_asked_for() {
    let reflector = Arc::new(Reflector::<Seen>::default());
    let named = |name, version| object(name, version, json!("x"));
    let shown = listing([
        named("a", 9),
        named("b", 200),
        named("c", 30),
        named("d", 1),
    ]);
    changes(shown, &reflector).await;
    changes(vec![Event::Apply(named("d", 1000))], &reflector).await;
    let found = reflector.newest_first(|key| &*key.name != "c");
    let names: Vec<&str> = found.iter().map(|key| &*key.name).collect();
    assert_eq!(names, ["d", "b", "a"]);
}

#[tokio::test]
async fn changes_are_told_once_the_first_listing_is_complete() {
    let reflector = Arc::new(Reflector::<Seen>::default());
    let first = listing([object("a", 1, json!("x")), object("b", 2, json!(5))]);
    assert_eq!(changes(first, &reflector).await, ["a ->x", "b ->malformed"]);
    assert!(reflector.is_synced());
    let second = listing([object("a", 3, json!("y"))]);
    assert_eq!(
        changes(second, &reflector).await,
        ["a x>y", "b malformed>-"]
    );
}

#[tokio::test]
async fn the_echo_of_an_overlaid_write_is_no_change() {
    let reflector = Arc::new(Reflector::<Seen>::default());
    changes(listing([object("a", 1, json!("x"))]), &reflector).await;
    reflector.overlay(object("a", 4, json!("ours")));
    assert!(
        changes(
            vec![Event::Apply(object("a", 3, json!("older")))],
            &reflector
        )
        .await
        .is_empty()
    );
    assert!(
        changes(
            vec![Event::Apply(object("a", 4, json!("ours")))],
            &reflector
        )
        .await
        .is_empty()
    );
    assert_eq!(
        changes(
            vec![Event::Apply(object("a", 5, json!("theirs")))],
            &reflector
        )
        .await,
        ["a ours>theirs"]
    );
}

#[tokio::test]
async fn a_listing_after_a_restore_takes_back_what_was_lost() {
    let reflector = Arc::new(Reflector::<Seen>::default());
    let first = listing([object("a", 80, json!("lost")), object("b", 81, json!("b"))]);
    changes(first, &reflector).await;
    let second = listing([
        object("a", 5, json!("restored")),
        object("b", 81, json!("b")),
    ]);
    assert_eq!(changes(second, &reflector).await, ["a lost>restored"]);
    let late = vec![Event::Apply(object("a", 4, json!("late")))];
    assert!(changes(late, &reflector).await.is_empty());
}

#[tokio::test]
async fn a_listing_does_not_undo_what_was_written_while_it_was_under_way() {
    let reflector = Arc::new(Reflector::<Seen>::default());
    let first = listing([object("a", 5, json!("x"))]);
    changes(first, &reflector).await;
    let (events, listing) = mpsc::unbounded();
    let mut following = tokio::task::JoinSet::new();
    following.spawn(reflector.clone().follow(
        listing.map(Ok).boxed(),
        CancellationToken::new(),
        |_| {},
    ));
    events.unbounded_send(Event::Init).unwrap();
    let begun = async || reflector.kept.read().is_listed();
    test_support::eventually(
        "the listing begins",
        std::time::Duration::from_mins(1),
        begun,
    )
    .await;
    reflector.overlay(object("a", 6, json!("ours")));
    for event in [
        Event::InitApply(object("a", 5, json!("x"))),
        Event::InitDone,
    ] {
        events.unbounded_send(event).unwrap();
    }
    drop(events);
    following.join_next().await.unwrap().unwrap();
    assert_eq!(reflector.get(&ObjectKey::new("", "a")).unwrap().0, "ours");
}

#[tokio::test]
async fn what_comes_while_an_older_object_is_built_stays() {
    let reflector = Arc::new(Reflector::<Seen>::default());
    let held = || reflector.get(&ObjectKey::new("", "a")).unwrap().0.clone();
    changes(listing([object("a", 1, json!("x"))]), &reflector).await;
    // A reply, while the watch builds what was there before it.
    let replied = reflector.clone();
    meanwhile(move || replied.overlay(object("a", 3, json!("ours"))));
    let older = vec![Event::Apply(object("a", 2, json!("older")))];
    assert!(changes(older, &reflector).await.is_empty());
    assert_eq!(held(), "ours");
    // The same while a listing builds it.
    let replied = reflector.clone();
    meanwhile(move || replied.overlay(object("a", 5, json!("ours again"))));
    assert!(
        changes(listing([object("a", 4, json!("listed"))]), &reflector)
            .await
            .is_empty()
    );
    assert_eq!(held(), "ours again");
    // What the watch shows, while an older reply is built.
    let watched = reflector.clone();
    meanwhile(move || watched.keep(object("a", 7, json!("theirs")), &|_| {}));
    reflector.overlay(object("a", 6, json!("late")));
    assert_eq!(held(), "theirs");
    // Its deletion, too.
    let watched = reflector.clone();
    meanwhile(move || watched.drop_key(&ObjectKey::new("", "a"), &|_| {}));
    reflector.overlay(object("a", 8, json!("ghost")));
    assert!(reflector.is_empty());
}

#[tokio::test]
async fn a_change_is_told_from_what_it_replaced() {
    let reflector = Arc::new(Reflector::<Seen>::default());
    changes(listing([object("a", 1, json!("x"))]), &reflector).await;
    let replied = reflector.clone();
    meanwhile(move || replied.overlay(object("a", 2, json!("ours"))));
    let newer = vec![Event::Apply(object("a", 3, json!("theirs")))];
    assert_eq!(changes(newer, &reflector).await, ["a ours>theirs"]);
}

fn no(message: &str) -> watcher::Result<Event<Value>> {
    let status = Status::failure(message, "Forbidden").with_code(403);
    Err(watcher::Error::InitialListFailed(kube::Error::Api(
        Box::new(status),
    )))
}

/// A watch that is followed, and how often it was told that it is refused, or no longer.
struct Scene {
    reflector: Arc<Reflector<Seen>>,
    events: mpsc::UnboundedSender<watcher::Result<Event<Value>>>,
    following: Pin<Box<dyn Future<Output = ()>>>,
    told: Arc<AtomicU32>,
}

fn scene(reflector: Reflector<Seen>) -> Scene {
    let (reflector, told) = (Arc::new(reflector), Arc::new(AtomicU32::new(0)));
    let (events, watched) = mpsc::unbounded();
    let count = told.clone();
    let refused = move || {
        count.fetch_add(1, Ordering::SeqCst);
    };
    let cancel = CancellationToken::new();
    let follow = reflector.clone();
    Scene {
        following: Box::pin(follow.follow_and_tell(watched.boxed(), cancel, |_| {}, refused)),
        reflector,
        events,
        told,
    }
}

impl Scene {
    /// What is said, and how often it has changed, once this event and all before it have been
    /// followed.
    fn after(&mut self, event: watcher::Result<Event<Value>>) -> String {
        self.events.unbounded_send(event).unwrap();
        assert!((&mut self.following).now_or_never().is_none());
        let why = self.reflector.refused().unwrap_or_else(|| "-".to_owned());
        format!("{why} {}", self.told.load(Ordering::SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_listing_that_is_refused_is_told_once_and_when_it_succeeds() {
    let mut scene = scene(Reflector::default());
    assert_eq!(scene.after(no("no")), "no 1");
    assert_eq!(scene.after(no("no")), "no 1");
    assert_eq!(scene.after(no("not yet")), "not yet 2");
    assert_eq!(scene.after(Ok(Event::Init)), "not yet 2");
    assert_eq!(scene.after(Ok(Event::InitDone)), "- 3");
    assert_eq!(scene.after(Ok(Event::InitDone)), "- 3");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_went_on_is_refused_only_after_a_moment() {
    let mut scene = scene(Reflector::default());
    scene.after(Ok(Event::InitDone));
    assert_eq!(scene.after(no("starting")), "- 0");
    tokio::time::advance(MOMENT).await;
    scene.after(Ok(Event::Apply(json!({}))));
    assert_eq!(scene.after(no("starting")), "- 0");
    tokio::time::advance(MOMENT).await;
    assert_eq!(scene.after(no("revoked")), "revoked 1");
}

#[tokio::test(start_paused = true)]
async fn an_interruption_is_no_refusal() {
    let mut scene = scene(Reflector::default());
    let gone = Err(watcher::Error::NoResourceVersion);
    assert_eq!(scene.after(gone), "- 0");
}

#[tokio::test(start_paused = true)]
async fn another_try_is_refused_until_it_is_listed() {
    let mut first = scene(Reflector::default());
    first.after(no("no"));
    let mut second = scene(Reflector::after(&first.reflector));
    assert_eq!(second.after(Ok(Event::Init)), "no 0");
    assert_eq!(second.after(no("no")), "no 0");
    assert_eq!(second.after(Ok(Event::InitDone)), "- 1");
}

/// What is listed beside a watch may be ahead of it.
#[tokio::test]
async fn a_late_deletion_of_a_predecessor_leaves_the_successor() {
    let reflector = Arc::<Reflector<Seen>>::default();
    let mut events = listing([object("a", 5, json!("first"))]);
    events.push(Event::Apply(object("a", 9, json!("second"))));
    events.push(Event::Delete(object("a", 7, json!("first"))));
    changes(events, &reflector).await;
    assert_eq!(reflector.all().len(), 1);
    changes(
        vec![Event::Delete(object("a", 11, json!("second")))],
        &reflector,
    )
    .await;
    assert!(reflector.all().is_empty());
}

/// Somebody took the labels away that are watched, before our own write.
#[tokio::test]
async fn what_lost_its_labels_goes_though_a_reply_has_shown_it_since() {
    let reflector = Arc::<Reflector<Seen>>::default();
    changes(listing([object("a", 5, json!("first"))]), &reflector).await;
    reflector.overlay(object("a", 21, json!("first")));
    let lost = vec![Event::Delete(object("a", 19, json!("first")))];
    changes(lost, &reflector).await;
    assert!(reflector.all().is_empty());
}
