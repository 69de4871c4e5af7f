//! Free ports.

use std::net::TcpListener;

use anyhow::Context;

/// Ports that were free a moment ago. All are held until the last is known, so they differ from each other. Somebody else
/// may still take one before it is used: whoever starts a server on it tries again with new ones.
pub(crate) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0").context("a free port on loopback")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// A port that was free a moment ago, for a server on all addresses.
///
/// # Errors
///
/// When none is free.
pub fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("[::]:0").context("a free port")?;
    Ok(listener.local_addr()?.port())
}

/// Whether a server's log says that its port was taken.
pub(crate) fn port_was_taken(log: &str) -> bool {
    log.contains("address already in use")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ports_differ_and_can_be_bound() {
        // Other tests take ports at the same time: once in twenty tries nobody was faster.
        let all_bound = (0..20).any(|_| {
            let ports: [u16; 8] = free_ports().unwrap();
            assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 8);
            ports
                .iter()
                .all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        });
        assert!(all_bound);
    }
}
