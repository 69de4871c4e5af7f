//! A certificate of our own making: in a Secret that replicas share, renewed before it expires.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use super::ca_bundle::keep_ca_bundle;
use super::certificate::{LoadedCertificate, ServingCertificate};
use super::pki::Authority;
use crate::cluster::chain;
use crate::metrics::Metrics;
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
    fn keep(self, client: &kube::Client, trusted: watch::Receiver<String>, tasks: &Tasks) {
        let (client, shutdown) = (client.clone(), tasks.token().clone());
        match self {
            Self::Validating(name) => {
                type Kind = ValidatingWebhookConfiguration;
                let keeping = keep_ca_bundle::<Kind>(client, name, trusted, shutdown);
                tasks.spawn("ca-bundle", keeping);
            }
            Self::Mutating(name) => {
                type Kind = MutatingWebhookConfiguration;
                let keeping = keep_ca_bundle::<Kind>(client, name, trusted, shutdown);
                tasks.spawn("ca-bundle", keeping);
            }
        }
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
    pub fn start(
        self,
        client: &kube::Client,
        certificate: Arc<ServingCertificate>,
        metrics: Arc<Metrics>,
        tasks: &Tasks,
    ) {
        let (publish, trusted) = watch::channel(String::new());
        for configuration in self.configurations.clone() {
            configuration.keep(client, trusted.clone(), tasks);
        }
        let keeper = Keeper {
            secrets: Api::namespaced(client.clone(), &self.namespace),
            settings: self,
            certificate,
            metrics,
            publish,
        };
        let shutdown = tasks.token().clone();
        tasks.spawn("webhook-certificate", async move {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = keeper.run() => {}
            }
        });
    }
}

struct Keeper {
    settings: SelfManaged,
    secrets: Api<Secret>,
    certificate: Arc<ServingCertificate>,
    metrics: Arc<Metrics>,
    publish: watch::Sender<String>,
}

impl Keeper {
    async fn run(self) {
        let stream =
            watcher::watch_object(self.secrets.clone(), &self.settings.secret).default_backoff();
        tokio::pin!(stream);
        let mut latest = None;
        let mut due = Instant::now() + CHECK;
        loop {
            tokio::select! {
                event = stream.next() => match event {
                    Some(Ok(secret)) => latest = Some(secret),
                    Some(Err(error)) => {
                        warn!(secret = %self.settings.secret, error = %chain(&error), "webhook certificate: secret not watched");
                        continue;
                    }
                    // The stream never ends.
                    None => return,
                },
                // A point in time: a watch that fails every half minute must not put the look off for ever.
                () = tokio::time::sleep_until(due) => {}
            }
            due = Instant::now() + CHECK;
            let Some(secret) = &latest else { continue };
            let wait = match self.reconcile(secret.as_ref()).await {
                Ok(()) => CHECK,
                Err(error) => {
                    warn!(secret = %self.settings.secret, error, "webhook certificate not kept");
                    RETRY
                }
            };
            due = Instant::now() + wait;
        }
    }

    /// A certificate is used only when it is in the Secret: another replica may have been faster, and
    /// two authorities would be one too many.
    async fn reconcile(&self, secret: Option<&Secret>) -> Result<(), String> {
        let found = secret
            .and_then(|secret| secret.data.as_ref())
            .and_then(Authority::from_data);
        let authority =
            Authority::maintained(found.clone(), &self.settings.names, (self.settings.clock)())
                .map_err(|error| chain(&error))?;
        if found.as_ref() == Some(&authority) {
            return self.serve(&authority);
        }
        match self.write(secret, &authority).await {
            Ok(()) => self.serve(&authority),
            // Somebody was faster; the watch brings what they wrote.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => {
                // What is there is better than nothing, if it is anything.
                found.map_or(Ok(()), |found| self.serve(&found))?;
                Err(chain(&error))
            }
        }
    }

    async fn write(
        &self,
        secret: Option<&Secret>,
        authority: &Authority,
    ) -> Result<(), kube::Error> {
        let name = &self.settings.secret;
        let parameters = PostParams::default();
        match secret {
            None => {
                let metadata = ObjectMeta {
                    name: Some(name.clone()),
                    ..ObjectMeta::default()
                };
                let secret = Secret {
                    metadata,
                    data: Some(authority.to_data()),
                    type_: Some("Opaque".into()),
                    ..Secret::default()
                };
                self.secrets.create(&parameters, &secret).await?;
                info!(secret = %name, "webhook certificate made");
            }
            Some(secret) => {
                // With its resourceVersion: of two replicas one wins.
                let secret = Secret {
                    data: Some(authority.to_data()),
                    ..secret.clone()
                };
                self.secrets.replace(name, &parameters, &secret).await?;
                info!(secret = %name, "webhook certificate renewed");
            }
        }
        Ok(())
    }

    fn serve(&self, authority: &Authority) -> Result<(), String> {
        let serving = &authority.serving;
        let loaded =
            LoadedCertificate::from_pem(serving.certificate.as_bytes(), serving.key.as_bytes())
                .map_err(|error| chain(&error))?;
        self.certificate.replace(&loaded, &self.metrics);
        self.publish.send_if_modified(|trusted| {
            let now = authority.trusted();
            let changed = *trusted != now;
            *trusted = now;
            changed
        });
        Ok(())
    }
}
