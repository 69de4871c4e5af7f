use std::sync::atomic::AtomicI64;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower_test::mock::{self, Handle};

use super::*;

type Server = Handle<Request<Body>, Response<Body>>;

const START: i64 = 1_800_000_000;

/// A cache, the server that it asks, and a clock that the test sets.
struct Scene {
    cache: Arc<TokenCache>,
    server: Server,
    seconds: Arc<AtomicI64>,
    metrics: Arc<Metrics>,
}

impl Scene {
    fn new() -> Self {
        let (service, server) = mock::pair::<Request<Body>, Response<Body>>();
        let seconds = Arc::new(AtomicI64::new(START));
        let time = seconds.clone();
        let sources = TokenSources {
            clock: Arc::new(move || Timestamp::from_second(time.load(Ordering::SeqCst)).unwrap()),
            jitter: Arc::new(|| 0.5),
        };
        let metrics = Arc::new(Metrics::new());
        let cache = Arc::new(TokenCache::new(
            kube::Client::new(service, "default"),
            sources,
            metrics.clone(),
        ));
        Self {
            cache,
            server,
            seconds,
            metrics,
        }
    }

    fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    fn now(&self) -> i64 {
        self.seconds.load(Ordering::SeqCst)
    }

    /// Asks for a token and answers the one request that this must cause.
    async fn ask(
        &mut self,
        account: &Account,
        answer: Response<Body>,
    ) -> Result<Token, TokenError> {
        let (cache, server) = (self.cache.clone(), &mut self.server);
        let (token, ()) = tokio::join!(cache.token(account), async {
            let (_, send) = server.next_request().await.unwrap();
            send.send_response(answer);
        });
        token
    }

    /// Asks for a token, which must cause a request; this one is granted, for twenty minutes, and is what must come.
    async fn fetch(&mut self, account: &Account, granted_token: &str) -> Token {
        let answer = granted(granted_token, self.now(), 1200);
        let token = self.ask(account, answer).await.unwrap();
        assert_eq!(token.expose(), granted_token);
        token
    }

    /// Fifty ask for the token of `a`, which must cause one request.
    async fn fifty_ask(&mut self, answer: Response<Body>) -> Vec<Result<Token, TokenError>> {
        let mut waiting = JoinSet::new();
        for _ in 0..50 {
            let cache = self.cache.clone();
            waiting.spawn(async move { cache.token(&account("a")).await });
        }
        let (_, send) = self.server.next_request().await.unwrap();
        tokio::task::yield_now().await;
        send.send_response(answer);
        tokio::select! {
            biased;
            tokens = waiting.join_all() => tokens,
            _ = self.server.next_request() => panic!("a second request"),
        }
    }

    /// Asks for a token, which must cause no request.
    async fn held(&mut self, account: &Account) -> Token {
        tokio::select! {
            biased;
            token = self.cache.token(account) => token.unwrap(),
            _ = self.server.next_request() => panic!("unexpected request"),
        }
    }
}

fn account(name: &str) -> Account {
    Account {
        namespace: "dev".into(),
        name: name.into(),
        uid: "u1".into(),
    }
}

fn granted(token: &str, now: i64, seconds: i64) -> Response<Body> {
    let expiry = Timestamp::from_second(now + seconds).unwrap().to_string();
    let reply = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
        "spec": {"audiences": ["api"], "expirationSeconds": seconds}, "status": {"token": token, "expirationTimestamp": expiry}});
    respond(StatusCode::CREATED, &reply)
}

fn refused(code: StatusCode, message: &str) -> Response<Body> {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(), "message": message, "reason": "x"});
    respond(code, &status)
}

fn respond(code: StatusCode, body: &Value) -> Response<Body> {
    Response::builder()
        .status(code)
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap()
}

#[tokio::test]
async fn the_request_is_what_the_spec_says() {
    let mut scene = Scene::new();
    let cache = scene.cache.clone();
    let now = scene.now();
    let account = account("builder");
    let (token, ()) = tokio::join!(cache.token(&account), async {
        let (request, send) = scene.server.next_request().await.unwrap();
        assert_eq!(request.method(), "POST");
        assert_eq!(
            request.uri().path(),
            "/api/v1/namespaces/dev/serviceaccounts/builder/token"
        );
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["spec"]["expirationSeconds"], 1200);
        assert_eq!(body["spec"]["boundObjectRef"], Value::Null);
        send.send_response(granted("t1", now, 1200));
    });
    assert_eq!(token.unwrap().expose(), "t1");
}

