//! Which authorities are trusted.

use std::sync::Arc;

use conventions::authority::certificates;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};

/// The authorities of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those of the system.
    System,
    /// These, and no others.
    Own(Arc<Authorities>),
}

/// Certificates of authorities, sorted.
#[derive(PartialEq, Eq)]
pub(crate) struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
    digest: [u8; 32],
}

/// Short: certificates are long, and what they say is known to their server.
impl std::fmt::Debug for Authorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authorities({})", self.certificates.len())
    }
}

impl Trust {
    /// Those of a bundle in PEM. What cannot be read in it is left out; nothing if that is all.
    pub(crate) fn own(pem: &[u8]) -> Option<Self> {
        let mut readable: Vec<_> = certificates(pem)
            .into_iter()
            .map(CertificateDer::from)
            .filter(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok())
            .collect();
        readable.sort_by(|one, other| one.as_ref().cmp(other));
        readable.dedup();
        if readable.is_empty() {
            return None;
        }
        let mut digest = Sha256::new();
        for certificate in &readable {
            digest.update(certificate.len().to_le_bytes());
            digest.update(certificate);
        }
        Some(Self::Own(Arc::new(Authorities {
            certificates: readable,
            digest: digest.finalize().into(),
        })))
    }

    /// By which connections are told apart.
    pub(crate) fn digest(&self) -> Option<[u8; 32]> {
        match self {
            Self::System => None,
            Self::Own(authorities) => Some(authorities.digest),
        }
    }
}

/// Trusts own authorities. Unlike the verifier that it asks, it also takes a certificate that is in the
/// bundle itself and calls itself an authority: so is one that `openssl req -x509` makes, and the API
/// server takes it.
#[derive(Debug)]
pub(crate) struct OwnAuthorities {
    chains: Arc<WebPkiServerVerifier>,
    bundle: Arc<Authorities>,
}

impl OwnAuthorities {
    pub(crate) fn new(
        bundle: &Arc<Authorities>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, rustls::client::VerifierBuilderError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(bundle.certificates.iter().cloned());
        Ok(Self {
            chains: WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build()?,
            bundle: Arc::clone(bundle),
        })
    }

    /// The chain ends there: its time was looked at before it was found to be an authority.
    fn is_of_the_bundle(&self, error: &Error, certificate: &CertificateDer<'_>) -> bool {
        let Error::InvalidCertificate(CertificateError::Other(other)) = error else {
            return false;
        };
        let is_authority = matches!(
            other.0.downcast_ref::<webpki::Error>(),
            Some(webpki::Error::CaUsedAsEndEntity)
        );
        is_authority && self.bundle.certificates.contains(certificate)
    }
}

impl ServerCertVerifier for OwnAuthorities {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.chains.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if self.is_of_the_bundle(&error, end_entity) => {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&parsed, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}
