//! What clients may take.

use std::time::Duration;

/// What clients may take of a server. The controller waits 30 s for an answer, and needs a handful
/// of connections.
///
/// ```
/// use convention_webhook_sdk::Limits;
///
/// let limits = Limits { body_bytes: 8 << 20, ..Limits::default() };
/// assert_eq!(limits.connections, 256);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one request; more are answered with 413. 64 MiB, of which bills of materials are
    /// nearly all.
    pub body_bytes: usize,
    /// Bytes that have come of all requests that are being read or answered, and those that values
    /// take in memory where a request has thousands; one that finds no room in time, or waits for what
    /// another one waits for, is answered with 503. 128 MiB.
    pub all_bodies_bytes: usize,
    /// Connections at once; who has been idle for longest goes when another wants to come. 256. It is
    /// also how many requests there are at once, each of which may have 64 KiB beside
    /// `all_bodies_bytes`.
    pub connections: usize,
    /// From the connection to the head of its first request. 10 s.
    pub opening: Duration,
    /// Between two requests of a connection, the head of the next included. 90 s.
    pub idle: Duration,
    /// For the body of a request, and for a client to take the answer. 15 s.
    pub body: Duration,
    /// For the convention; then the answer is 504. 25 s.
    pub convention: Duration,
    /// How long it serves on when it is to stop: a pod that ends is asked until all nodes know of
    /// it. Each answer in this time ends its connection, so that clients go elsewhere. 5 s.
    pub withdrawal: Duration,
    /// For what is under way then. 20 s.
    pub drain: Duration,
    /// How often it is looked whether the key pair has changed. 10 s.
    pub reload: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 20,
            all_bodies_bytes: 128 << 20,
            connections: 256,
            opening: Duration::from_secs(10),
            idle: Duration::from_secs(90),
            body: Duration::from_secs(15),
            convention: Duration::from_secs(25),
            withdrawal: Duration::from_secs(5),
            drain: Duration::from_secs(20),
            reload: Duration::from_secs(10),
        }
    }
}
