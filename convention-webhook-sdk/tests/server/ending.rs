//! The end of a server.

use std::sync::Arc;
use std::time::Duration;

use convention_webhook_sdk::{
    Applied, Convention, ConventionError, Images, Limits, Server, Template,
};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::scene::{NEVER, PATIENCE, REQUEST, Scene, limits};

/// Says when it is asked, and answers when it is told to.
#[derive(Clone, Default)]
struct Waits {
    asked: Arc<Notify>,
    go: Arc<Notify>,
}

impl Convention for Waits {
    async fn apply(&self, _: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
        self.asked.notify_one();
        self.go.notified().await;
        Ok(Applied::from("waited"))
    }
}

#[tokio::test]
async fn a_request_under_way_is_answered_and_then_the_server_ends() {
    let waits = Waits::default();
    let builder = Server::builder().limits(limits());
    let mut scene = Scene::new(builder.convention("/", waits.clone())).await;
    let mut client = scene.client().await;
    let (answer, ()) = tokio::join!(client.post("/", REQUEST), async {
        waits.asked.notified().await;
        scene.stop();
        // Nobody new is let in.
        test_support::eventually("the port is closed", PATIENCE, async || {
            TcpStream::connect(scene.address).await.is_err()
        })
        .await;
        waits.go.notify_one();
    });
    assert_eq!(answer.unwrap().0, 200);
    scene.ended().await;
}

/// A client that keeps its connection would be sending on it when it is closed.
#[tokio::test]
async fn clients_are_asked_to_leave_before_they_are_made_to() {
    let limits = Limits {
        withdrawal: NEVER,
        ..limits()
    };
    let scene = Scene::with_limits(limits).await;
    let mut kept = scene.client().await;
    for _ in 0..2 {
        assert_eq!(kept.post("/", REQUEST).await.unwrap().0, 200);
    }
    scene.stop();
    test_support::eventually("an answer ends its connection", PATIENCE, async || {
        let mut client = scene.client().await;
        assert_eq!(client.post("/", REQUEST).await.unwrap().0, 200);
        client.post("/", REQUEST).await.is_err()
    })
    .await;
    assert_eq!(kept.post("/", REQUEST).await.unwrap().0, 200);
    assert!(kept.post("/", REQUEST).await.is_err());
}

#[tokio::test]
async fn the_end_does_not_wait_for_clients_without_a_request() {
    let mut scene = Scene::with_limits(limits()).await;
    let mut idle = scene.client().await;
    assert_eq!(idle.post("/", REQUEST).await.unwrap().0, 200);
    let silent = TcpStream::connect(scene.address).await.unwrap();
    scene.stop();
    scene.ended().await;
    drop((idle, silent));
}

#[tokio::test]
async fn the_end_waits_for_a_convention_that_hangs_no_longer_than_there_is_time() {
    let waits = Waits::default();
    let limits = Limits {
        drain: Duration::from_millis(20),
        ..limits()
    };
    let builder = Server::builder().limits(limits);
    let mut scene = Scene::new(builder.convention("/", waits.clone())).await;
    let mut client = scene.client().await;
    let (answer, ()) = tokio::join!(client.post("/", REQUEST), async {
        waits.asked.notified().await;
        scene.stop();
        scene.ended().await;
    });
    assert!(answer.is_err());
}
