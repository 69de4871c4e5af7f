//! Clients of the control plane: as administrator, as any user, as a service account.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::ControlPlane;
use super::launch::Launch;
use crate::pki::{Identity, file_name_of, text};

impl ControlPlane {
    /// A client of the administrator: the hands of a test. It belongs to the async runtime it is made in: make one per test.
    ///
    /// It asks again when the API server says that it cannot answer just now (429, 503, 504), as while it fills its cache of
    /// a kind.
    ///
    /// # Errors
    ///
    /// When a certificate cannot be read.
    pub fn client(&self) -> anyhow::Result<Client> {
        let mut config = self.config()?;
        config.default_retry = true;
        Ok(Client::try_from(config)?)
    }

    /// The administrator's client configuration, without retries: a test sees what the server said.
    ///
    /// # Errors
    ///
    /// When a certificate cannot be read.
    pub fn config(&self) -> anyhow::Result<Config> {
        self.launch.config(self.launch.admin())
    }

    /// A client of some user, by a client certificate. The user has no rights but those that RBAC gives to the name, the
    /// groups (at most two) and `system:authenticated`.
    ///
    /// # Errors
    ///
    /// When there are more than two groups, or a certificate cannot be made.
    pub fn client_as_user(&self, user: &str, groups: &[&str]) -> anyhow::Result<Client> {
        let identity = self.launch.pki().client(user, groups)?;
        Ok(Client::try_from(self.launch.config(&identity)?)?)
    }

    /// A kubeconfig file of some user, for child processes. Rights as for [`ControlPlane::client_as_user`].
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::client_as_user`].
    pub fn kubeconfig_as_user(&self, user: &str, groups: &[&str]) -> anyhow::Result<PathBuf> {
        let identity = self.launch.pki().client(user, groups)?;
        let path = self
            .folder()
            .join(format!("{}.kubeconfig", file_name_of(user, groups)));
        self.launch.write_kubeconfig(&path, user, &identity)?;
        Ok(path)
    }

    /// A token of a service account that is valid so long.
    ///
    /// # Errors
    ///
    /// When the service account does not exist.
    pub async fn token_of_service_account(
        &self,
        namespace: &str,
        name: &str,
        life: Duration,
    ) -> anyhow::Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client()?, namespace);
        let spec = TokenRequestSpec {
            expiration_seconds: Some(i64::try_from(life.as_secs())?),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest {
            spec: Some(spec),
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .context("TokenRequest")?;
        answer
            .status
            .and_then(|status| status.token)
            .context("the answer has no token")
    }

    /// A kubeconfig file with a token of a service account, and nothing else to get in with.
    ///
    /// # Errors
    ///
    /// When the service account does not exist.
    pub async fn kubeconfig_of_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<PathBuf> {
        let life = Duration::from_hours(4);
        let token = self.token_of_service_account(namespace, name, life).await?;
        let path = self.folder().join(format!("{namespace}-{name}.kubeconfig"));
        let credentials = serde_json::json!({"token": token});
        self.launch
            .write_kubeconfig_with(&path, name, &credentials)?;
        Ok(path)
    }

    /// A client of a service account, by a token that is valid for an hour.
    ///
    /// # Errors
    ///
    /// When the service account does not exist.
    pub async fn client_as_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<Client> {
        let life = Duration::from_hours(1);
        let token = self.token_of_service_account(namespace, name, life).await?;
        let mut config = self.launch.anonymous_config()?;
        config.auth_info.token = Some(token.into());
        Ok(Client::try_from(config)?)
    }
}

impl Launch {
    pub(super) fn config(&self, identity: &Identity) -> anyhow::Result<Config> {
        let mut config = self.anonymous_config()?;
        config.auth_info.client_certificate = Some(text(&identity.certificate));
        config.auth_info.client_key = Some(text(&identity.key));
        Ok(config)
    }

    fn anonymous_config(&self) -> anyhow::Result<Config> {
        let mut config = Config::new(self.server_url().parse()?);
        let authority = CertificateDer::from_pem_file(self.pki().authority())
            .context("the authority's certificate")?;
        config.root_cert = Some(vec![authority.to_vec()]);
        config.default_retry = false;
        Ok(config)
    }
}
