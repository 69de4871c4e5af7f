//! Admission of blueprints and templates: upstream's paths, verdicts and messages (spec 7), the same in every controller.

use std::sync::Arc;

use anyhow::Context as _;
use api_types::validation;
use serde_json::Value;

use super::{
    Operation, ROUTES, Route, SelfManaged, ServingCertificate, Validate, Verdict, follow_directory,
    serve, service_names,
};
use crate::args::WebhookArgs;
use crate::probes::Readiness;
use crate::process::Process;

/// The rules that the engine, the webhook and the CLI share.
pub(super) struct Rules;

impl Validate for Rules {
    fn validate(&self, kind: &str, object: &Value, _: Operation) -> Verdict {
        let validation::Verdict { error, warnings } = validation::validate(kind, object);
        Verdict { error, warnings }
    }
}

/// Admission of blueprints and templates, as the flags ask for it.
pub(crate) fn blueprints(args: &WebhookArgs) -> Admission {
    Admission {
        args: args.clone(),
        routes: &ROUTES,
        rules: Arc::new(Rules),
    }
}

/// What is admitted by whom.
pub struct Admission {
    args: WebhookArgs,
    routes: &'static [Route],
    rules: Arc<dyn Validate>,
}

impl Admission {
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
                let shutdown = tasks.token().clone();
                let following = follow_directory(
                    directory.clone(),
                    certificate.clone(),
                    metrics.clone(),
                    shutdown,
                );
                tasks.spawn("webhook-certificate", following);
            }
            (None, Some(secret)) => {
                let managed = self.self_managed(secret, process).await?;
                managed.start(
                    process.cluster.controller(),
                    certificate.clone(),
                    metrics.clone(),
                    tasks,
                );
            }
            (None, None) => return Ok(()),
        }
        let loaded = certificate.clone();
        readiness.require("webhook certificate", move || loaded.is_loaded());
        metrics.webhook_serves(self.routes.iter().map(|route| route.kind));
        let port = self.args.port;
        serve(
            port,
            self.routes,
            self.rules,
            certificate,
            metrics.clone(),
            tasks,
        )
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
        Ok(SelfManaged {
            names: service_names(service, &namespace),
            namespace,
            secret: secret.to_owned(),
            configuration: args.webhook_configuration.clone(),
            clock: process.cluster.clock(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_verdict_is_that_of_the_shared_rules() {
        let chain = json!({"metadata": {"name": "chain"}, "spec": {"resources": []}});
        let verdict = Rules.validate("ClusterSupplyChain", &chain, Operation::Create);
        assert_eq!(
            verdict.error.as_deref(),
            Some(
                "error validating clustersupplychain [chain]: at least one selector, selectorMatchExpression, selectorMatchField must be specified"
            )
        );
    }

    #[test]
    fn every_route_has_rules() {
        for route in ROUTES {
            let refused = Rules.validate(route.kind, &json!("no object"), Operation::Create);
            assert!(refused.error.is_some(), "{}", route.kind);
        }
    }
}
