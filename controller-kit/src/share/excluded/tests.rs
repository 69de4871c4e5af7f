//! A watch that leaves out namespaces, on a server that tells what it is asked.

use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{FutureExt as _, StreamExt as _};
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::learned::{LONGEST, SHORTEST, WORTH};
use super::*;
use crate::share::tests::gaining::{OneOfThree, grows_among};
use crate::share::tests::teams;

/// What a watch is sent, and the watches that there are.
type Sent = UnboundedSender<Result<Frame<Bytes>, std::convert::Infallible>>;

/// One kind on a server.
struct Server {
    excluded: Arc<Excluded>,
    client: kube::Client,
    /// What was asked, and what sends the answer.
    asked: UnboundedReceiver<(Uri, Sent)>,
}

/// A watch, as it arrives.
struct Arriving {
    asked: Uri,
    sent: Sent,
    body: Body,
}

impl Server {
    fn new(share: &Arc<OwnShare>) -> Self {
        Self::answering(share, |_| StatusCode::OK)
    }

    /// Answers so.
    fn answering(
        share: &Arc<OwnShare>,
        status: impl Fn(&Uri) -> StatusCode + Send + Sync + 'static,
    ) -> Self {
        let (tells, asked) = unbounded();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (sent, body) = unbounded();
            let uri = request.uri().clone();
            let mut response = Response::new(StreamBody::new(body));
            *response.status_mut() = status(&uri);
            tells.unbounded_send((uri, sent)).unwrap();
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        let excluded = Excluded::new(share.clone());
        let client = excluded.watching(kube::Client::new(service, "default"));
        Self {
            excluded,
            client,
            asked,
        }
    }

    async fn asks(&mut self, path: &str) -> Arriving {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = self.client.send(request).await.unwrap();
        let (asked, sent) = self.asked.next().await.unwrap();
        Arriving {
            asked,
            sent,
            body: response.into_body(),
        }
    }

    async fn watches(&mut self) -> Arriving {
        self.asks("/api/v1/configmaps?&watch=true&resourceVersion=7")
            .await
    }

    /// So many objects of this namespace arrive.
    fn arrive(&self, namespace: &str, count: usize) {
        let kept = self.excluded.kept();
        for _ in 0..count {
            kept(namespace);
        }
    }
}

impl Arriving {
    fn send(&self, line: &'static str) {
        let frame = Frame::data(Bytes::from_static(line.as_bytes()));
        self.sent.unbounded_send(Ok(frame)).unwrap();
    }

    /// What comes next; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let next = tokio::time::timeout(Duration::from_secs(10), self.body.frame());
        let frame = next.await.expect("nothing comes, and no end");
        frame.map(|it| it.unwrap().into_data().unwrap())
    }

    /// Whether it goes on.
    async fn goes_on(&mut self) -> bool {
        self.send("on\n");
        self.next().await.is_some()
    }

    fn left_out(&self) -> Vec<String> {
        let parameters = self.asked.query().unwrap_or_default().split('&');
        let selector = parameters.filter_map(|it| it.strip_prefix("fieldSelector="));
        let terms = selector.flat_map(|it| it.split(COMMA));
        let names = terms.map(|it| it.strip_prefix("metadata.namespace%21%3D").unwrap());
        names.map(str::to_owned).collect()
    }
}

/// One of three that accepts its part, and a namespace of the one that dies first, another of who stays.
fn share() -> (OneOfThree, String, String) {
    let replica = OneOfThree::new();
    replica.begins();
    let mut after = OneOfThree::new();
    after.begins();
    after.one_dies();
    let (now, then) = (replica.share.accepted(), after.share.accepted());
    let gained = teams().find(|it| then.takes(it) && !now.takes(it)).unwrap();
    let never = teams().find(|it| !then.takes(it)).unwrap();
    (replica, gained, never)
}

