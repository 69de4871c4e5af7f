//! Admission of blueprints and templates: upstream's paths, verdicts and messages (spec 7), the same in every controller.

use std::sync::Arc;

use anyhow::Context as _;
use api_types::validation;
use serde_json::Value;

use super::{
    Operation, ROUTES, SelfManaged, ServingCertificate, Validate, Verdict, follow_directory, serve,
    service_names,
};
use crate::args::ServeArgs;
use crate::cluster::Cluster;
use crate::kubeconfig;
use crate::metrics::Metrics;
use crate::probes::Readiness;
use crate::shutdown::Tasks;

/// The rules that the engine, the webhook and the CLI share.
pub(super) struct Rules;

impl Validate for Rules {
    fn validate(&self, kind: &str, object: &Value, _: Operation) -> Verdict {
        let validation::Verdict { error, warnings } = validation::validate(kind, object);
        Verdict { error, warnings }
    }
}

/// Serves the webhooks if the flags ask for them.
///
/// # Errors
/// When the port is taken, or the flags do not fit together.
pub(crate) async fn admit(
    args: &ServeArgs,
    cluster: &Cluster,
    readiness: &Arc<Readiness>,
    metrics: &Arc<Metrics>,
    tasks: &Tasks,
) -> anyhow::Result<()> {
    let certificate = Arc::new(ServingCertificate::new());
    match (&args.cert_dir, &args.webhook_secret) {
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
            let managed = self_managed(args, secret, cluster).await?;
            managed.start(
                cluster.controller(),
                certificate.clone(),
                metrics.clone(),
                tasks,
            );
        }
        (None, None) => return Ok(()),
    }
    let loaded = certificate.clone();
    readiness.require("webhook certificate", move || loaded.is_loaded());
    metrics.webhook_serves(ROUTES.iter().map(|route| route.kind));
    let rules = Arc::new(Rules);
    serve(
        args.port,
        &ROUTES,
        rules,
        certificate,
        metrics.clone(),
        tasks,
    )
    .await
    .with_context(|| format!("port {} (--port)", args.port))?;
    Ok(())
}

async fn self_managed(
    args: &ServeArgs,
    secret: &str,
    cluster: &Cluster,
) -> anyhow::Result<SelfManaged> {
    let namespace = match args.own_namespace.clone() {
        Some(namespace) => namespace,
        None => kubeconfig::own_namespace().await,
    };
    let service = args
        .webhook_service
        .as_deref()
        .context("--webhook-secret needs --webhook-service")?;
    Ok(SelfManaged {
        names: service_names(service, &namespace),
        namespace,
        secret: secret.to_owned(),
        configuration: args.webhook_configuration.clone(),
        clock: cluster.clock(),
    })
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
