//! Who is let in, and what is sent to whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conventions::credentials::{Keyring, SecretKind};
use futures::future::join_all;
use image_registry::{Cause, FaultKind, Pass, Settings};
use serde_json::json;
use tempfile::tempdir;

use crate::fake::{FakeRegistry, Seen, images, images_with, keyring, settings, status};

fn basic(name: &str) -> String {
    format!(
        "Basic {}",
        STANDARD.encode(format!("{name}:pass-of-{name}"))
    )
}

fn challenge(with: &str) -> Response {
    let response = Response::builder()
        .status(401)
        .header("www-authenticate", with);
    response
        .body(Body::from(r#"{"errors": [{"code": "UNAUTHORIZED"}]}"#))
        .unwrap()
}

/// Lets nobody but these in, by name and password.
fn only(names: &'static [&'static str]) -> impl Fn(&Seen) -> Option<Response> {
    move |seen| {
        let known = |authorization: &String| names.iter().any(|name| *authorization == basic(name));
        let let_in = seen.path == "/v2/" || seen.authorization.as_ref().is_some_and(known);
        (!let_in).then(|| challenge("Basic realm=\"registry\""))
    }
}

#[tokio::test]
async fn every_credential_is_tried_in_the_order_of_the_kubelet() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    registry.put_image("team/app", "1", &json!({}));
    registry.behave(only(&["second"]));
    let team = format!("{}/team", registry.host);
    let keyring = keyring(&[
        (&registry.host, "general"),
        (&team, "first"),
        (&team, "second"),
    ]);
    let images = images(&folder);
    let image = format!("{}/team/app:1", registry.host);
    images
        .resolve(&image, &keyring, &Pass::default())
        .await
        .unwrap();
    let mut sent: Vec<String> = registry
        .seen()
        .into_iter()
        .filter_map(|it| it.authorization)
        .collect();
    sent.dedup();
    assert_eq!(sent, [basic("first"), basic("second")]);

    registry.take_paths();
    images
        .resolve(&image, &keyring, &Pass::default())
        .await
        .unwrap();
    assert_eq!(
        registry.take_paths().len(),
        1,
        "who was let in before goes first"
    );
}

#[tokio::test]
async fn who_is_not_let_in_is_told_without_a_credential() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    registry.put_image("app", "1", &json!({}));
    registry.behave(|seen| {
        let said = seen.authorization.clone().unwrap_or_default();
        let body = json!({"errors": [{"code": said, "message": said}]}).to_string();
        let response = Response::builder()
            .status(401)
            .header("www-authenticate", "Basic");
        (seen.path != "/v2/").then(|| response.body(Body::from(body)).unwrap())
    });
    let keyring = keyring(&[(&registry.host, "a"), (&registry.host, "b")]);
    let images = images(&folder);
    let image = format!("{}/app:1", registry.host);
    let error = images
        .resolve(&image, &keyring, &Pass::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), FaultKind::User);
    let text = format!("{error} {error:?}");
    assert!(
        text.contains("with 2 credentials for it: 401, without credentials: 401"),
        "{text}"
    );
    assert!(
        !text.contains("pass-of") && !text.contains(&STANDARD.encode("a:pass-of-a")),
        "{text}"
    );
}

#[tokio::test]
async fn a_registry_that_asks_for_a_password_is_asked_by_as_many_as_may_at_once() {
    for (concurrency, number) in [(1, 1), (1, 3), (8, 8), (8, 40)] {
        let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
        registry.behave(only(&["me"]));
        let images = images_with(Settings {
            concurrency,
            requests_per_second: 1000,
            budget: Duration::from_secs(20),
            ..settings(&folder)
        });
        let me = keyring(&[(&registry.host, "me")]);
        let looks = (0..number).map(|number| {
            // Repositories of their own: nobody knows yet that a password is wanted.
            let name = format!("team/app-{number}");
            registry.put_image(&name, "1", &json!({}));
            let image = format!("{}/{name}:1", registry.host);
            let (images, me) = (&images, &me);
            async move { images.resolve(&image, me, &Pass::default()).await.map(drop) }
        });
        for ended in join_all(looks).await {
            assert_eq!(ended, Ok(()), "{concurrency} at once of {number}");
        }
    }
}

