//! Connections that are kept, and those that lead nowhere.

use std::time::Duration;

use convention_client::{CallErrorKind, Clients, DEFAULT_BUDGET, Settings};
use futures::future::join_all;

use crate::server::{
    Authority, Reply, Server, body, clients, failed_within, shown, silent, target,
};

#[tokio::test]
async fn one_connection_serves_call_after_call() {
    let authority = Authority::new();
    let server = Server::start(Some(authority.server(&["localhost"])), |_, _| Reply::good()).await;
    let clients = clients();
    for _ in 0..10 {
        // A new target each time, as each pass makes one.
        let target = server.https(&authority.pem());
        clients
            .call(&target, DEFAULT_BUDGET, &body())
            .await
            .unwrap();
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 10));
}

#[tokio::test]
async fn fifty_calls_at_a_time_reuse_their_connections() {
    let server = Server::plain(|_, _| Reply::good()).await;
    let (clients, target, body) = (clients(), server.http(), body());
    for _ in 0..10 {
        let calls = (0..50).map(|_| clients.call(&target, DEFAULT_BUDGET, &body));
        assert!(join_all(calls).await.iter().all(Result::is_ok));
    }
    assert_eq!(server.requests().len(), 500);
    // Without reuse there were 500. A call takes whichever comes first: a new connection, or one that
    // another call gives back.
    let connections = server.connections();
    assert!((1..250).contains(&connections), "{connections}");
}

#[tokio::test]
async fn no_more_calls_than_may_be_are_under_way_to_one_target() {
    let server = Server::plain(|_, _| Reply::good()).await;
    let settings = Settings {
        most_calls_to_one_target: 3,
        ..Settings::default()
    };
    let (clients, target, body) = (Clients::new(settings).unwrap(), server.http(), body());
    let calls = (0..50).map(|_| clients.call(&target, DEFAULT_BUDGET, &body));
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(server.requests().len(), 50);
    assert_eq!(server.at_once(), 3);
}

#[tokio::test]
async fn a_server_that_takes_connections_and_says_nothing_ends_with_the_budget() {
    let (port, _held) = silent().await;
    for (scheme, cause) in [
        ("http", "there was no answer"),
        ("https", "there was no connection"),
    ] {
        let target = target(
            &format!("{scheme}://127.0.0.1:{port}/"),
            Some(&Authority::new().pem()),
        );
        let (kind, text) = failed_within(&target, Duration::from_secs(2)).await;
        assert_eq!(kind, CallErrorKind::Connection);
        assert!(text.ends_with(&format!("{cause} within 2s")), "{text}");
    }
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_no_other() {
    let (port, _held) = silent().await;
    let (hanging, server) = (
        target(&format!("http://127.0.0.1:{port}/"), None),
        Server::plain(|_, _| Reply::good()).await,
    );
    let settings = Settings {
        most_calls_to_one_target: 2,
        ..Settings::default()
    };
    let (clients, body) = (Clients::new(settings).unwrap(), body());
    // As many as may be, and they do not end before what follows.
    let hang = join_all((0..2).map(|_| clients.call(&hanging, DEFAULT_BUDGET, &body)));
    let others = async {
        clients
            .call(&server.http(), DEFAULT_BUDGET, &body)
            .await
            .unwrap();
        let soon = Duration::from_secs(2);
        shown(&clients.call(&hanging, soon, &body).await.unwrap_err())
    };
    let others = tokio::select! {
        biased;
        _ = hang => None,
        others = others => Some(others),
    };
    let (kind, text) = others.expect("those that hang go on");
    assert_eq!(kind, CallErrorKind::Connection);
    assert!(
        text.ends_with("other calls to it did not end within 2s"),
        "{text}"
    );
}

#[tokio::test]
async fn a_call_that_is_given_up_holds_nothing() {
    let (port, _held) = silent().await;
    let target = target(&format!("http://127.0.0.1:{port}/"), None);
    let settings = Settings {
        most_calls_to_one_target: 1,
        ..Settings::default()
    };
    let clients = Clients::new(settings).unwrap();
    for _ in 0..3 {
        let body = body();
        let call = clients.call(&target, DEFAULT_BUDGET, &body);
        // Its budget is not over when it is dropped.
        assert!(
            tokio::time::timeout(Duration::from_millis(50), call)
                .await
                .is_err()
        );
    }
    let budget = Duration::from_secs(2);
    let error = clients.call(&target, budget, &body()).await.unwrap_err();
    let (_, text) = shown(&error);
    assert!(
        text.contains("there was no answer"),
        "it was not even begun: {text}"
    );
}

#[tokio::test]
async fn connections_to_targets_that_are_too_many_are_closed() {
    let settings = Settings {
        most_targets: 2,
        ..Settings::default()
    };
    let clients = Clients::new(settings).unwrap();
    let mut servers = Vec::new();
    for _ in 0..6 {
        servers.push(Server::plain(|_, _| Reply::good()).await);
    }
    for _ in 0..3 {
        for server in &servers {
            clients
                .call(&server.http(), DEFAULT_BUDGET, &body())
                .await
                .unwrap();
        }
    }
    // Some were made anew, as none could be kept for all.
    let made: usize = servers.iter().map(Server::connections).sum();
    assert!(made > 6, "{made}");
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed() {
    let server = Server::plain(|_, _| Reply::good()).await;
    let settings = Settings {
        idle: Duration::from_millis(1),
        ..Settings::default()
    };
    let clients = Clients::new(settings).unwrap();
    let again = || async {
        clients
            .call(&server.http(), DEFAULT_BUDGET, &body())
            .await
            .unwrap();
        (server.connections() > 1).then_some(())
    };
    test_support::eventually("a second connection", Duration::from_mins(1), again).await;
}
