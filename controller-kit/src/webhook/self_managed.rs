//! A certificate of our own making: in a Secret that replicas share, renewed before it expires.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher;
use tokio::sync::watch;
use tracing::{info, warn};

use super::ca_bundle::{Trust, keep_ca_bundle};
use super::certificate::ServingCertificate;
use super::pki::Authority;
use crate::cluster::chain;
use crate::metrics::Metrics;
use crate::shared_secret::{Keeper, SharedSecret};
use crate::shutdown::Tasks;

/// How often it is looked whether something is due. No request unless there is.
const CHECK: Duration = Duration::from_hours(1);
/// The wait after a refused write.
const RETRY: Duration = Duration::from_secs(5);

/// The names under which the API server and people reach a Service.
pub(crate) fn service_names(service: &str, namespace: &str) -> Vec<String> {
    vec![
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
        format!("{service}.{namespace}"),
        service.into(),
    ]
}

/// A configuration of webhooks, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Configuration {
    /// A ValidatingWebhookConfiguration.
    Validating(String),
    /// A MutatingWebhookConfiguration.
    Mutating(String),
}

impl Configuration {
    fn keep(
        self,
        client: &kube::Client,
        trusted: watch::Receiver<String>,
        secret: SharedSecret,
        tasks: &Tasks,
    ) -> Trust {
        let (client, trust) = (client.clone(), Trust::default());
        let told = trust.clone();
        match self {
            Self::Validating(name) => {
                type Kept = ValidatingWebhookConfiguration;
                let keeping = keep_ca_bundle::<Kept>(client, name, trusted, told, secret);
                tasks.spawn_until_stopped("ca-bundle", keeping);
            }
            Self::Mutating(name) => {
                type Kept = MutatingWebhookConfiguration;
                let keeping = keep_ca_bundle::<Kept>(client, name, trusted, told, secret);
                tasks.spawn_until_stopped("ca-bundle", keeping);
            }
        }
        trust
    }
}

/// A self-managed certificate.
pub struct SelfManaged {
    /// Namespace of the Secret: our own.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// DNS names or IP addresses to serve; see `service_names`.
    pub names: Vec<String>,
    /// Those whose caBundle is kept up to date.
    pub configurations: Vec<Configuration>,
    /// Time of day.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl SelfManaged {
    /// Makes or adopts the certificate and keeps it fresh until the tasks are cancelled. Needs the right
    /// to get, list, watch, create and update the Secret, and to patch and watch the configurations.
    ///
    /// What is returned says whether all configurations that are there trust it.
    pub fn start(
        self,
        client: &kube::Client,
        certificate: Arc<ServingCertificate>,
        metrics: Arc<Metrics>,
        tasks: &Tasks,
    ) -> impl Fn() -> bool + Send + Sync + use<> {
        let (publish, trusted) = watch::channel(String::new());
        let secret = SharedSecret::new(client, &self.namespace, &self.secret);
        let configurations = self.configurations.iter().cloned();
        let trusts: Vec<Trust> = configurations
            .map(|configuration| configuration.keep(client, trusted.clone(), secret.clone(), tasks))
            .collect();
        let keeper = CertificateKeeper {
            secret: secret.clone(),
            settings: self,
            certificate,
            metrics,
            publish,
            trusts: trusts.clone(),
            shown: Mutex::default(),
        };
        let keeping = async move { secret.keep(keeper).await };
        tasks.spawn_until_stopped("webhook-certificate", keeping);
        move || trusts.iter().all(Trust::is_given)
    }
}

struct CertificateKeeper {
    settings: SelfManaged,
    secret: SharedSecret,
    certificate: Arc<ServingCertificate>,
    metrics: Arc<Metrics>,
    publish: watch::Sender<String>,
    trusts: Vec<Trust>,
    /// Certificate of the CA that signed what is shown.
    shown: Mutex<Option<String>>,
}

impl Keeper for CertificateKeeper {
    async fn reconcile(&self, secret: Option<&Secret>) -> Option<Duration> {
        let due = self.bring_in_order(secret).await;
        Some(due.unwrap_or_else(|error| {
            warn!(secret = %self.secret.name, error, "webhook certificate not kept");
            RETRY
        }))
    }

    fn unwatched(&self, error: &watcher::Error) {
        warn!(secret = %self.secret.name, error = %chain(error), "webhook certificate: secret not watched");
    }
}

impl CertificateKeeper {
    /// A certificate is used only when it is in the Secret: another replica may have been faster, and
    /// two authorities would be one too many. Returns after what time to look again.
    async fn bring_in_order(&self, secret: Option<&Secret>) -> Result<Duration, String> {
        let found = secret
            .and_then(|secret| secret.data.as_ref())
            .and_then(Authority::from_data);
        let now = (self.settings.clock)();
        let mut authority = Authority::maintained(found.clone(), &self.settings.names, now)
            .map_err(|error| chain(&error))?;
        // Also if another made it: one that had just begun shows nothing that could be lost.
        authority.keep_trusted(self.shown(), now);
        if found.as_ref() == Some(&authority) {
            return self.serve(&authority, now);
        }
        match self.secret.write(secret, authority.to_data()).await {
            Ok(()) => {
                let name = &self.secret.name;
                if secret.is_some() {
                    info!(secret = %name, "webhook certificate renewed");
                } else {
                    info!(secret = %name, "webhook certificate made");
                }
                self.serve(&authority, now)
            }
            // Somebody was faster; the watch brings what they wrote, and may be late.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(RETRY),
            Err(error) => {
                // What is there is better than nothing, if it is anything.
                if let Some(found) = found {
                    self.serve(&found, now)?;
                }
                Err(chain(&error))
            }
        }
    }

    fn shown(&self) -> Option<String> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone()
    }

    /// Has it trusted, and shows its certificate, at once or when all who ask can have heard of its authority. Where that could
    /// not be written, what was shown stays, as long as it is trusted.
    fn serve(&self, authority: &Authority, now: Timestamp) -> Result<Duration, String> {
        let loaded = authority.serving.load().map_err(|error| chain(&error))?;
        let bundle = authority.trusted();
        self.publish.send_if_modified(|trusted| {
            let changed = *trusted != bundle;
            trusted.clone_from(&bundle);
            changed
        });
        if let Some(shown) = self.shown() {
            if let Some(wait) = authority.shows_lost_for(&shown, now) {
                return Ok(wait);
            }
            let is_known = self.trusts.iter().all(|trust| trust.knows(&bundle));
            if !is_known && authority.trusts_lost(&shown, now) {
                return Ok(RETRY);
            }
        }
        self.certificate.replace(&loaded, &self.metrics);
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = Some(authority.ca.certificate.clone());
        Ok(authority.trusts_lost_for(now).unwrap_or(CHECK))
    }
}
