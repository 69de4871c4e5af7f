//! Objects written straight into etcd, past all validation: what an older or foreign controller may have left there.

use anyhow::Context;
use k8s_openapi::ByteString;
use kube::{Client, Config};
use serde_json::{Value, json};

use super::ControlPlane;

impl ControlPlane {
    /// Writes bytes under an etcd key. For a custom resource the key is `/registry/GROUP/PLURAL/NAMESPACE/NAME` and the
    /// value its JSON in the storage version.
    ///
    /// The API server's watch cache decodes what it reads: an object it cannot decode breaks lists of that kind.
    ///
    /// # Errors
    ///
    /// When etcd does not answer.
    pub async fn put_raw(&self, key: &str, value: &[u8]) -> anyhow::Result<()> {
        self.etcd(
            "/v3/kv/put",
            json!({"key": base64(key.as_bytes()), "value": base64(value)}),
        )
        .await?;
        Ok(())
    }

    /// Reads the bytes under an etcd key.
    ///
    /// # Errors
    ///
    /// When etcd does not answer.
    pub async fn get_raw(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let mut answer = self
            .etcd("/v3/kv/range", json!({"key": base64(key.as_bytes())}))
            .await?;
        let found = answer.pointer_mut("/kvs/0/value").map(Value::take);
        let bytes: Option<ByteString> = found
            .map(serde_json::from_value)
            .transpose()
            .context("value of etcd")?;
        Ok(bytes.map(|bytes| bytes.0))
    }

    /// Asks etcd's JSON gateway, which wants all bytes in base64.
    pub(super) async fn etcd(&self, path: &str, request: Value) -> anyhow::Result<Value> {
        let client = Client::try_from(Config::new(self.launch.etcd_url().parse()?))?;
        let request = http::Request::post(path).body(serde_json::to_vec(&request)?)?;
        client
            .request(request)
            .await
            .with_context(|| format!("etcd {path}"))
    }
}

/// Bytes as etcd's JSON gateway takes and gives them.
pub(super) fn base64(bytes: &[u8]) -> ByteString {
    ByteString(bytes.to_vec())
}
