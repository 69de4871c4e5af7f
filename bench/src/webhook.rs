//! The webhooks of all conventions of the bench: one server, built with the SDK, as authors of conventions do.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use convention_webhook_sdk::{
    Applied, Convention, ConventionError, Image, Images, Limits, Server, Template,
};
use rcgen::CertifiedKey;
use serde_json::{Value, json};
use test_support::Scratch;
use tokio::task::JoinSet;

use crate::api::Api;

/// A server that answers as long as this value is there.
pub(crate) struct Webhook {
    _task: JoinSet<()>,
    _key_pair: Scratch,
    seen: Arc<Seen>,
    address: SocketAddr,
    /// Signed by itself: it is its own authority.
    certificate: rcgen::Certificate,
}

#[derive(Default)]
struct Seen {
    calls: AtomicU64,
    bom_bytes: AtomicU64,
}

/// Adds an annotation of this name.
struct Annotates {
    name: String,
    seen: Arc<Seen>,
}

impl Convention for Annotates {
    async fn apply(
        &self,
        template: &mut Template,
        images: &Images,
    ) -> Result<Applied, ConventionError> {
        let boms = images.iter().flat_map(Image::boms);
        let bytes: usize = boms.map(|bom| bom.raw.len()).sum();
        self.seen.bom_bytes.fetch_add(bytes as u64, Relaxed);
        self.seen.calls.fetch_add(1, Relaxed);
        let mut applied = Applied::nothing();
        let annotation = format!("bench.carto.run/{}", self.name);
        applied.record(
            "annotation",
            template.set_annotation(&annotation, "applied"),
        );
        Ok(applied)
    }
}

impl Webhook {
    /// Serves conventions of these names.
    pub(crate) async fn start(names: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let localhost = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed([localhost.ip().to_string()])?;
        let key_pair = Scratch::new("carto-webhook-")?;
        std::fs::write(key_pair.path().join("tls.crt"), cert.pem())?;
        std::fs::write(key_pair.path().join("tls.key"), signing_key.serialize_pem())?;
        let seen = Arc::<Seen>::default();
        // Who is asked with large bills of materials by a whole fleet has memory for it.
        let limits = Limits {
            all_bodies_bytes: 1 << 30,
            ..Limits::default()
        };
        let mut server = Server::builder()
            .address(localhost)
            .tls_directory(key_pair.path())
            .limits(limits);
        for name in names {
            let seen = seen.clone();
            server = server.convention(format!("/{name}"), Annotates { name, seen });
        }
        let bound = server.bind().await?;
        let address = bound.address();
        let mut task = JoinSet::new();
        task.spawn(bound.serve_until(std::future::pending()));
        Ok(Self {
            _task: task,
            _key_pair: key_pair,
            seen,
            address,
            certificate: cert,
        })
    }

    /// How often it was called so far.
    pub(crate) fn calls(&self) -> u64 {
        self.seen.calls.load(Relaxed)
    }

    /// The bytes of all bills of materials that it was told so far.
    pub(crate) fn bom_bytes(&self) -> u64 {
        self.seen.bom_bytes.load(Relaxed)
    }

    /// What a convention of this name says of it.
    pub(crate) fn client_config(&self, name: &str) -> Value {
        json!({
            "url": format!("https://{}/{name}", self.address),
            "caBundle": STANDARD.encode(self.certificate.pem()),
        })
    }

    /// Connections of the bare client.
    pub(crate) fn connect(&self) -> anyhow::Result<Api> {
        let mut config = kube::Config::new(format!("https://{}", self.address).parse()?);
        config.root_cert = Some(vec![self.certificate.der().to_vec()]);
        let client = kube::Client::try_from(config)?;
        Ok(Api { client })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_and_bills_of_materials_are_counted() {
        let names = ["one", "two"].map(str::to_owned).into_iter();
        let webhook = Webhook::start(names).await.unwrap();
        let client = webhook.connect().unwrap();
        let images = json!([{"image": "a", "boms": [{"name": "b", "raw": "e30="}], "config": {}}]);
        let asked = json!({"metadata": {"name": "a"}, "spec": {
            "template": {"metadata": {}, "spec": {"containers": []}}, "imageConfig": images,
        }});
        let answer = client.post("/two", &asked).await.unwrap();
        let annotations = &answer["status"]["template"]["metadata"]["annotations"];
        assert_eq!(*annotations, json!({"bench.carto.run/two": "applied"}));
        assert_eq!((webhook.calls(), webhook.bom_bytes()), (1, 2));
    }
}
