use std::collections::BTreeMap;

use serde_json::json;

use super::read::MOST_PARTS;
use super::*;
use crate::metrics::Metrics;
use crate::scheduler::SchedulerConfig;

type Reply = Result<http::Response<kube::client::Body>, std::convert::Infallible>;

/// An API server that never answers: which watches there are does not depend on it.
fn selections() -> Selections {
    selections_on(kube::Client::new(
        tower::service_fn(|_: http::Request<kube::client::Body>| std::future::pending::<Reply>()),
        "default",
    ))
}

/// An API server that refuses everything.
fn refused_selections() -> Selections {
    let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
        "message": "may not", "code": 403});
    let refuse = move |_: http::Request<kube::client::Body>| {
        let body = kube::client::Body::from(status.to_string().into_bytes());
        let reply = http::Response::builder().status(403).body(body).unwrap();
        std::future::ready(Reply::Ok(reply))
    };
    selections_on(kube::Client::new(tower::service_fn(refuse), "default"))
}

fn selections_on(client: kube::Client) -> Selections {
    let cluster = Cluster::new(client.clone(), client, Arc::new(Metrics::new()));
    let scheduler = Arc::new(Scheduler::new(SchedulerConfig::default()));
    Selections::new(&cluster, &scheduler, &Tasks::new())
}

fn served() -> Served {
    Served {
        kind: Kind::new("v1", "ConfigMap"),
        plural: "configmaps".to_owned(),
        namespaced: true,
        status_subresource: false,
    }
}

fn selection(label: usize) -> Selection {
    Selection {
        kind: served().kind,
        namespace: Some("dev".to_owned()),
        choice: ObjectChoice::Labels(BTreeMap::from([("app".to_owned(), label.to_string())])),
    }
}

fn owner(number: usize) -> ObjectKey {
    ObjectKey::new("dev", &number.to_string())
}

/// It was asked for now, and nothing matched.
fn nothing_there(selections: &Selections) -> Read {
    Read {
        asked: selections.ask(),
        matches: Matches(BTreeSet::new()),
        part: None,
        object: Err(NotOne::None),
        version: String::new(),
    }
}

/// What was read, and is not to be read again for this owner.
fn read(
    selections: &Selections,
    owner: &ObjectKey,
    selection: &Selection,
    matches: &Matches,
    part: Option<&Projection>,
) -> Option<Read> {
    match selections.reading(owner, selection, matches, part)? {
        Reading::Done(read) => Some(read),
        Reading::UnderWay(_) => None,
    }
}

/// The uid of the account that owners have.
const ACCOUNT: &str = "sa";

fn watched(selections: &Selections) -> usize {
    selections.known.lock().watches.len()
}

#[tokio::test]
async fn equal_selections_share_a_watch() {
    let selections = selections();
    for number in 0..3 {
        assert_eq!(
            selections.follow(&owner(number), ACCOUNT, &selection(0), &served(), 0),
            WatchAnswer::Nothing
        );
    }
    assert_eq!(watched(&selections), 1);
}

#[tokio::test]
async fn watches_are_bounded_and_a_place_is_given_on() {
    let selections = selections();
    for number in 0..=MOST_WATCHES {
        let _ = selections.follow(&owner(number), ACCOUNT, &selection(number), &served(), 0);
    }
    assert_eq!(watched(&selections), MOST_WATCHES);
    let late = selection(MOST_WATCHES);
    assert!(!selections.known.lock().watches.contains_key(&late));
    selections.retain(&owner(0), &[]);
    selections.sweep(&|_| true);
    assert_eq!(watched(&selections), MOST_WATCHES - 1);
    let _ = selections.follow(&owner(MOST_WATCHES), ACCOUNT, &late, &served(), 0);
    assert!(selections.known.lock().watches.contains_key(&late));
}

#[tokio::test]
async fn a_watch_ends_with_its_last_user() {
    let selections = selections();
    let _ = selections.follow(&owner(1), ACCOUNT, &selection(0), &served(), 0);
    let _ = selections.follow(&owner(2), ACCOUNT, &selection(0), &served(), 0);
    let cancel = selections.known.lock().watches[&selection(0)]
        .cancel
        .clone();
    selections.sweep(&|key| *key != owner(1));
    assert!(!cancel.is_cancelled());
    // It selects something else now.
    let _ = selections.follow(&owner(2), ACCOUNT, &selection(9), &served(), 0);
    selections.retain(&owner(2), &[selection(9)]);
    selections.sweep(&|_| true);
    assert!(cancel.is_cancelled());
    assert_eq!(watched(&selections), 1);
}