#[tokio::test]
async fn a_token_is_kept_for_half_of_its_life_less_the_jitter() {
    let mut scene = Scene::new();
    scene.fetch(&account("a"), "t1").await;
    scene.pass(594);
    assert_eq!(scene.held(&account("a")).await.expose(), "t1");
    scene.pass(1);
    scene.fetch(&account("a"), "t2").await;
    assert_eq!(scene.held(&account("a")).await.expose(), "t2");
}

#[tokio::test]
async fn a_shorter_life_that_the_server_grants_is_respected() {
    let mut scene = Scene::new();
    let answer = granted("t1", scene.now(), 600);
    scene.ask(&account("a"), answer).await.unwrap();
    scene.pass(294);
    scene.held(&account("a")).await;
    scene.pass(1);
    let answer = granted("t2", scene.now(), 600);
    assert_eq!(
        scene.ask(&account("a"), answer).await.unwrap().expose(),
        "t2"
    );
}

#[tokio::test]
async fn a_failed_refresh_keeps_the_old_token_and_does_not_ask_again_at_once() {
    let mut scene = Scene::new();
    scene.fetch(&account("a"), "t1").await;
    scene.pass(600);
    let kept = scene
        .ask(
            &account("a"),
            refused(StatusCode::INTERNAL_SERVER_ERROR, "etcd is away"),
        )
        .await;
    assert_eq!(kept.unwrap().expose(), "t1");
    scene.pass(29);
    assert_eq!(scene.held(&account("a")).await.expose(), "t1");
    scene.pass(1);
    scene.fetch(&account("a"), "t2").await;
    let text = String::from_utf8(scene.metrics.render()).unwrap();
    assert!(
        text.contains("carto_token_requests_total{outcome=\"kept_old\"} 1"),
        "{text}"
    );
}

#[tokio::test]
async fn an_expired_token_that_cannot_be_refreshed_is_named() {
    let mut scene = Scene::new();
    scene.fetch(&account("a"), "t1").await;
    scene.pass(1200);
    let error = scene
        .ask(
            &account("a"),
            refused(StatusCode::INTERNAL_SERVER_ERROR, "etcd is away"),
        )
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"token "a"/"dev"/"u1" expired and refresh failed: etcd is away"#
    );
    assert_eq!(error.kind(), RefusalKind::Infrastructure);
}

#[tokio::test]
async fn a_refusal_is_told_with_its_text_and_its_kind() {
    for (code, kind) in [
        (StatusCode::NOT_FOUND, RefusalKind::NotFound),
        (StatusCode::FORBIDDEN, RefusalKind::Forbidden),
        (StatusCode::TOO_MANY_REQUESTS, RefusalKind::Infrastructure),
    ] {
        let mut scene = Scene::new();
        let error = scene
            .ask(
                &account("a"),
                refused(code, r#"serviceaccounts "a" is not to be had"#),
            )
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"fetch token: serviceaccounts "a" is not to be had"#
        );
        assert_eq!(error.kind(), kind);
    }
}

#[tokio::test]
async fn an_answer_without_a_token_is_an_error() {
    let mut scene = Scene::new();
    let empty = respond(
        StatusCode::CREATED,
        &json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {"audiences": []}}),
    );
    let error = scene.ask(&account("a"), empty).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "fetch token: the API server answered without a token"
    );
}

#[tokio::test]
async fn however_many_wait_one_request_is_sent() {
    let mut scene = Scene::new();
    let answer = granted("t1", scene.now(), 1200);
    let tokens = scene.fifty_ask(answer).await;
    assert!(
        tokens
            .into_iter()
            .all(|token| token.unwrap().expose() == "t1")
    );
}

#[tokio::test]
async fn a_refusal_serves_all_who_waited_and_the_next_one_asks_again() {
    let mut scene = Scene::new();
    let answer = refused(StatusCode::NOT_FOUND, "gone");
    let tokens = scene.fifty_ask(answer).await;
    assert!(
        tokens
            .into_iter()
            .all(|token| token.unwrap_err().to_string() == "fetch token: gone")
    );
    scene.fetch(&account("a"), "t1").await;
}

#[tokio::test]
async fn a_cancelled_request_does_not_hold_up_the_next() {
    let mut scene = Scene::new();
    let cache = scene.cache.clone();
    let cancelled = async {
        let _ = scene.server.next_request().await;
    };
    let asked = account("a");
    tokio::select! {
        _ = cache.token(&asked) => panic!("nobody answered"),
        () = cancelled => {}
    }
    scene.fetch(&account("a"), "t1").await;
}