#[tokio::test]
async fn a_tenant_gets_nothing_of_an_image_that_only_another_may_read() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let digest = registry.put_image(
        "secret/app",
        "1",
        &json!({"config": {"Env": ["PASSWORD=x"]}}),
    );
    registry.behave(|seen| {
        if seen.path.starts_with("/v2/secret/") {
            only(&["owner"])(seen)
        } else {
            None
        }
    });
    let (owner, other) = (
        keyring(&[(&registry.host, "owner")]),
        keyring(&[(&registry.host, "other")]),
    );
    let images = images(&folder);
    let image = format!("{}/secret/app@{digest}", registry.host);
    let pass = Pass::default();
    images.resolve(&image, &owner, &pass).await.unwrap();
    for keyring in [&other, &Keyring::default()] {
        // Not even with the other's pass.
        let error = images.resolve(&image, keyring, &pass).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Denied { .. }), "{error}");
    }
    // Nor by a tag that was resolved before, or by a repository of one's own that claims to have
    // it.
    let tag = format!("{}/secret/app:1", registry.host);
    images.resolve(&tag, &owner, &pass).await.unwrap();
    images.resolve(&tag, &other, &pass).await.unwrap_err();
    let mine = format!("{}/mine/app@{digest}", registry.host);
    let error = images.resolve(&mine, &other, &pass).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Unknown { .. }), "{error}");
    let secret = json!({"config": {"Env": ["PASSWORD=x"]}}).to_string();
    let config = crate::fake::digest_of(secret.as_bytes());
    let manifest = json!({"schemaVersion": 2, "config": {"digest": config}, "layers": []});
    registry.put_manifest("mine/app", "1", "text/plain", &manifest);
    let mine = format!("{}/mine/app:1", registry.host);
    let error = images.resolve(&mine, &other, &pass).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Unknown { .. }), "{error}");
}

/// A registry whose tokens are given by another one, for these names.
async fn with_tokens(names: &'static [&'static str]) -> (FakeRegistry, FakeRegistry) {
    let (registry, tokens) = (FakeRegistry::start().await, FakeRegistry::start().await);
    let realm = format!(
        "Bearer realm=\"http://{}/token\",service=\"it\"",
        tokens.host
    );
    registry.behave(move |seen| {
        let let_in = seen.authorization.as_deref() == Some("Bearer good");
        (seen.path != "/v2/" && !let_in).then(|| challenge(&realm))
    });
    tokens.behave(move |seen| {
        let known = |authorization: &String| names.iter().any(|name| *authorization == basic(name));
        let by_password = seen.authorization.as_ref().is_some_and(known);
        let by_token = seen.method == "POST" && seen.body.contains("refresh_token=identity");
        let body = if by_password || by_token {
            r#"{"access_token": "good", "expires_in": 300}"#
        } else {
            r#"{"token": "anonymous"}"#
        };
        Some(Response::new(Body::from(body)))
    });
    (registry, tokens)
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_used_until_it_expires() {
    let (registry, tokens) = with_tokens(&["me"]).await;
    let folder = tempdir().unwrap();
    let images = images(&folder);
    registry.put_image("team/app", "1", &json!({}));
    let image = format!("{}/team/app:1", registry.host);
    let me = keyring(&[(&registry.host, "me")]);
    for _ in 0..3 {
        images.resolve(&image, &me, &Pass::default()).await.unwrap();
    }
    assert_eq!(
        tokens.take_paths(),
        ["GET /token?service=it&scope=repository%3Ateam%2Fapp%3Apull"]
    );
    let passwords = registry
        .seen()
        .into_iter()
        .filter_map(|seen| seen.authorization);
    assert_eq!(passwords.filter(|it| it.starts_with("Basic")).count(), 0);
    let error = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err();
    assert!(matches!(error.cause(), Cause::Denied { .. }), "{error}");
}

#[tokio::test]
async fn a_token_that_opens_nothing_any_more_is_replaced_once() {
    let (registry, tokens) = (FakeRegistry::start().await, FakeRegistry::start().await);
    let folder = tempdir().unwrap();
    registry.put_image("app", "1", &json!({}));
    let (given, good) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(1)));
    let (realm, opens) = (tokens.host.clone(), good.clone());
    registry.behave(move |seen| {
        let opens = format!("Bearer {}", opens.load(Ordering::SeqCst));
        match seen.authorization.as_deref() {
            Some(token) if token == opens => None,
            Some(_) => Some(status(403, "")),
            None if seen.path == "/v2/" => None,
            None => Some(challenge(&format!("Bearer realm=\"http://{realm}/token\""))),
        }
    });
    let count = given.clone();
    tokens.behave(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        let body = json!({"token": number.to_string(), "expires_in": 300}).to_string();
        Some(Response::new(Body::from(body)))
    });
    let images = images(&folder);
    let image = format!("{}/app:1", registry.host);
    let resolve = async || {
        let (nobody, pass) = (Keyring::default(), Pass::default());
        images.resolve(&image, &nobody, &pass).await.map(drop)
    };
    assert_eq!(resolve().await, Ok(()));
    good.store(2, Ordering::SeqCst);
    assert_eq!(resolve().await, Ok(()));
    assert_eq!(given.load(Ordering::SeqCst), 2);
    // Where no token opens anything, one more is asked for and no further one.
    good.store(100, Ordering::SeqCst);
    let error = resolve().await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Denied { .. }), "{error}");
    assert_eq!(given.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_place_for_tokens_that_knows_of_none_is_no_fault_of_the_user() {
    for code in [404, 410, 302] {
        let (registry, tokens) = with_tokens(&[]).await;
        let folder = tempdir().unwrap();
        tokens.behave(move |_| Some(status(code, "")));
        let image = format!("{}/app:1", registry.host);
        let error = images(&folder)
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), FaultKind::Infrastructure, "{error}");
        let told = format!("answers {code} when asked for a token for app");
        assert!(error.to_string().contains(&told), "{error}");
        assert_eq!(tokens.seen().len(), 1);
    }
}