#[tokio::test(start_paused = true)]
async fn what_is_often_dropped_is_left_out_of_the_next_watch() {
    let (replica, gained, never) = share();
    let mut server = Server::new(&replica.share);
    let mut watch = server.watches().await;
    assert_eq!(watch.asked.query(), Some("&watch=true&resourceVersion=7"));
    tokio::time::advance(SHORTEST).await;
    server.arrive(&never, WORTH - 1);
    assert!(watch.goes_on().await, "a new watch costs more");
    server.arrive(&gained, 1);
    assert!(!watch.goes_on().await);

    let mut watch = server.watches().await;
    let mut expected = vec![gained, never];
    expected.sort();
    assert_eq!(watch.left_out(), expected);
    assert!(watch.asked.query().unwrap().contains("resourceVersion=7"));
    let another = others(&replica).find(|it| !expected.contains(it)).unwrap();
    server.arrive(&another, 2 * WORTH);
    assert!(watch.goes_on().await, "it has only begun");
    tokio::time::advance(SHORTEST).await;
    assert!(!watch.goes_on().await);
}

/// Namespaces of other replicas.
fn others(replica: &OneOfThree) -> impl Iterator<Item = String> + use<> {
    let accepted = replica.share.accepted();
    teams().filter(move |it| !accepted.takes(it))
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_not_left_out_and_what_is_listed_is_whole() {
    let (replica, _, never) = share();
    let accepted = replica.share.accepted();
    let ours = teams().find(|it| accepted.takes(it)).unwrap();
    let mut server = Server::new(&replica.share);
    server.arrive(&ours, 2 * WORTH);
    server.arrive(&never, WORTH);
    assert_eq!(server.watches().await.left_out(), [never]);
    let listing = server.asks("/api/v1/configmaps?&limit=100").await;
    assert_eq!(listing.left_out(), [""; 0]);
}

/// Between the listing of a namespace and its watch nothing may be missing: a version that comes after the listing began, by a
/// watch that leaves out the namespace, would have the next one begin behind what was missed.
#[tokio::test(start_paused = true)]
async fn of_a_watch_that_lacks_something_nothing_is_passed_on_any_more() {
    let (mut replica, gained, never) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&gained, 1);
    server.arrive(&never, 1);
    let mut watch = server.watches().await;
    assert!(watch.goes_on().await);
    watch.send("before it was accepted, and not read yet\n");
    replica.one_dies();
    assert_eq!(watch.next().await, None);
    assert_eq!(server.watches().await.left_out(), [never]);
}

/// The same when it is sent while the watch waits for it: which of both it hears of first is chance.
#[tokio::test(start_paused = true)]
async fn what_is_sent_as_more_is_accepted_is_not_passed_on() {
    for _ in 0..64 {
        let (mut replica, gained, _) = share();
        let mut server = Server::new(&replica.share);
        server.arrive(&gained, 1);
        let mut watch = server.watches().await;
        assert!(watch.body.frame().now_or_never().is_none(), "it waits");
        watch.send("sent before more was accepted\n");
        replica.one_dies();
        assert_eq!(watch.next().await, None);
    }
}

/// Pages of a namespace may show what was deleted since: the watch tells of it though others have the namespace again.
#[tokio::test(start_paused = true)]
async fn what_is_being_listed_is_not_left_out_while_others_have_it() {
    let (mut replica, gained, never) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&never, 1);
    server.arrive(&gained, 1);
    let all: Vec<Box<str>> = teams().map(Box::from).collect();
    grows_among(&replica.share, 0, &all);
    replica.share.listed(1);
    replica.one_dies();
    grows_among(&replica.share, 1, &all);
    replica.one_comes();
    assert!(!replica.share.accepted().takes(&gained));
    server.arrive(&gained, 1);
    assert_eq!(server.watches().await.left_out(), [never]);
}

