//! The certificate that is shown to clients; it may be exchanged at any moment.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;

use super::validity::Validity;
use crate::metrics::Metrics;

/// Why a certificate cannot be served. The operator must fix it.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// No certificate in the PEM text.
    #[error("read certificate: {0}")]
    Certificate(String),
    /// No private key in the PEM text, or of an unknown kind.
    #[error("read private key: {0}")]
    Key(String),
    /// They do not belong together.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
}

/// A certificate chain with its key.
#[derive(Clone)]
pub(super) struct LoadedCertificate {
    key: Arc<CertifiedKey>,
    pub(super) expiry: Timestamp,
}

impl LoadedCertificate {
    pub(super) fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| CertificateError::Certificate(error.to_string()))?;
        let validity = chain.first().and_then(|first| Validity::of(first));
        let none = || CertificateError::Certificate("no certificate in it".into());
        let expiry = validity.ok_or_else(none)?.not_after;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| CertificateError::Key(error.to_string()))?;
        let key = ring::sign::any_supported_type(&key)
            .map_err(|error| CertificateError::Key(error.to_string()))?;
        let key = CertifiedKey::new(chain, key);
        key.keys_match().map_err(|_| CertificateError::Mismatch)?;
        Ok(Self {
            key: Arc::new(key),
            expiry,
        })
    }
}

/// What TLS handshakes are answered with. Connections that exist go on with what they began with.
#[derive(Default)]
pub struct ServingCertificate {
    current: ArcSwapOption<CertifiedKey>,
}

impl ServingCertificate {
    /// None yet: handshakes fail.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is one; a check for the readiness probe.
    pub fn is_loaded(&self) -> bool {
        self.current.load().is_some()
    }

    /// The certificate itself, DER.
    #[cfg(test)]
    pub(super) fn leaf(&self) -> Option<Vec<u8>> {
        self.current
            .load()
            .as_ref()
            .and_then(|key| Some(key.cert.first()?.to_vec()))
    }

    pub(super) fn replace(&self, certificate: &LoadedCertificate, metrics: &Metrics) {
        metrics.certificate_expiry(certificate.expiry.as_second());
        self.current.store(Some(certificate.key.clone()));
    }
}

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServingCertificate")
            .field("is_loaded", &self.is_loaded())
            .finish()
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}
