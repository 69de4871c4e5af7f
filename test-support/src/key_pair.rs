//! Key pairs for servers of tests, and the authorities that sign them.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate of a server, and its key.
#[derive(Debug)]
pub struct TestKeyPair {
    certificate: Certificate,
    key: KeyPair,
}

impl TestKeyPair {
    /// For a server of these names, which is its own authority.
    ///
    /// # Errors
    ///
    /// When a name is none, or no key can be made.
    pub fn signed_by_itself(names: &[&str]) -> anyhow::Result<Self> {
        Self::signed_by_itself_with(names, |_| {})
    }

    /// The same, with other parameters.
    ///
    /// # Errors
    ///
    /// When a name or a parameter is none, or no key can be made.
    pub fn signed_by_itself_with(
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> anyhow::Result<Self> {
        let (key, params) = (KeyPair::generate()?, params(names, change)?);
        let certificate = params.self_signed(&key)?;
        Ok(Self { certificate, key })
    }

    /// The same, with a key of another kind (Ed25519): its name is that of the others, and neither is
    /// an authority of the other.
    ///
    /// # Errors
    ///
    /// When a name is none, or no key can be made.
    pub fn with_another_kind_of_key(names: &[&str]) -> anyhow::Result<Self> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let certificate = params(names, |_| {})?.self_signed(&key)?;
        Ok(Self { certificate, key })
    }

    /// The certificate.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    /// The key.
    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    /// The certificate as PEM.
    pub fn certificate_pem(&self) -> String {
        self.certificate.pem()
    }

    /// The key as PEM.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// What a server needs that shows it.
    ///
    /// # Errors
    ///
    /// When rustls does not take it.
    pub fn server_config(&self) -> anyhow::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(ring::default_provider().into());
        let builder = builder.with_safe_default_protocol_versions()?;
        let builder = builder.with_no_client_auth();
        Ok(builder.with_single_cert(vec![self.certificate()], self.key())?)
    }

    /// Writes `tls.crt` and `tls.key`, as in a Secret of type `kubernetes.io/tls`.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn write_to(&self, folder: &Path) -> anyhow::Result<()> {
        let write = |name: &str, pem: String| {
            let file = folder.join(name);
            fs::write(&file, pem).with_context(|| file.display().to_string())
        };
        write("tls.crt", self.certificate_pem())?;
        write("tls.key", self.key_pem())
    }
}

/// Signs key pairs.
#[derive(Debug)]
pub struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

impl TestAuthority {
    /// Makes one of this name.
    ///
    /// # Errors
    ///
    /// When no key can be made.
    pub fn new(name: &str) -> anyhow::Result<Self> {
        let params = params(&[], |params| {
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        })?;
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self(issuer))
    }

    /// Its certificate as PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs a key pair for a server of these names.
    ///
    /// # Errors
    ///
    /// When a name is none, or no key can be made.
    pub fn sign(&self, names: &[&str]) -> anyhow::Result<TestKeyPair> {
        self.sign_with(names, |_| {})
    }

    /// The same, with other parameters.
    ///
    /// # Errors
    ///
    /// When a name or a parameter is none, or no key can be made.
    pub fn sign_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> anyhow::Result<TestKeyPair> {
        let (key, params) = (KeyPair::generate()?, params(names, change)?);
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(TestKeyPair { certificate, key })
    }
}

fn params(
    names: &[&str],
    change: impl FnOnce(&mut CertificateParams),
) -> anyhow::Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names)?;
    change(&mut params);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    fn is_trusted(pem: &str, pair: &TestKeyPair, name: &'static str) -> bool {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let provider = ring::default_provider().into();
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        let name = ServerName::try_from(name).unwrap();
        let verifier = verifier.build().unwrap();
        let verified =
            verifier.verify_server_cert(&pair.certificate(), &[], &name, &[], UnixTime::now());
        verified.is_ok()
    }

    #[test]
    fn a_key_pair_is_good_for_its_names_if_its_authority_is_trusted() {
        let (authority, other) = (TestAuthority::new("a"), TestAuthority::new("b"));
        let (authority, other) = (authority.unwrap(), other.unwrap());
        let pair = authority.sign(&["localhost"]).unwrap();
        assert!(is_trusted(&authority.pem(), &pair, "localhost"));
        assert!(!is_trusted(&authority.pem(), &pair, "elsewhere"));
        assert!(!is_trusted(&other.pem(), &pair, "localhost"));
        let own = TestKeyPair::signed_by_itself(&["localhost"]).unwrap();
        assert!(is_trusted(&own.certificate_pem(), &own, "localhost"));
    }

    #[test]
    fn the_files_hold_the_key_of_the_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let pair = TestKeyPair::signed_by_itself(&["localhost"]).unwrap();
        pair.write_to(folder.path()).unwrap();
        let file = |name: &str| folder.path().join(name);
        let certificate = CertificateDer::from_pem_file(file("tls.crt")).unwrap();
        let key = PrivateKeyDer::from_pem_file(file("tls.key")).unwrap();
        assert_eq!((&certificate, &key), (&pair.certificate(), &pair.key()));
        assert!(pair.server_config().is_ok());
    }
}
