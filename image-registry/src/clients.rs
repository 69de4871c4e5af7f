//! Connections: whom they trust, and which way they go.
//!
//! Ways through proxies are those of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`);
//! loopback goes through none.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use reqwest::{Client, ClientBuilder, Url};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::settings::{Settings, SettingsError};

/// The most bytes of a file with authorities. Those of all systems together have a quarter of a
/// MiB.
const CA_BYTES: u64 = 8 << 20;

/// What a request may be sent with.
pub(crate) struct Clients {
    settings: Arc<Settings>,
    system: Vec<CertificateDer<'static>>,
    made: Mutex<Made>,
    /// That believes any certificate.
    believing: Mutex<Option<Client>>,
}

struct Made {
    /// Of the file that the authorities were read from, good or not.
    stamp: Option<Stamp>,
    authorities: Vec<CertificateDer<'static>>,
    pair: Pair,
}

/// For hosts of the network, and for this one.
#[derive(Clone)]
pub(crate) struct Pair {
    network: Client,
    loopback: Client,
}

/// Tells whether a file is still the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<SystemTime>, u64);

impl Stamp {
    /// Nothing if there is no such file.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        let metadata = fs::metadata(file).ok()?;
        Some(Self(metadata.modified().ok(), metadata.len()))
    }
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
        let stamp = settings.ca_file.as_deref().and_then(Stamp::of);
        let authorities = match &settings.ca_file {
            Some(file) if stamp.is_some() => authorities(file)?,
            _ => Vec::new(),
        };
        let pair = pair(settings, &system, &authorities)?;
        Ok(Self {
            settings: settings.clone(),
            system,
            made: Mutex::new(Made {
                stamp,
                authorities,
                pair,
            }),
            believing: Mutex::default(),
        })
    }

    /// The clients for now: with other authorities if their file has changed.
    pub(crate) fn current(&self) -> Pair {
        let Some(file) = &self.settings.ca_file else {
            return self.made.lock().pair.clone();
        };
        let stamp = Stamp::of(file);
        let mut made = self.made.lock();
        if made.stamp == stamp {
            return made.pair.clone();
        }
        made.stamp.clone_from(&stamp);
        let read = if stamp.is_some() {
            authorities(file)
        } else {
            Ok(Vec::new())
        };
        match read.and_then(|read| Ok((pair(&self.settings, &self.system, &read)?, read))) {
            Ok((pair, authorities)) => {
                made.authorities = authorities;
                made.pair = pair;
            }
            Err(error) => tracing::warn!("{error}; the authorities from before are trusted"),
        }
        made.pair.clone()
    }

    /// What the file of authorities looks like that is trusted.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.current();
        self.made.lock().stamp.clone()
    }

    /// Clients that trust these files as well.
    ///
    /// # Errors
    ///
    /// If one of them is missing or broken.
    pub(crate) fn trusting(&self, files: &[PathBuf]) -> Result<Pair, SettingsError> {
        self.current();
        let mut all = self.made.lock().authorities.clone();
        for file in files {
            all.extend(authorities(file)?);
        }
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

fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let broken = |cause: String| SettingsError::File {
        file: file.to_owned(),
        cause,
    };
    let pem = read_bounded(file, CA_BYTES).map_err(|error| broken(error.to_string()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| broken(format!("it is not PEM: {error}")))?;
    if certificates.is_empty() && !pem.trim_ascii().is_empty() {
        return Err(broken("it has no certificate in PEM".to_owned()));
    }
    let mut store = RootCertStore::empty();
    for certificate in &certificates {
        let added = store.add(certificate.clone());
        added.map_err(|error| broken(format!("it has a certificate that is none: {error}")))?;
    }
    Ok(certificates)
}

/// What is in a file, if it is not too much.
///
/// # Errors
///
/// If it cannot be read, or is larger.
pub(crate) fn read_bounded(file: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;

    let mut bytes = Vec::new();
    fs::File::open(file)?
        .take(limit + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(std::io::Error::other(format!(
            "it is larger than {limit} bytes"
        )));
    }
    Ok(bytes)
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