#[tokio::test]
async fn what_was_read_holds_for_the_same_matches_and_rights_whoever_reads_it() {
    let selections = selections();
    let matches = |version| Matches(BTreeSet::from([("uid".into(), version)]));
    let object = |label: usize| Ok(Arc::new(Value::from(label)));
    let part = |field: &str| Some(Projection::new([vec![field.to_owned()]]));
    for label in 0..2 {
        let _ = selections.follow(&owner(label), ACCOUNT, &selection(label), &served(), 0);
        let read = Read {
            asked: selections.ask(),
            matches: matches(1),
            part: part("data"),
            object: object(label),
            version: String::new(),
        };
        selections.keep(&selection(label), ACCOUNT, read);
    }
    let follow = |number, account, label| {
        let _ = selections.follow(&owner(number), account, &selection(label), &served(), 0);
    };
    follow(2, ACCOUNT, 0);
    follow(3, "other", 0);
    let read = |number, label, version, field| {
        let matches = matches(version);
        let part = part(field);
        let read = self::read(
            &selections,
            &owner(number),
            &selection(label),
            &matches,
            part.as_ref(),
        );
        read.map(|read| read.object)
    };
    assert_eq!(read(0, 0, 1, "data"), Some(object(0)));
    assert_eq!(read(1, 1, 1, "data"), Some(object(1)));
    assert_eq!(read(2, 0, 1, "data"), Some(object(0)), "the same account");
    assert_eq!(read(3, 0, 1, "data"), None, "another account");
    assert_eq!(read(0, 0, 2, "data"), None);
    assert_eq!(read(0, 0, 1, "status"), None);
    assert_eq!(read(0, 1, 1, "data"), None, "not followed");
    // It goes with the last who selects it.
    for number in [0, 2, 3] {
        selections.retain(&owner(number), &[]);
    }
    selections.sweep(&|_| true);
    follow(0, ACCOUNT, 0);
    assert_eq!(read(0, 0, 1, "data"), None);
    assert_eq!(read(1, 1, 1, "data"), Some(object(1)));
}

#[tokio::test]
async fn what_was_asked_for_before_an_owner_applied_something_does_for_the_others_only() {
    let selections = selections();
    let matches = Matches(BTreeSet::from([("uid".into(), 1)]));
    for number in 0..2 {
        let _ = selections.follow(&owner(number), ACCOUNT, &selection(0), &served(), 0);
    }
    let keep = |asked| {
        let read = Read {
            asked,
            matches: matches.clone(),
            part: None,
            object: Err(NotOne::None),
            version: String::new(),
        };
        selections.keep(&selection(0), ACCOUNT, read);
    };
    let does_for = |number| {
        let read = self::read(&selections, &owner(number), &selection(0), &matches, None);
        read.is_some()
    };
    keep(selections.ask());
    // Its answer comes after something was applied, but it was asked for before.
    let early = selections.ask();
    selections.outdate(&owner(0), &selection(0));
    assert!(!does_for(0) && does_for(1));
    keep(early);
    assert!(!does_for(0) && does_for(1));
    keep(selections.ask());
    assert!(does_for(0) && does_for(1), "whoever asked for it");
}

#[tokio::test]
async fn an_answer_that_comes_late_takes_the_place_of_none_that_was_asked_for_later() {
    let selections = selections();
    let matches = Matches(BTreeSet::from([("uid".into(), 1)]));
    let _ = selections.follow(&owner(0), ACCOUNT, &selection(0), &served(), 0);
    let first = selections.ask();
    let second = selections.ask();
    for (asked, object) in [(second, "new"), (first, "old")] {
        let read = Read {
            asked,
            matches: matches.clone(),
            part: None,
            object: Ok(Arc::new(Value::from(object))),
            version: String::new(),
        };
        selections.keep(&selection(0), ACCOUNT, read);
    }
    let read = || {
        let read = self::read(&selections, &owner(0), &selection(0), &matches, None);
        read.map(|read| read.object)
    };
    assert_eq!(read(), Some(Ok(Arc::new(Value::from("new")))));
    selections.forget_reads(&selection(0), ACCOUNT);
    assert_eq!(read(), None, "the account was refused it");
}

