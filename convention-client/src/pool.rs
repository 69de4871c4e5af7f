//! Connections that are kept, by whom they lead to and why that one is trusted.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use quick_cache::sync::Cache;
use rustls::client::VerifierBuilderError;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use tokio::sync::Semaphore;

use crate::body::RequestStream;
use crate::dial::{Connector, Dial};
use crate::settings::Settings;
use crate::target::Target;
use crate::trust::{OwnAuthorities, Trust};

pub(crate) type HttpClient = Client<Connector, RequestStream>;

/// How many bytes a connection holds each way, however large what goes over it is.
const MOST_BUFFERED: usize = 128 << 10;

/// The time of day, for certificates.
struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let time = (self.0)().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(UnixTime::since_unix_epoch(time))
    }
}

/// The connections to one target.
pub(crate) struct Pool {
    pub(crate) client: HttpClient,
    /// One for each call that may be under way.
    pub(crate) calls: Semaphore,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    scheme: String,
    host: String,
    port: Option<u16>,
    is_service: bool,
    trust: Option<[u8; 32]>,
}

/// Why there can be no connections to a target.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum PoolError {
    /// Nothing is trusted: images without certificates have none.
    #[error(
        "no certificate authority is known: give one in clientConfig.caBundle, or name a \
         Certificate of cert-manager; the system of this process has none"
    )]
    NoAuthorities,
    /// The authorities cannot be used.
    #[error("the certificate authority cannot be used: {0}")]
    Authorities(VerifierBuilderError),
}

/// All connections. Of those that were not used for longest the pool goes when there are too many.
pub(crate) struct Pools {
    by_identity: Cache<Identity, Arc<Pool>>,
    tls: ConfigBuilder<ClientConfig, WantsVerifier>,
    system: Arc<RootCertStore>,
    settings: Settings,
}

impl Pools {
    pub(crate) fn new(settings: Settings) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clock = Arc::new(Clock(Arc::clone(&settings.now)));
        let tls = ClientConfig::builder_with_details(provider, clock);
        let mut system = RootCertStore::empty();
        system.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Ok(Self {
            by_identity: Cache::new(settings.most_targets.max(1)),
            tls: tls.with_safe_default_protocol_versions()?,
            system: Arc::new(system),
            settings,
        })
    }

    /// The connections to this target. They are made when they are needed.
    pub(crate) fn of(&self, target: &Target) -> Result<Arc<Pool>, PoolError> {
        let url = target.url();
        let identity = Identity {
            scheme: url.scheme().to_owned(),
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default(),
            is_service: target.is_service(),
            trust: target.trust().digest(),
        };
        let made = || self.made(target).map(Arc::new);
        self.by_identity.get_or_insert_with(&identity, made)
    }

    fn made(&self, target: &Target) -> Result<Pool, PoolError> {
        let proxies = self.settings.proxies.matcher();
        let dial = Dial::new(
            proxies.filter(|_| !target.is_service()),
            self.settings.connect,
        );
        let connector = Connector::new(dial, self.tls(target)?, self.settings.connect);
        let most = self.settings.most_calls_to_one_target.max(1);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(self.settings.idle)
            .pool_max_idle_per_host(most)
            .http1_max_buf_size(MOST_BUFFERED)
            .build(connector);
        Ok(Pool {
            client,
            calls: Semaphore::new(most),
        })
    }

    fn tls(&self, target: &Target) -> Result<ClientConfig, PoolError> {
        let tls = self.tls.clone();
        let tls = match target.trust() {
            Trust::System if self.system.is_empty() && target.url().scheme() == "https" => {
                return Err(PoolError::NoAuthorities);
            }
            Trust::System => tls.with_root_certificates(Arc::clone(&self.system)),
            Trust::Own(authorities) => {
                let provider = Arc::clone(tls.crypto_provider());
                let verifier = OwnAuthorities::new(authorities, provider);
                let verifier = verifier.map_err(PoolError::Authorities)?;
                tls.dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        let mut tls = tls.with_no_client_auth();
        // Only this: over HTTP/2 all calls would go to one of the servers behind a service.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(tls)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;

    use super::*;

    #[test]
    fn a_system_without_authorities_is_told_with_what_to_do() {
        let mut pools = Pools::new(Settings::default()).unwrap();
        pools.system = Arc::new(RootCertStore::empty());
        let of = |url: &str| {
            let config = WebhookClientConfig {
                url: Some(url.to_owned()),
                ..Default::default()
            };
            pools.of(&Target::of(&config, None).unwrap()).err()
        };
        let text = of("https://a").map(|error| error.to_string());
        assert!(text.is_some_and(|text| text.contains("caBundle")));
        assert!(of("http://a").is_none());
    }
}
