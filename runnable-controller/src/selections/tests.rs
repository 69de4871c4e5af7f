use controller_kit::metrics::Metrics;
use controller_kit::scheduler::SchedulerConfig;

use super::*;

/// An API server that never answers: which watches there are does not depend on it.
fn selections() -> Selections {
    let silent = || {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<
                Result<http::Response<kube::client::Body>, std::convert::Infallible>,
            >()
        });
        kube::Client::new(service, "default")
    };
    let cluster = Cluster::new(silent(), silent(), Arc::new(Metrics::new()));
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
        labels: BTreeMap::from([("app".to_owned(), label.to_string())]),
    }
}

fn runnable(number: usize) -> ObjectKey {
    ObjectKey::new("dev", &number.to_string())
}

fn watched(selections: &Selections) -> usize {
    selections.lock().watches.len()
}

#[tokio::test]
async fn equal_selections_share_a_watch() {
    let selections = selections();
    for number in 0..3 {
        assert_eq!(
            selections.follow(&runnable(number), &selection(0), &served()),
            None
        );
    }
    assert_eq!(watched(&selections), 1);
}

#[tokio::test]
async fn watches_are_bounded_and_a_place_is_given_on() {
    let selections = selections();
    for number in 0..=MOST_WATCHES {
        let _ = selections.follow(&runnable(number), &selection(number), &served());
    }
    assert_eq!(watched(&selections), MOST_WATCHES);
    let late = selection(MOST_WATCHES);
    assert!(!selections.lock().watches.contains_key(&late));
    selections.release(&runnable(0));
    selections.sweep(&|_| true);
    assert_eq!(watched(&selections), MOST_WATCHES - 1);
    let _ = selections.follow(&runnable(MOST_WATCHES), &late, &served());
    assert!(selections.lock().watches.contains_key(&late));
}

#[tokio::test]
async fn a_watch_ends_with_its_last_user() {
    let selections = selections();
    let _ = selections.follow(&runnable(1), &selection(0), &served());
    let _ = selections.follow(&runnable(2), &selection(0), &served());
    let cancel = selections.lock().watches[&selection(0)].cancel.clone();
    selections.sweep(&|key| *key != runnable(1));
    assert!(!cancel.is_cancelled());
    // It selects something else now.
    let _ = selections.follow(&runnable(2), &selection(9), &served());
    selections.sweep(&|_| true);
    assert!(cancel.is_cancelled());
    assert_eq!(watched(&selections), 1);
}

#[tokio::test]
async fn what_was_read_holds_for_the_same_matches_and_rights() {
    let selections = selections();
    let matches = |version| Matches(BTreeSet::from([("uid".into(), version)]));
    let object = || Ok(Value::from("object"));
    selections.keep(
        &runnable(1),
        Read {
            selection: selection(0),
            account: "sa".to_owned(),
            matches: matches(1),
            object: object(),
        },
    );
    let read = |label, account, version| {
        selections.read(&runnable(1), &selection(label), account, &matches(version))
    };
    assert_eq!(read(0, "sa", 1), Some(object()));
    assert_eq!(read(0, "sa", 2), None);
    assert_eq!(read(0, "other", 1), None);
    assert_eq!(read(1, "sa", 1), None);
    selections.release(&runnable(1));
    assert_eq!(read(0, "sa", 1), None);
}