/// A registry counts what each account asks for. Who uses up his own is not to stop all others.
#[tokio::test]
async fn an_account_that_has_used_up_its_share_stops_no_other() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    registry.put_image("app", "1", &json!({}));
    let known = only(&["greedy", "modest"]);
    registry.behave(move |seen| {
        let is_greedy = seen.authorization.as_deref() == Some(&basic("greedy"));
        let throttled = Response::builder()
            .status(429)
            .header("retry-after", "3600");
        known(seen).or_else(|| is_greedy.then(|| throttled.body(Body::empty()).unwrap()))
    });
    let images = images(&folder);
    let image = format!("{}/app:1", registry.host);
    let resolve = async |name: &str| {
        let keyring = keyring(&[(&registry.host, name)]);
        let resolved = images.resolve(&image, &keyring, &Pass::default()).await;
        resolved.map(drop).map_err(|error| error.cause().clone())
    };
    for _ in 0..2 {
        let throttled = resolve("greedy").await;
        assert!(
            matches!(throttled, Err(Cause::Throttled { status: 429, .. })),
            "{throttled:?}"
        );
        resolve("modest").await.unwrap();
    }
}

#[tokio::test]
async fn an_identity_token_is_exchanged_for_a_token() {
    let (registry, tokens) = with_tokens(&[]).await;
    let folder = tempdir().unwrap();
    registry.put_image("app", "1", &json!({}));
    let mut keyring = Keyring::default();
    let config =
        json!({"auths": {&registry.host: {"username": "<token>", "identitytoken": "identity"}}});
    assert!(
        keyring
            .add(SecretKind::DockerConfigJson, config.to_string().as_bytes())
            .is_empty()
    );
    let image = format!("{}/app:1", registry.host);
    images(&folder)
        .resolve(&image, &keyring, &Pass::default())
        .await
        .unwrap();
    let [seen] = &tokens.seen()[..] else {
        panic!("{:?}", tokens.seen());
    };
    assert!(seen.body.contains("grant_type=refresh_token"), "{seen:?}");
    assert!(
        seen.body.contains("scope=repository%3Aapp%3Apull"),
        "{seen:?}"
    );
    assert_eq!(seen.authorization, None);
}

#[tokio::test]
async fn no_password_is_sent_where_it_is_not_safe() {
    for realm in [
        "http://auth.example/token",
        "http://169.254.169.254/latest/meta-data",
        "ftp://auth.example/token",
        "https://user@auth.example/token",
        "no address",
        "file:///etc/passwd",
    ] {
        let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
        let with = format!("Bearer realm=\"{realm}\"");
        registry.behave(move |seen| (seen.path != "/v2/").then(|| challenge(&with)));
        let me = keyring(&[(&registry.host, "me")]);
        let image = format!("{}/app:1", registry.host);
        let error = images(&folder)
            .resolve(&image, &me, &Pass::default())
            .await
            .unwrap_err();
        assert!(
            matches!(error.cause(), Cause::Lie { .. }),
            "{realm}: {error}"
        );
        assert_eq!(registry.seen().len(), 1, "{realm}");
    }
}

