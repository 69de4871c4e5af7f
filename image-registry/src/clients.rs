//! Connections: whom they trust, and which way they go.
//!
//! Ways through proxies are those of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`);
//! loopback goes through none.

use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::{Client, ClientBuilder, Url};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::settings::{Settings, SettingsError};
use crate::watched::Watched;

/// The most bytes of a file with authorities. Those of all systems together have a quarter of a
/// MiB.
pub(crate) const CA_BYTES: u64 = 8 << 20;

/// What a file with authorities has.
pub(crate) type Authorities = Vec<CertificateDer<'static>>;

/// What a request may be sent with.
pub(crate) struct Clients {
    settings: Arc<Settings>,
    system: Authorities,
    made: Mutex<Made>,
    /// That believes any certificate.
    believing: Mutex<Option<Client>>,
}

struct Made {
    file: Option<Watched<Authorities>>,
    /// Counts what the file has said.
    version: u64,
    pair: Pair,
}

/// For hosts of the network, and for this one.
#[derive(Clone)]
pub(crate) struct Pair {
    network: Client,
    loopback: Client,
}

impl Pair {
    /// The one for this address.
    pub(crate) fn for_url(&self, url: &Url) -> Client {
        let client = if is_loopback(url) {
            &self.loopback
        } else {
            &self.network
        };
        client.clone()
    }
}

impl Clients {
    /// # Errors
    ///
    /// If there is a file of authorities that is broken.
    pub(crate) fn new(settings: &Arc<Settings>) -> Result<Self, SettingsError> {
        let system = rustls_native_certs::load_native_certs().certs;
        let file = settings.ca_file.clone();
        let mut file = file.map(|file| Watched::new(file, CA_BYTES));
        let authorities = match &mut file {
            Some(file) => {
                file.look(read);
                file.good()?.clone()
            }
            None => Vec::new(),
        };
        let pair = pair(settings, &system, &authorities)?;
        Ok(Self {
            settings: settings.clone(),
            system,
            made: Mutex::new(Made {
                file,
                version: 0,
                pair,
            }),
            believing: Mutex::default(),
        })
    }

    /// The clients for now: with other authorities if their file has changed.
    pub(crate) fn current(&self) -> Pair {
        let mut made = self.made.lock();
        made.look(&self.settings, &self.system);
        made.pair.clone()
    }

    /// Which of the clients are the current ones.
    pub(crate) fn version(&self) -> u64 {
        let mut made = self.made.lock();
        made.look(&self.settings, &self.system);
        made.version
    }

    /// Clients that trust these as well.
    ///
    /// # Errors
    ///
    /// If they cannot be made.
    pub(crate) fn trusting(
        &self,
        others: impl Iterator<Item = CertificateDer<'static>>,
    ) -> Result<Pair, SettingsError> {
        let mut all = self.made.lock().authorities();
        all.extend(others);
        pair(&self.settings, &self.system, &all)
    }

    /// A client that believes any certificate. For loopback only; the caller sees to that.
    ///
    /// # Errors
    ///
    /// If the client cannot be made.
    pub(crate) fn trusting_all(&self) -> Result<Client, SettingsError> {
        let mut believing = self.believing.lock();
        if let Some(client) = &*believing {
            return Ok(client.clone());
        }
        let mut tls = tls(RootCertStore::empty())?;
        tls.dangerous()
            .set_certificate_verifier(Arc::new(believe::Everything::new()));
        let client = build(builder(&self.settings).no_proxy(), tls)?;
        *believing = Some(client.clone());
        Ok(client)
    }
}

impl Made {
    fn look(&mut self, settings: &Settings, system: &[CertificateDer<'static>]) {
        let Some(file) = &mut self.file else {
            return;
        };
        if !file.look(read) {
            return;
        }
        match pair(settings, system, &self.authorities()) {
            Ok(pair) => {
                self.pair = pair;
                self.version += 1;
            }
            Err(error) => tracing::warn!("{error}; the authorities from before are trusted"),
        }
    }

    fn authorities(&self) -> Authorities {
        let good = self.file.as_ref().map(Watched::good);
        good.and_then(|good| good.ok().cloned()).unwrap_or_default()
    }
}

/// The authorities of a file that may be missing.
fn read(pem: Option<&[u8]>) -> Result<Authorities, String> {
    pem.map_or_else(|| Ok(Vec::new()), authorities)
}

/// The authorities in a text; there may be none in an empty one.
///
/// # Errors
///
/// If it is no PEM, or has something that is no certificate.
pub(crate) fn authorities(pem: &[u8]) -> Result<Authorities, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| format!("it is not PEM: {error}"))?;
    if certificates.is_empty() && !pem.trim_ascii().is_empty() {
        return Err("it has no certificate in PEM".to_owned());
    }
    let mut store = RootCertStore::empty();
    for certificate in &certificates {
        let added = store.add(certificate.clone());
        added.map_err(|error| format!("it has a certificate that is none: {error}"))?;
    }
    Ok(certificates)
}

fn pair(
    settings: &Settings,
    system: &[CertificateDer<'static>],
    authorities: &[CertificateDer<'static>],
) -> Result<Pair, SettingsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system.iter().chain(authorities).cloned());
    let tls = tls(roots)?;
    Ok(Pair {
        network: build(builder(settings), tls.clone())?,
        loopback: build(builder(settings).no_proxy(), tls)?,
    })
}

fn tls(roots: RootCertStore) -> Result<rustls::ClientConfig, SettingsError> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|error| SettingsError::Client(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn builder(settings: &Settings) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("carto/", env!("CARGO_PKG_VERSION")))
        // Where a redirection may lead, and with what, is decided in `exchange`; tries are counted
        // there.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(settings.connect_timeout)
        .read_timeout(settings.idle_timeout)
        .pool_max_idle_per_host(settings.concurrency)
}

fn build(builder: ClientBuilder, tls: rustls::ClientConfig) -> Result<Client, SettingsError> {
    let built = builder.tls_backend_preconfigured(tls).build();
    built.map_err(|error| SettingsError::Client(error.to_string()))
}

/// Whether an address is this host's own, as far as can be seen from its text.
pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_host)
}

/// Whether a host is this one, as far as can be seen from its name.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<std::net::IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let name = bare.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Belief in any certificate.
mod believe {
    use rustls::DigitallySignedStruct;
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    #[derive(Debug)]
    pub(super) struct Everything(WebPkiSupportedAlgorithms);

    impl Everything {
        pub(super) fn new() -> Self {
            Self(ring::default_provider().signature_verification_algorithms)
        }
    }

    impl ServerCertVerifier for Everything {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.0.supported_schemes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_and_addresses_of_this_host_are_loopback() {
        for (url, expected) in [
            ("http://localhost:5000/v2/", true),
            ("http://a.localhost/v2/", true),
            ("http://LOCALHOST/", true),
            ("http://127.0.0.1:1/", true),
            ("http://127.9.9.9/", true),
            ("http://[::1]:5000/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://0.0.0.0/", false),
            ("http://10.0.0.1/", false),
            ("http://192.168.0.1/", false),
            ("http://localhost.example/", false),
            ("http://notlocalhost/", false),
            ("http://127.0.0.1.example/", false),
            ("http://[::2]/", false),
        ] {
            assert_eq!(is_loopback(&url.parse().unwrap()), expected, "{url}");
        }
    }
}
