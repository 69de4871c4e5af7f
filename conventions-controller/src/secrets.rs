//! Credentials for images: Secrets are read when they are needed and kept by nobody.

use controller_kit::cluster::{Call, Identity};
use controller_kit::reflect::Watched;
use controller_kit::stamped::ObjectKey;
use conventions::condition::IntentReason;
use conventions::credentials::{Keyring, SecretKind};
use conventions::outcome::Failure;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use tracing::warn;

use crate::controller::IntentController;
use crate::fault::{Asked, Stop, asked};

/// The kind.
pub(crate) const SECRETS: Watched = Watched {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
};

impl IntentController {
    /// What these Secrets of a namespace hold, in their order. One that is missing or broken is
    /// left out, and the log says so.
    pub(crate) async fn keyring(
        &self,
        namespace: &str,
        secrets: &[(String, Option<u64>)],
    ) -> Result<Keyring, Stop> {
        tell_of_missing(namespace, secrets);
        let mut keyring = Keyring::default();
        let present = secrets.iter().filter(|(_, version)| version.is_some());
        for (name, _) in present {
            let key = ObjectKey::new(namespace, name);
            let call = Call::get(SECRETS.path(Some(namespace), name));
            match asked(self.cluster.send(Identity::Controller, call).await, &key)? {
                Asked::Answered(secret) => add(&mut keyring, &key, secret),
                Asked::Missing => warn!(secret = %key, "there is no such pull secret"),
                Asked::Refused(error) => {
                    return Err(Failure::Forbidden {
                        reason: IntentReason::ImageResolutionFailed,
                        cause: error.to_string(),
                    }
                    .into());
                }
            }
        }
        Ok(keyring)
    }
}

/// Names of missing Secrets in one line of the log: a tenant may name as many as etcd takes.
const MOST_TOLD: usize = 10;

/// Tells of all Secrets that are missing in one line.
fn tell_of_missing(namespace: &str, secrets: &[(String, Option<u64>)]) {
    let missing = || secrets.iter().filter(|(_, version)| version.is_none());
    let count = missing().count();
    if count > 0 {
        let names = missing().map(|(name, _)| name.as_str()).take(MOST_TOLD);
        let names = names.collect::<Vec<_>>().join(", ");
        warn!(namespace, count, secrets = %names, "there are no such pull secrets");
    }
}

fn add(keyring: &mut Keyring, key: &ObjectKey, secret: Value) {
    let Ok(secret) = serde_json::from_value::<Secret>(secret) else {
        return warn!(secret = %key, "this pull secret cannot be read");
    };
    let kind = secret.type_.as_deref().and_then(SecretKind::of_type);
    let Some((kind, field)) = kind else {
        return warn!(secret = %key, "this Secret is of no type that has credentials for images");
    };
    let data = secret.data.unwrap_or_default();
    let Some(config) = data.get(field) else {
        return warn!(secret = %key, field, "this pull secret has no such field");
    };
    for fault in keyring.add(kind, &config.0) {
        warn!(secret = %key, fault = %fault, "a part of this pull secret is left out");
    }
}
