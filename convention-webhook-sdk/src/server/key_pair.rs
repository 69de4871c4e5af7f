//! The key pair that clients are shown, and its files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tracing::{info, warn};

use super::error::{KeyPairError, ServeError};
use super::metrics::Metrics;

/// The bytes of both files.
type Files = (Vec<u8>, Vec<u8>);

/// What handshakes are answered with. Connections that exist go on with what they began with.
pub(super) struct KeyPair {
    directory: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
    /// What was read last, so that nothing is told twice.
    first: Files,
    metrics: Arc<Metrics>,
}

impl KeyPair {
    /// Reads the key pair of a directory.
    pub(super) async fn load(
        directory: &Path,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, ServeError> {
        let wrong = |source| ServeError::KeyPair {
            directory: directory.to_owned(),
            source,
        };
        let files = read(directory).await.map_err(wrong)?;
        let key = parse(&files).map_err(wrong)?;
        Ok(Arc::new(Self {
            directory: directory.to_owned(),
            current: RwLock::new(key),
            first: files,
            metrics,
        }))
    }

    /// Takes what the files become, for ever. Files that are missing, broken or do not belong
    /// together change nothing.
    ///
    /// A mounted Secret is exchanged by a symlink, and the kubelet takes about a minute for it: to
    /// look at two small files now and then is all that it takes to follow both that and files that
    /// are written in place.
    pub(super) async fn follow(&self, interval: Duration) {
        let mut last = Ok(self.first.clone());
        loop {
            tokio::time::sleep(interval).await;
            let found = read(&self.directory).await.map_err(|error| told(&error));
            if found != last {
                self.take(&found);
                last = found;
            }
        }
    }

    fn take(&self, found: &Result<Files, String>) {
        let directory = self.directory.display();
        let files = found.as_ref().map_err(String::clone);
        match files.and_then(|files| parse(files).map_err(|error| told(&error))) {
            Ok(key) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = key;
                self.metrics.key_pair(true);
                info!(%directory, "key pair loaded");
            }
            Err(error) => {
                self.metrics.key_pair(false);
                warn!(%directory, error, "key pair not loaded; the last one is used");
            }
        }
    }
}

fn told(error: &KeyPairError) -> String {
    crate::ConventionError::from(error).to_string()
}

async fn read(directory: &Path) -> Result<Files, KeyPairError> {
    let one = async |file: PathBuf| {
        let bytes = tokio::fs::read(&file).await;
        bytes.map_err(|source| KeyPairError::File { file, source })
    };
    let (certificate, key) = (directory.join("tls.crt"), directory.join("tls.key"));
    Ok((one(certificate).await?, one(key).await?))
}

fn parse((certificate, key): &Files) -> Result<Arc<CertifiedKey>, KeyPairError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(|error| KeyPairError::Certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(KeyPairError::Certificate("nothing in PEM".to_owned()));
    }
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|error| KeyPairError::Key(error.to_string()))?;
    let key = ring::sign::any_supported_type(&key)
        .map_err(|error| KeyPairError::Key(error.to_string()))?;
    let key = CertifiedKey::new(chain, key);
    key.keys_match().map_err(|_| KeyPairError::Mismatch)?;
    Ok(Arc::new(key))
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyPair({})", self.directory.display())
    }
}

impl ResolvesServerCert for KeyPair {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read();
        Some(current.unwrap_or_else(PoisonError::into_inner).clone())
    }
}