#[tokio::test]
async fn reads_of_accounts_that_nobody_has_any_more_go() {
    let selections = selections();
    for (number, account) in [(0, "stays"), (1, "goes")] {
        let _ = selections.follow(&owner(number), account, &selection(0), &served(), 0);
        let read = nothing_there(&selections);
        selections.keep(&selection(0), account, read);
    }
    selections.sweep(&|key| *key != owner(1));
    let known = selections.known.lock();
    let accounts: Vec<&String> = known.watches[&selection(0)].reads.keys().collect();
    assert_eq!(accounts, ["stays"]);
}

#[tokio::test]
async fn of_one_object_the_parts_that_were_read_last_are_kept() {
    let selections = selections();
    let matches = Matches(BTreeSet::from([("uid".into(), 1)]));
    let part = |number: usize| Some(Projection::new([vec![number.to_string()]]));
    let _ = selections.follow(&owner(0), ACCOUNT, &selection(0), &served(), 0);
    for number in 0..=MOST_PARTS {
        let read = Read {
            asked: selections.ask(),
            matches: matches.clone(),
            part: part(number),
            object: Err(NotOne::None),
            version: String::new(),
        };
        selections.keep(&selection(0), ACCOUNT, read);
    }
    let is_kept = |number| {
        let part = part(number);
        let read = self::read(
            &selections,
            &owner(0),
            &selection(0),
            &matches,
            part.as_ref(),
        );
        let read = read.map(|read| read.object);
        read.is_some()
    };
    assert!(!is_kept(0) && is_kept(1) && is_kept(MOST_PARTS));
}

#[tokio::test]
async fn a_refused_watch_says_so_and_is_tried_again_when_rights_change() {
    let selections = refused_selections();
    let follow = |rights| selections.follow(&owner(1), ACCOUNT, &selection(0), &served(), rights);
    assert_eq!(follow(0), WatchAnswer::Nothing);
    let refused = || WatchAnswer::Refused("may not".to_owned());
    let patience = std::time::Duration::from_mins(1);
    test_support::eventually("it is refused", patience, async || follow(0) == refused()).await;
    let (first, users) = {
        let known = selections.known.lock();
        let watch = &known.watches[&selection(0)];
        (watch.cancel.clone(), watch.users.clone())
    };
    let _ = selections.follow(&owner(2), ACCOUNT, &selection(0), &served(), 0);
    assert!(!first.is_cancelled());
    assert_eq!(follow(1), refused(), "until the contrary is known");
    assert!(first.is_cancelled());
    assert_eq!(watched(&selections), 1);
    let known = selections.known.lock();
    assert!(Arc::ptr_eq(&known.watches[&selection(0)].users, &users));
    assert_eq!(users.lock().len(), 2);
}

#[tokio::test]
async fn a_namespace_with_many_selections_gives_way_to_one_with_few() {
    let selections = selections();
    for number in 0..MOST_WATCHES {
        let _ = selections.follow(&owner(number), ACCOUNT, &selection(number), &served(), 0);
    }
    let guest = |number: usize| ObjectKey::new("guests", &number.to_string());
    let of_guests = |number: usize| Selection {
        namespace: Some("guests".to_owned()),
        ..selection(number)
    };
    let youngest = selection(MOST_WATCHES - 1);
    let gives_way = selections.known.lock().watches[&youngest].cancel.clone();
    let _ = selections.follow(&guest(0), ACCOUNT, &of_guests(0), &served(), 0);
    assert!(gives_way.is_cancelled());
    assert_eq!(watched(&selections), MOST_WATCHES);
    // The one that gave way does not take another's place in its turn, however often it looks.
    let said = selections.follow(&owner(MOST_WATCHES - 1), ACCOUNT, &youngest, &served(), 0);
    assert_eq!(said, WatchAnswer::Nothing);
    assert!(!selections.known.lock().watches.contains_key(&youngest));
    for number in 1..MOST_WATCHES {
        let _ = selections.follow(&guest(number), ACCOUNT, &of_guests(number), &served(), 0);
    }
    let of = |namespace: &str| {
        let known = selections.known.lock();
        let watches = known.watches.values();
        watches
            .filter(|watch| *watch.begun.namespace == *namespace)
            .count()
    };
    assert_eq!(
        (of("dev"), of("guests")),
        (MOST_WATCHES / 2, MOST_WATCHES / 2)
    );
}