#[tokio::test(start_paused = true)]
async fn where_a_reconcile_is_under_way_is_not_left_out_though_others_have_it() {
    let (mut replica, gained, _) = share();
    replica.one_dies();
    replica.share.listed(1);
    replica.share.listed(2);
    let permit = replica.share.enter(&gained).unwrap();
    replica.one_comes();
    assert!(!replica.share.accepted().takes(&gained));
    let all: Vec<Box<str>> = teams().map(Box::from).collect();
    replica.share.knows_of(&all);
    let mut server = Server::new(&replica.share);
    assert!(!server.watches().await.left_out().contains(&gained));
    drop(permit);
    assert!(server.watches().await.left_out().contains(&gained));
}

#[tokio::test(start_paused = true)]
async fn lines_are_passed_on_whole() {
    let (replica, ..) = share();
    let mut server = Server::new(&replica.share);
    let mut watch = server.watches().await;
    for part in ["one\ntw", "o", "\nthree\n", "fo", "ur"] {
        watch.send(part);
    }
    for whole in ["one\n", "two\nthree\n"] {
        assert_eq!(watch.next().await.unwrap(), whole);
    }
    watch.sent.close_channel();
    assert_eq!(
        watch.next().await.unwrap(),
        "four",
        "an answer may have no line"
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_which_nothing_happens_ends_when_it_lacks_something() {
    let (mut replica, gained, _) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&gained, 1);
    let mut watch = server.watches().await;
    let dies = async {
        tokio::task::yield_now().await;
        replica.one_dies();
    };
    let (next, ()) = tokio::join!(watch.next(), dies);
    assert_eq!(next, None);
}

/// What is accepted while the request is under way counts as well.
#[tokio::test(start_paused = true)]
async fn a_watch_that_lacks_something_when_it_is_answered_shows_nothing() {
    let (mut replica, gained, _) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&gained, 1);
    let mut watch = server.watches().await;
    assert_eq!(watch.left_out(), [gained]);
    replica.one_dies();
    assert!(!watch.goes_on().await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lacks_nothing_goes_on_whatever_changes() {
    let (mut replica, _, never) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&never, 1);
    let mut watch = server.watches().await;
    replica.one_dies();
    assert!(watch.goes_on().await);
    assert!(watch.goes_on().await);
}

#[tokio::test(start_paused = true)]
async fn a_selector_is_short_whatever_namespaces_there_are_and_learned_anew_once_it_was_used() {
    let (replica, _, never) = share();
    let mut server = Server::new(&replica.share);
    let accepted = replica.share.accepted();
    let crowd = (0..).map(|it| format!("crowd-{it}-{}", "x".repeat(40)));
    let crowd: Vec<String> = crowd.filter(|it| !accepted.takes(it)).take(1000).collect();
    let arrive = |server: &Server| crowd.iter().for_each(|it| server.arrive(it, 1));
    arrive(&server);
    let learned = server.excluded.learned.lock().bytes();
    assert!(learned > LONGEST - 100 && learned <= LONGEST, "{learned}");
    let mut watch = server.watches().await;
    assert!(
        watch.left_out().len() > 50,
        "it is used before it is given up"
    );
    tokio::time::advance(SHORTEST).await;
    for namespace in crowd.iter().filter(|it| !watch.left_out().contains(it)) {
        server.arrive(namespace, 1);
    }
    assert!(
        watch.goes_on().await,
        "the next one would have no room either"
    );
    assert_eq!(server.watches().await.left_out(), [""; 0]);
    // What changes often is dropped first, so that it finds room.
    server.arrive(&never, WORTH);
    assert_eq!(server.watches().await.left_out(), [never]);
}

/// Neither is known to be the selector's fault before the third time: what fails may be the server.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_take_the_selector_is_asked_without_it() {
    let (replica, _, never) = share();
    for answer in [
        StatusCode::BAD_REQUEST,
        StatusCode::FORBIDDEN,
        StatusCode::BAD_GATEWAY,
    ] {
        let mut server = Server::answering(&replica.share, move |asked| {
            let has_selector = asked.query().unwrap().contains("fieldSelector");
            [StatusCode::OK, answer][usize::from(has_selector)]
        });
        server.arrive(&never, 1);
        for _ in 0..3 {
            assert_eq!(server.watches().await.left_out(), [never.as_str()]);
            let (asked, _) = server.asked.next().await.unwrap();
            assert!(!asked.query().unwrap().contains("fieldSelector"), "at once");
        }
        let mut watch = server.watches().await;
        assert_eq!(watch.left_out(), [""; 0]);
        tokio::time::advance(SHORTEST).await;
        server.arrive(&never, 2 * WORTH);
        assert!(watch.goes_on().await, "a new one would be the same");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_for_a_while_is_asked_with_the_selector_again() {
    let (replica, _, never) = share();
    let mut server = Server::answering(&replica.share, |_| StatusCode::SERVICE_UNAVAILABLE);
    server.arrive(&never, 1);
    for _ in 0..5 {
        assert_eq!(server.watches().await.left_out(), [never.as_str()]);
        server.asked.next().await.unwrap();
    }
    let mut server = Server::answering(&replica.share, |_| StatusCode::GONE);
    server.arrive(&never, 1);
    for _ in 0..5 {
        assert_eq!(
            server.watches().await.left_out(),
            [never.as_str()],
            "too old"
        );
    }
}

/// Without bookmarks the version at which it goes on would grow too old.
#[tokio::test(start_paused = true)]
async fn after_a_watch_that_showed_nothing_the_next_one_leaves_out_nothing() {
    let (replica, _, never) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&never, 1);
    for _ in 0..3 {
        let mut watch = server.watches().await;
        assert_eq!(watch.left_out(), [never.as_str()]);
        watch.sent.close_channel();
        assert_eq!(watch.next().await, None);
        assert_eq!(server.watches().await.left_out(), [""; 0]);
    }
}

/// Else the watch would begin anew for ever.
#[tokio::test(start_paused = true)]
async fn a_server_that_passes_over_the_selector_is_asked_without_it() {
    let (replica, _, never) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&never, 1);
    let mut watch = server.watches().await;
    assert_eq!(watch.left_out(), [never.as_str()]);
    server.arrive(&never, 2 * WORTH);
    assert!(watch.goes_on().await);
    assert_eq!(server.watches().await.left_out(), [""; 0]);
}

