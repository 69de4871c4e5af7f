//! The port, and TLS.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::TcpListener;

use super::error::ServeError;
use super::key_pair::KeyPair;

/// Takes the address, or the port of all interfaces.
pub(super) async fn listen(
    address: Option<SocketAddr>,
    port: u16,
) -> Result<TcpListener, ServeError> {
    let bound = match address {
        Some(address) => TcpListener::bind(address).await,
        None => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
        },
    };
    bound.map_err(|source| ServeError::Listen {
        address: address.map_or_else(|| format!("port {port}"), |address| address.to_string()),
        source,
    })
}

/// TLS 1.3 with whatever the key pair is at the time.
pub(super) fn tls(key_pair: &Arc<KeyPair>) -> Result<ServerConfig, ServeError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(ServeError::Tls)?;
    let config = config.with_no_client_auth();
    let mut config = config.with_cert_resolver(key_pair.clone());
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
