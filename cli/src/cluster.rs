//! Connecting to a cluster, and the kinds that are asked for.

use kube::api::{Api, ApiResource, DynamicObject};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::args::Connection;
use crate::target::TargetKind;
use crate::trouble;
use realizer::Family;

/// A cluster, and the namespace to look in.
#[derive(Clone)]
pub struct Cluster {
    /// Speaks with the API server as the user.
    pub client: Client,
    /// Where owners are looked for.
    pub namespace: String,
    /// Address of the API server, for messages.
    pub address: String,
}

impl Cluster {
    /// Connects as the kubeconfig says.
    ///
    /// # Errors
    ///
    /// When there is no kubeconfig, or it cannot be used; the text says what to do.
    pub async fn connect(connection: &Connection) -> anyhow::Result<Self> {
        let config = configuration(connection).await?;
        let namespace = connection
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let address = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| trouble::kubeconfig(&error))?;
        Ok(Self {
            client,
            namespace,
            address,
        })
    }

    /// The objects of a kind in the namespace.
    pub fn owners(&self, kind: TargetKind) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &resource(kind.kind(), kind.plural()),
        )
    }

    /// The blueprints of a family.
    pub fn blueprints(&self, family: Family) -> Api<DynamicObject> {
        Api::all_with(
            self.client.clone(),
            &resource(family.blueprint_kind(), family.blueprint_plural()),
        )
    }
}

async fn configuration(connection: &Connection) -> anyhow::Result<Config> {
    let options = KubeConfigOptions {
        context: connection.context.clone(),
        ..KubeConfigOptions::default()
    };
    if let Some(file) = &connection.kubeconfig {
        let kubeconfig =
            Kubeconfig::read_from(file).map_err(|error| trouble::kubeconfig(&error))?;
        return Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| trouble::kubeconfig(&error));
    }
    match Config::from_kubeconfig(&options).await {
        Ok(config) => Ok(config),
        // In a pod there is no kubeconfig. When that fails too, the user is at a desk, and the first error tells more.
        Err(error) if connection.context.is_none() => {
            Config::incluster().map_err(|_| trouble::kubeconfig(&error))
        }
        Err(error) => Err(trouble::kubeconfig(&error)),
    }
}

fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: api_types::GROUP.to_owned(),
        version: api_types::VERSION.to_owned(),
        api_version: api_types::API_VERSION.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
