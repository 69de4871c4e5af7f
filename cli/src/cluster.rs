//! Connecting to a cluster, and the kinds that are asked for.

use std::ffi::OsString;
use std::path::PathBuf;

use api_types::artifact::{ARTIFACT, ARTIFACTS};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
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
    /// By which others are spoken for.
    pub(crate) config: Config,
}

impl Cluster {
    /// Connects as the kubeconfig says.
    ///
    /// # Errors
    ///
    /// When there is no kubeconfig, or it cannot be used; the text says what to do.
    pub async fn connect(connection: &Connection) -> anyhow::Result<Self> {
        let source = Source::of(connection, variable());
        let config = source.configuration(connection).await?;
        let namespace = connection
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let address = config.cluster_url.to_string();
        let client = Client::try_from(config.clone())
            .map_err(|error| trouble::kubeconfig(&source.name(), &error))?;
        Ok(Self {
            client,
            namespace,
            address,
            config,
        })
    }

    /// The objects of a kind in the namespace.
    pub fn owners(&self, kind: TargetKind) -> Api<DynamicObject> {
        let resource = of_ours(kind.kind(), kind.plural());
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// The Artifacts in the namespace.
    pub fn artifacts(&self) -> Api<DynamicObject> {
        let resource = of_ours(ARTIFACT, ARTIFACTS);
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// The blueprints of a family.
    pub fn blueprints(&self, family: Family) -> Api<DynamicObject> {
        let resource = of_ours(family.blueprint_kind(), family.blueprint_plural());
        Api::all_with(self.client.clone(), &resource)
    }
}

/// Where the kubeconfig comes from.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// The file of the flag.
    Flag(PathBuf),
    /// What the variable KUBECONFIG names: one file, or several that are merged.
    Variable(OsString),
    /// `~/.kube/config`, else the pod's service account.
    Usual,
}

impl Source {
    fn of(connection: &Connection, variable: Option<OsString>) -> Self {
        match (&connection.kubeconfig, variable) {
            (Some(file), _) => Self::Flag(file.clone()),
            (None, Some(files)) if !files.is_empty() => Self::Variable(files),
            (None, _) => Self::Usual,
        }
    }

    /// For messages: kube names a file that it cannot read, but none that lacks something.
    fn name(&self) -> String {
        match self {
            Self::Flag(file) => file.display().to_string(),
            Self::Variable(files) => format!("KUBECONFIG={}", files.display()),
            Self::Usual => "~/.kube/config".to_owned(),
        }
    }

    async fn configuration(&self, connection: &Connection) -> anyhow::Result<Config> {
        let options = KubeConfigOptions {
            context: connection.context.clone(),
            ..KubeConfigOptions::default()
        };
        let read = match self {
            Self::Flag(file) => match Kubeconfig::read_from(file) {
                Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
                Err(error) => Err(error),
            },
            Self::Variable(_) | Self::Usual => Config::from_kubeconfig(&options).await,
        };
        read.or_else(|error| {
            let unusable = || trouble::kubeconfig(&self.name(), &error);
            // In a pod there is no kubeconfig. When that fails too, the user is at a desk, and the first error tells more. What
            // the user named is binding: the pod may be in another cluster, and is somebody else.
            if *self == Self::Usual && connection.context.is_none() {
                return Config::incluster().map_err(|_| unusable());
            }
            Err(unusable())
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "KUBECONFIG may name several files, and stands behind the flag: kube reads it, and messages name it"
)]
fn variable() -> Option<OsString> {
    std::env::var_os("KUBECONFIG")
}

pub(crate) fn of_ours(kind: &str, plural: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk(api_types::GROUP, api_types::VERSION, kind);
    ApiResource::from_gvk_with_plural(&kind, plural)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_names_goes_before_what_is_usual() {
        let flag = Connection {
            kubeconfig: Some("/flag".into()),
            ..Connection::default()
        };
        let plain = Connection::default();
        let variable = || Some(OsString::from("/a:/b"));
        assert_eq!(Source::of(&flag, variable()).name(), "/flag");
        assert_eq!(Source::of(&plain, variable()).name(), "KUBECONFIG=/a:/b");
        assert_eq!(Source::of(&plain, Some(OsString::new())), Source::Usual);
        assert_eq!(Source::of(&plain, None), Source::Usual);
    }
}
