use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower_test::mock;

use super::super::certificate::ServingCertificate;
use super::super::pki::Authority;
use super::super::self_managed::{Configuration, SelfManaged};
use super::tls::leaf;
use crate::metrics::Metrics;
use crate::shutdown::Tasks;

const START: i64 = 1_800_000_000;
/// An hour of the test is some 80 days of the calendar: a certificate is due at the first or second look.
const HASTE: i32 = 2_000;

fn answer(status: StatusCode, body: &Value) -> Response<Body> {
    Response::builder()
        .status(status)
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap()
}

/// What keeps a certificate in order, against a server that the test plays.
struct Scene {
    server: mock::Handle<Request<Body>, Response<Body>>,
    certificate: Arc<ServingCertificate>,
    tasks: Tasks,
}

fn names() -> Vec<String> {
    vec!["localhost".to_owned()]
}

fn begin(
    clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    configurations: Vec<Configuration>,
) -> Scene {
    let (service, server) = mock::pair::<Request<Body>, Response<Body>>();
    let (certificate, tasks) = (Arc::new(ServingCertificate::new()), Tasks::new());
    let managed = SelfManaged {
        namespace: "ns".into(),
        secret: "webhook".into(),
        names: names(),
        configurations,
        clock: Arc::new(clock),
    };
    let client = kube::Client::new(service, "ns");
    let metrics = Arc::new(Metrics::new());
    let _is_trusted = managed.start(&client, certificate.clone(), metrics, &tasks);
    Scene {
        server,
        certificate,
        tasks,
    }
}

/// The time of day while a paused clock goes on, at so many times its pace.
fn clock(haste: i32) -> impl Fn() -> Timestamp + Clone + Send + Sync {
    let started = Instant::now();
    move || {
        let passed = SignedDuration::try_from(started.elapsed()).unwrap();
        Timestamp::from_second(START).unwrap() + passed * haste
    }
}

fn secret(data: &Value, version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "data": data,
        "metadata": {"name": "webhook", "namespace": "ns", "uid": "u", "resourceVersion": version}})
}

fn list(secret: &Value) -> Value {
    json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [secret]})
}

async fn body(request: Request<Body>) -> Value {
    let written = request.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&written).unwrap()
}

/// The incident: the server answered every watch with an error, each of which put the next look off by an hour, and the
/// certificate expired.
#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_failing_does_not_put_the_renewal_off() {
    let clock = clock(HASTE);
    let authority = Authority::maintained(None, &names(), clock()).unwrap();
    let secret = secret(&json!(authority.to_data()), "1");
    let mut scene = begin(clock, Vec::new());
    let serve = async {
        let mut failures = 0;
        loop {
            let (request, reply) = scene.server.next_request().await.unwrap();
            let query = request.uri().query().unwrap_or_default().to_owned();
            if request.method() == Method::PUT {
                let written = body(request).await;
                reply.send_response(answer(StatusCode::OK, &written));
                return (failures, written);
            }
            if query.contains("watch=") {
                failures += 1;
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                    "reason": "InternalError", "message": "etcdserver: leader changed"});
                reply.send_response(answer(StatusCode::INTERNAL_SERVER_ERROR, &status));
            } else {
                reply.send_response(answer(StatusCode::OK, &list(&secret)));
            }
        }
    };
    let (failures, written) = tokio::time::timeout(Duration::from_hours(4), serve)
        .await
        .expect("the certificate is renewed");
    assert!(failures > 60, "{failures}");
    assert!(scene.certificate.is_loaded());
    assert_ne!(written["data"]["tls.crt"], secret["data"]["tls.crt"]);
    scene.tasks.token().cancel();
    scene.tasks.join(Duration::from_mins(1)).await.unwrap();
}

/// What a process does whose Secret somebody deletes.
struct Loss {
    before: Authority,
    /// What was written into the Secret, and when.
    writes: Vec<(Timestamp, Value)>,
    /// The certificate of each second.
    shown: Vec<(Timestamp, Option<Vec<u8>>)>,
    /// When the configuration was written to last.
    told: Option<Timestamp>,
}

/// A configuration of webhooks with this bundle.
fn configuration(bundle: &Value) -> Value {
    let webhook = json!({"name": "w.carto.run", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://localhost/", "caBundle": bundle}});
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "carto", "resourceVersion": "1"}, "webhooks": [webhook]})
}