#[tokio::test]
async fn who_a_registry_leads_to_is_not_told_the_password() {
    let (registry, blobs) = (FakeRegistry::start().await, FakeRegistry::start().await);
    let folder = tempdir().unwrap();
    registry.put_image("app", "1", &json!({"os": "linux"}));
    blobs.put_image("app", "1", &json!({"os": "linux"}));
    let (to, let_in) = (blobs.host.clone(), only(&["me"]));
    registry.behave(move |seen| {
        if let Some(refusal) = let_in(seen) {
            return Some(refusal);
        }
        let location = format!("http://{to}{}?signature=s3cr3t", seen.path);
        let response = Response::builder().status(307).header("location", location);
        seen.path
            .contains("/blobs/")
            .then(|| response.body(Body::empty()).unwrap())
    });
    let me = keyring(&[(&registry.host, "me")]);
    let image = format!("{}/app:1", registry.host);
    let images = images(&folder);
    images.resolve(&image, &me, &Pass::default()).await.unwrap();
    let [seen] = &blobs.seen()[..] else {
        panic!("{:?}", blobs.seen());
    };
    assert_eq!(seen.authorization, None);

    // What goes wrong there is told without the signature.
    let folder = tempdir().unwrap();
    let images = crate::fake::images(&folder);
    blobs.behave(|_| Some(status(500, "")));
    let error = images
        .resolve(&image, &me, &Pass::default())
        .await
        .unwrap_err();
    assert!(!error.to_string().contains("s3cr3t"), "{error}");
}

#[tokio::test]
async fn who_a_registry_leads_to_is_not_told_the_password_when_he_asks_for_it() {
    let (registry, other) = (FakeRegistry::start().await, FakeRegistry::start().await);
    let folder = tempdir().unwrap();
    registry.put_image("app", "1", &json!({}));
    let (to, let_in) = (other.host.clone(), only(&["me"]));
    registry.behave(move |seen| {
        let location = format!("http://{to}{}", seen.path);
        let led = Response::builder().status(307).header("location", location);
        let leads = seen.path.contains("/blobs/");
        let_in(seen).or_else(|| leads.then(|| led.body(Body::empty()).unwrap()))
    });
    let me = keyring(&[(&registry.host, "me")]);
    let image = format!("{}/app:1", registry.host);
    let realm = format!("Bearer realm=\"http://{}/token\"", other.host);
    for asks in [realm.as_str(), "Basic"] {
        let with = asks.to_owned();
        other.behave(move |seen| {
            let token = seen.path.starts_with("/token");
            let body = r#"{"token": "t", "expires_in": 300}"#;
            Some(if token {
                status(200, body)
            } else {
                challenge(&with)
            })
        });
        let error = images(&folder)
            .resolve(&image, &me, &Pass::default())
            .await
            .unwrap_err();
        assert!(matches!(error.cause(), Cause::Denied { .. }), "{error}");
        let seen = other.seen();
        assert!(
            seen.iter().all(|seen| seen.authorization.is_none()),
            "{seen:?}"
        );
        assert!(!seen.is_empty());
    }
}

#[tokio::test]
async fn a_registry_cannot_lead_anywhere() {
    let count = Arc::new(AtomicUsize::new(0));
    for location in [
        "http://registry.example/v2/",
        "ftp://registry.example/",
        "file:///etc/passwd",
        "http://user:pass@127.0.0.1/",
        "/v2/app/manifests/again",
        "http://[",
    ] {
        let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
        let asked = count.clone();
        registry.behave(move |seen| {
            asked.fetch_add(1, Ordering::Relaxed);
            let response = Response::builder().status(302).header("location", location);
            (seen.path != "/v2/").then(|| response.body(Body::empty()).unwrap())
        });
        let image = format!("{}/app:1", registry.host);
        let result = images(&folder)
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await;
        let error = result.unwrap_err();
        assert!(
            matches!(error.cause(), Cause::Lie { .. }),
            "{location}: {error}"
        );
        assert!(registry.seen().len() <= 6, "{location}");
    }
}