/// Everything is listed anew, of which others have a part.
#[tokio::test(start_paused = true)]
async fn what_is_listed_does_not_count_as_shown_by_a_watch_that_leaves_it_out() {
    let (replica, _, never) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&never, 1);
    server.watches().await;
    server.asks("/api/v1/configmaps?&limit=100").await;
    server.arrive(&never, 1);
    assert_eq!(server.watches().await.left_out(), [never]);
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_are_known_are_left_out_where_there_is_room_besides_what_was_dropped() {
    let (replica, _, never) = share();
    let mut server = Server::new(&replica.share);
    server.arrive(&never, 1);
    replica.share.meets_another().await;
    let all: Vec<Box<str>> = teams().map(Box::from).collect();
    replica.share.knows_of(&all);
    let accepted = replica.share.accepted();
    let others = teams().filter(|it| !accepted.takes(it));
    assert_eq!(
        server.watches().await.left_out(),
        others.collect::<Vec<_>>()
    );

    let long = |it: u32| format!("a-{it:04}-{}", "x".repeat(40)).into();
    replica
        .share
        .knows_of(&(0..1000).map(long).collect::<Vec<_>>());
    let watch = server.watches().await;
    assert!(watch.left_out().contains(&never));
    assert!(watch.left_out().len() > 50);
    assert!(watch.asked.query().unwrap().len() < 7 * 1024);
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_listed_anew_only_for_one_that_is_not_known() {
    let (replica, gained, never) = share();
    let server = Server::new(&replica.share);
    replica.share.knows_of(&[never.as_str().into()]);
    server.arrive(&never, 5);
    let asked = |share: Arc<OwnShare>| async move {
        let another = share.meets_another();
        tokio::time::timeout(Duration::from_secs(1), another)
            .await
            .is_ok()
    };
    assert!(!asked(replica.share.clone()).await);
    server.arrive(&gained, 5);
    assert!(asked(replica.share.clone()).await);
}
