//! A port for a process that is about to start.
#![expect(
    clippy::unwrap_used,
    reason = "a test without a port for its process has failed"
)]

use std::net::{Ipv6Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port on all interfaces that nobody else gets as long as this lives. The socket that holds it does not listen, so that
/// a process that is told the number may.
#[derive(Debug)]
pub struct Port {
    held: TcpSocket,
}

impl Port {
    /// One that is free.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn reserve() -> Self {
        let held = TcpSocket::new_v6().unwrap();
        held.set_reuseaddr(true).unwrap();
        held.bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
            .unwrap();
        Self { held }
    }

    /// Its number.
    ///
    /// # Panics
    ///
    /// When the socket is not bound, which it is.
    pub fn number(&self) -> u16 {
        self.held.local_addr().unwrap().port()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::{Ipv6Addr, TcpListener};

    use super::Port;

    #[tokio::test]
    async fn whoever_is_told_the_number_may_listen_and_nobody_else_gets_it() {
        let reserved: Vec<Port> = (0..20).map(|_| Port::reserve()).collect();
        let numbers: BTreeSet<u16> = reserved.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), reserved.len());
        let told = (Ipv6Addr::UNSPECIFIED, reserved[0].number());
        let _listening = tokio::net::TcpListener::bind(told).await.unwrap();
        // One after the other: all at once would leave no file descriptors to other tests.
        for _ in 0..5000 {
            let other = TcpListener::bind("[::]:0").unwrap();
            let number = other.local_addr().unwrap().port();
            assert!(!numbers.contains(&number), "{number} was given away");
        }
    }
}