impl Loss {
    /// Once the Secret is made anew, writes to the configuration are refused for a while.
    async fn with(refusal: Option<Duration>) -> Self {
        let clock = clock(1);
        let before = Authority::maintained(None, &names(), clock()).unwrap();
        let mut stored = secret(&json!(before.to_data()), "1");
        let configurations = refusal.map(|_| Configuration::Validating("carto".to_owned()));
        let mut scene = begin(clock.clone(), configurations.into_iter().collect());
        let (mut writes, mut watches, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        let certificate = scene.certificate.clone();
        let (mut is_deleted, mut is_told, mut told) = (false, false, None);
        let (mut bundle, mut held) = (Value::Null, Vec::new());
        let look = async {
            loop {
                shown.push((clock(), certificate.leaf()));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let serve = async {
            while writes.len() < 2 {
                let (request, reply) = scene.server.next_request().await.unwrap();
                let query = request.uri().query().unwrap_or_default().to_owned();
                if request.uri().path().contains("webhookconfigurations") {
                    if request.method() == Method::PATCH {
                        let made = writes.first().map(|(made, _)| *made);
                        let passed = made.map(|made: Timestamp| clock().duration_since(made));
                        let passed = passed.and_then(|it| Duration::try_from(it).ok());
                        if passed.is_some_and(|passed| Some(passed) < refusal) {
                            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                "code": 403, "reason": "Forbidden", "message": "no"});
                            reply.send_response(answer(StatusCode::FORBIDDEN, &status));
                            continue;
                        }
                        told = Some(clock());
                        bundle = body(request).await[1]["value"].take();
                        reply.send_response(answer(StatusCode::OK, &configuration(&bundle)));
                    } else if query.contains("watch=") {
                        held.push(reply);
                    } else {
                        let mut items = list(&configuration(&bundle));
                        items["kind"] = json!("ValidatingWebhookConfigurationList");
                        items["apiVersion"] = json!("admissionregistration.k8s.io/v1");
                        reply.send_response(answer(StatusCode::OK, &items));
                    }
                } else if query.contains("watch=") && !is_deleted {
                    is_deleted = true;
                    let deleted = json!({"type": "DELETED", "object": stored});
                    reply.send_response(answer(StatusCode::OK, &deleted));
                } else if query.contains("watch=") && !writes.is_empty() && !is_told {
                    is_told = true;
                    let made = json!({"type": "ADDED", "object": stored});
                    reply.send_response(answer(StatusCode::OK, &made));
                } else if query.contains("watch=") {
                    // It stays open.
                    watches.push(reply);
                } else if request.method() == Method::GET {
                    reply.send_response(answer(StatusCode::OK, &list(&stored)));
                } else {
                    let data = body(request).await["data"].take();
                    stored = secret(&data, "2");
                    reply.send_response(answer(StatusCode::OK, &stored));
                    writes.push((clock(), data));
                    if let Some(watch) = watches.pop() {
                        is_told = true;
                        let made = json!({"type": "ADDED", "object": stored});
                        watch.send_response(answer(StatusCode::OK, &made));
                    }
                }
            }
        };
        let serve = tokio::time::timeout(Duration::from_hours(1), serve);
        tokio::select! {
            done = serve => done.expect("it is made anew, and the old one is dropped"),
            () = look => {}
        }
        scene.tasks.token().cancel();
        scene.tasks.join(Duration::from_mins(1)).await.unwrap();
        Self {
            before,
            writes,
            shown,
            told,
        }
    }

    /// For how many seconds after the Secret was made anew the certificate from before was shown.
    fn shown_before_for(&self) -> i64 {
        let (made, _) = self.writes[0];
        let old = Some(leaf(&self.before));
        let mut seconds = self.shown.iter().skip(1);
        let first = seconds.find(|(_, shown)| *shown != old);
        let (switched, _) = first.expect("the new one is shown");
        assert!(
            { seconds }.all(|(_, shown)| *shown != old),
            "it has come back"
        );
        switched.duration_since(made).as_secs()
    }
}

/// The incident: two of 124 reviews were refused with "x509: certificate signed by unknown authority" after somebody deleted
/// the Secret, because a replica showed what the API server was about to hear of.
#[tokio::test(start_paused = true)]
async fn who_loses_the_secret_shows_the_certificate_from_before_until_the_new_authority_is_known() {
    let loss = Loss::with(None).await;
    let [(made, new), (dropped, last)] = &loss.writes[..] else {
        panic!("{} writes", loss.writes.len());
    };
    let ca = &loss.before.to_data()["ca.crt"];
    assert!(new["ca-lost.crt"] == json!(ca) && new["ca.crt"] != json!(ca));
    assert_eq!(last["ca.crt"], new["ca.crt"]);
    assert_eq!(last["ca-lost.crt"], Value::Null);
    let minutes = dropped.duration_since(*made).as_mins();
    assert!((10..12).contains(&minutes), "{minutes}");
    let seconds = loss.shown_before_for();
    assert!((30..=31).contains(&seconds), "{seconds}");
}

/// As long as the API server trusts the old one alone.
#[tokio::test(start_paused = true)]
async fn a_new_authority_that_could_not_be_told_is_not_shown_before() {
    let loss = Loss::with(Some(Duration::from_secs(100))).await;
    let told = loss
        .told
        .unwrap()
        .duration_since(loss.writes[0].0)
        .as_secs();
    assert!((100..600).contains(&told), "{told}");
    let seconds = loss.shown_before_for();
    assert!(
        (told..=told + 6).contains(&seconds),
        "{seconds}, told after {told}"
    );
}