#[tokio::test]
async fn while_one_refreshes_the_others_use_the_old_token() {
    let mut scene = Scene::new();
    scene.fetch(&account("a"), "t1").await;
    scene.pass(600);
    let cache = scene.cache.clone();
    let mut refreshing = JoinSet::new();
    refreshing.spawn(async move { cache.token(&account("a")).await });
    let (_, send) = scene.server.next_request().await.unwrap();
    assert_eq!(
        scene.cache.token(&account("a")).await.unwrap().expose(),
        "t1"
    );
    send.send_response(granted("t2", scene.now(), 1200));
    assert_eq!(
        refreshing
            .join_next()
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .expose(),
        "t2"
    );
}

#[tokio::test]
async fn an_invalidated_token_is_not_used_again() {
    let mut scene = Scene::new();
    scene.fetch(&account("a"), "t1").await;
    scene.cache.invalidate(&account("a"));
    scene.fetch(&account("a"), "t2").await;
}

#[tokio::test]
async fn however_many_are_refused_with_a_token_one_more_is_fetched() {
    let mut scene = Scene::new();
    let old = scene.fetch(&account("a"), "t1").await;
    scene.cache.refused(&account("a"), &old);
    let new = scene.fetch(&account("a"), "t2").await;
    for _ in 0..15 {
        // Whoever sent a request with the old one hears of it only now.
        scene.cache.refused(&account("a"), &old);
        assert!(scene.held(&account("a")).await == new);
    }
    scene.cache.refused(&account("b"), &new);
    assert!(scene.held(&account("a")).await == new);
}

#[tokio::test]
async fn a_token_that_is_refused_while_it_is_refreshed_does_not_come_back() {
    let mut scene = Scene::new();
    let old = scene.fetch(&account("a"), "t1").await;
    scene.pass(600);
    let cache = scene.cache.clone();
    let mut refreshing = JoinSet::new();
    refreshing.spawn(async move { cache.token(&account("a")).await });
    let (_, send) = scene.server.next_request().await.unwrap();
    scene.cache.refused(&account("a"), &old);
    send.send_response(refused(StatusCode::INTERNAL_SERVER_ERROR, "etcd is away"));
    refreshing.join_next().await.unwrap().unwrap().unwrap();
    let new = scene.fetch(&account("a"), "t2").await;
    assert_eq!(new.expose(), "t2");
}

#[tokio::test]
async fn an_account_made_again_under_its_name_gets_its_own_token() {
    let mut scene = Scene::new();
    scene.fetch(&account("a"), "t1").await;
    let again = Account {
        uid: "u2".into(),
        ..account("a")
    };
    scene.fetch(&again, "t2").await;
}

#[tokio::test]
async fn entries_of_expired_tokens_are_swept() {
    let mut scene = Scene::new();
    for number in 0..20 {
        scene.fetch(&account(&format!("a{number}")), "t").await;
    }
    assert_eq!(scene.cache.len(), 20);
    scene.pass(24 * 3600);
    scene.fetch(&account("b"), "t").await;
    assert_eq!(scene.cache.len(), 1);
}

/// Time is paused: it passes only when nobody has anything left to do.
#[tokio::test(start_paused = true)]
async fn requests_are_bounded_over_all_accounts() {
    let mut scene = Scene::new();
    let mut asking = JoinSet::new();
    for number in 0..CONCURRENCY + 3 {
        let cache = scene.cache.clone();
        asking.spawn(async move { cache.token(&account(&format!("a{number}"))).await });
    }
    let mut open = Vec::new();
    while let Ok(request) =
        tokio::time::timeout(Duration::from_millis(50), scene.server.next_request()).await
    {
        open.push(request.unwrap().1);
    }
    assert_eq!(open.len(), CONCURRENCY);
    for send in open {
        send.send_response(granted("t", scene.now(), 1200));
    }
    for _ in 0..3 {
        let (_, send) = scene.server.next_request().await.unwrap();
        send.send_response(granted("t", scene.now(), 1200));
    }
    assert!(
        asking
            .join_all()
            .await
            .into_iter()
            .all(|token| token.is_ok())
    );
}

#[test]
fn a_token_never_shows_its_text() {
    let token = Token("super-secret".into());
    assert_eq!(
        format!("{token:?} {:?}", Some(&token)),
        "Token(<redacted>) Some(Token(<redacted>))"
    );
}