#[tokio::test]
async fn what_many_read_in_the_same_version_is_held_once() {
    let selections = selections();
    let object =
        |version: &str| serde_json::json!({"metadata": {"uid": "u", "resourceVersion": version}});
    let first = selections.share(&selection(0), object("1"));
    assert!(Arc::ptr_eq(
        &first,
        &selections.share(&selection(1), object("1"))
    ));
    assert!(!Arc::ptr_eq(
        &first,
        &selections.share(&selection(0), object("2"))
    ));
    let of_another_kind = Selection {
        kind: Kind::new("v2", "ConfigMap"),
        ..selection(0)
    };
    assert!(!Arc::ptr_eq(
        &first,
        &selections.share(&of_another_kind, object("1"))
    ));
    drop(first);
    selections.sweep(&|_| true);
    assert!(
        selections.known.lock().objects.is_empty(),
        "nobody holds them"
    );
}

/// Of the selection that owner 0 follows.
fn version(selections: &Selections, account: &str) -> Option<String> {
    let answer = selections.follow(&owner(0), account, &selection(0), &served(), 0);
    selections.version(&owner(0), &selection(0), &answer)
}

#[tokio::test]
async fn what_another_owner_of_the_account_has_begun_to_read_is_waited_for_if_it_does() {
    let selections = selections();
    for (number, account) in [(0, ACCOUNT), (1, ACCOUNT), (2, "another")] {
        selections.follow(&owner(number), account, &selection(0), &served(), 0);
    }
    let none = Matches(BTreeSet::new());
    let of = |number, matches: &Matches, part| match selections.reading(
        &owner(number),
        &selection(0),
        matches,
        part,
    )? {
        Reading::UnderWay(under_way) => Some(under_way),
        Reading::Done(_) => None,
    };
    let under_way = |number| of(number, &none, None);
    assert!(under_way(1).is_none());
    let begin = || selections.begin(&owner(0), &selection(0), &none, None);
    let begun = begin().unwrap();
    let waiting = under_way(1).unwrap();
    assert!(under_way(2).is_none(), "it may have other rights");
    let other = Matches(BTreeSet::from([("uid".into(), 2)]));
    let of_another = of(1, &other, None);
    assert!(of_another.is_none(), "it has changed since");
    let part = Projection::new([vec!["data".to_owned()]]);
    let of_a_part = of(1, &none, Some(&part));
    assert!(of_a_part.is_none(), "it is another part");

    let mut ended = std::pin::pin!(waiting.ended());
    tokio::select! {
        biased;
        () = &mut ended => panic!("it is under way"),
        () = tokio::task::yield_now() => {}
    }
    drop(begun);
    ended.await;
    assert!(under_way(1).is_none(), "it is over");

    let _begun = begin();
    selections.outdate(&owner(1), &selection(0));
    assert!(
        under_way(1).is_none(),
        "it was begun before the owner applied"
    );
    assert!(under_way(0).is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_a_version_waits_a_moment_for_an_answer_of_the_api_server() {
    let waited = async |selections: &Selections| {
        assert_eq!(version(selections, ACCOUNT), None);
        let begun = tokio::time::Instant::now();
        selections.wait_for_listing(&selection(0)).await;
        assert_eq!(version(selections, ACCOUNT), None);
        begun.elapsed()
    };
    let hangs = waited(&selections()).await;
    assert!(hangs > LISTING / 2 && hangs <= LISTING, "{hangs:?}");
    assert!(waited(&refused_selections()).await < LISTING / 2);
    let nobody_follows = selections();
    nobody_follows.wait_for_listing(&selection(0)).await;
}

/// With nothing that matches.
#[tokio::test]
async fn a_version_is_that_of_an_account_and_none_is_told_after_an_apply_until_it_is_read() {
    let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "1"}, "items": []});
    let reply = move |request: http::Request<kube::client::Body>| {
        let list = list.to_string();
        let is_watch = request.uri().to_string().contains("watch=true");
        async move {
            if is_watch {
                return std::future::pending::<Reply>().await;
            }
            let body = kube::client::Body::from(list.into_bytes());
            Reply::Ok(http::Response::new(body))
        }
    };
    let selections = selections_on(kube::Client::new(tower::service_fn(reply), "default"));
    assert_eq!(version(&selections, "first"), None, "it is not listed yet");
    selections.wait_for_listing(&selection(0)).await;
    let first = version(&selections, "first");
    assert!(first.is_some());
    assert_ne!(
        version(&selections, "second"),
        first,
        "it may have other rights"
    );

    selections.outdate(&owner(0), &selection(0));
    let read = |selections: &Selections| {
        let read = nothing_there(selections);
        selections.keep(&selection(0), "first", read);
    };
    read(&selections);
    selections.outdate(&owner(0), &selection(0));
    assert_eq!(version(&selections, "first"), None);
    read(&selections);
    assert_eq!(version(&selections, "first"), first);
}
