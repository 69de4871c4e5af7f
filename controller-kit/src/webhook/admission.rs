//! The admission webhooks of a process: who answers, with which certificate, and which configurations trust it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::server::{longest_lingering, serve_lingering};
use super::{
    Configuration, Routes, SelfManaged, ServingCertificate, follow_directory, service_names,
};
use crate::args::WebhookArgs;
use crate::kubeconfig;
use crate::probes::Readiness;
use crate::process::Process;

/// What is admitted by whom.
pub struct Admission {
    args: WebhookArgs,
    routes: Routes,
    /// Whose caBundle is kept up to date beside that of the flag.
    configurations: Vec<Configuration>,
}

impl Admission {
    /// As the flags ask for it.
    pub fn new(args: &WebhookArgs, routes: Routes) -> Self {
        Self {
            args: args.clone(),
            routes,
            configurations: Vec::new(),
        }
    }

    /// Some of it is named by this MutatingWebhookConfiguration: with a certificate of our own making its caBundle is kept up
    /// to date, too.
    #[must_use]
    pub fn named_by_mutating(mut self, configuration: Option<String>) -> Self {
        self.configurations
            .extend(configuration.map(Configuration::Mutating));
        self
    }

    /// The same for a ValidatingWebhookConfiguration beside the one that the flag names.
    #[must_use]
    pub fn named_by_validating(mut self, configuration: Option<String>) -> Self {
        self.configurations
            .extend(configuration.map(Configuration::Validating));
        self
    }

    /// Serves the webhooks if the flags ask for them.
    ///
    /// # Errors
    /// When the port is taken, or the flags do not fit together.
    pub(crate) async fn serve(
        self,
        process: &Process,
        readiness: &Arc<Readiness>,
    ) -> anyhow::Result<()> {
        let (metrics, tasks) = (&process.metrics, &process.tasks);
        let certificate = Arc::new(ServingCertificate::new());
        match (&self.args.cert_dir, &self.args.webhook_secret) {
            (Some(directory), _) => {
                let (certificate, metrics) = (certificate.clone(), metrics.clone());
                let following = follow_directory(directory.clone(), certificate, metrics);
                tasks.spawn_until_stopped("webhook-certificate", following);
            }
            (None, Some(secret)) => {
                let managed = self.self_managed(secret, process).await?;
                let is_trusted = managed.start(
                    process.cluster.controller(),
                    certificate.clone(),
                    metrics.clone(),
                    tasks,
                );
                readiness.require("webhook trusted", is_trusted);
            }
            (None, None) => return Ok(()),
        }
        let loaded = certificate.clone();
        readiness.require("webhook certificate", move || loaded.is_loaded());
        metrics.webhook_serves(self.routes.iter().map(|(route, _)| route.kind));
        let port = self.args.port;
        let lingering = lingering(process).await;
        let metrics = metrics.clone();
        serve_lingering(port, self.routes, certificate, metrics, tasks, lingering)
            .await
            .with_context(|| format!("port {port} (--port)"))?;
        Ok(())
    }

    async fn self_managed(&self, secret: &str, process: &Process) -> anyhow::Result<SelfManaged> {
        let args = &self.args;
        let namespace = process.own_namespace().await;
        let service = args
            .webhook_service
            .as_deref()
            .context("--webhook-secret needs --webhook-service")?;
        let named = args.webhook_configuration.clone();
        let named = named.map(Configuration::Validating).into_iter();
        let configurations = named.chain(self.configurations.iter().cloned()).collect();
        Ok(SelfManaged {
            names: service_names(service, &namespace),
            namespace,
            secret: secret.to_owned(),
            configurations,
            clock: process.cluster.clock(),
        })
    }
}

/// The API server keeps connections to a webhook in a cluster; elsewhere nobody is to wait for that.
async fn lingering(process: &Process) -> Duration {
    if kubeconfig::in_cluster().await {
        longest_lingering(process.patience)
    } else {
        Duration::ZERO
    }
}
