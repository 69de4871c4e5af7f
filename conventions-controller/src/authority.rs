//! Which certificate authority is trusted for a convention that names a Certificate of
//! cert-manager.
//!
//! CertificateRequests are watched; a Secret is read only where they are gone, and of what it holds
//! only the authority is kept, for as long as nothing changes there.

use std::collections::HashMap;
use std::sync::Arc;

use controller_kit::cluster::{Call, Identity, RequestError};
use controller_kit::reflect::Entry;
use controller_kit::stamped::ObjectKey;
use conventions::CertificateReference;
use conventions::authority::{AuthorityError, CertificateRequest, bundle, reference};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use parking_lot::Mutex;
use serde_json::Value;
use tracing::warn;

use crate::controller::{Dependency, IntentController};
use crate::entries::ConventionEntry;
use crate::fault::{Asked, Fault, asked};
use crate::secrets;

/// Where a Secret with a certificate has the authority that signed it.
const AUTHORITY: &str = "ca.crt";

/// A CertificateRequest, as far as it counts.
pub(crate) struct RequestEntry(pub(crate) CertificateRequest);

impl Entry for RequestEntry {
    fn build(object: Value) -> Self {
        Self(CertificateRequest::read(&object))
    }
}

/// The authorities in PEM that are trusted instead of what the spec says; nothing if it says all.
pub(crate) type Authority = Option<Arc<[u8]>>;

/// What was found out about Certificates. It is dropped as soon as anything changes that it was
/// found in.
#[derive(Default)]
pub(crate) struct Authorities(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_certificate: HashMap<ObjectKey, Arc<[u8]>>,
    /// How often anything changed. What was found out before may be out of date.
    changes: u64,
}

impl Authorities {
    /// Something changed that tells who signed for this Certificate.
    pub(crate) fn changed(&self, certificate: &ObjectKey) {
        let mut known = self.0.lock();
        known.changes += 1;
        known.by_certificate.remove(certificate);
    }

    fn get(&self, certificate: &ObjectKey) -> (Authority, u64) {
        let known = self.0.lock();
        let authority = known.by_certificate.get(certificate).cloned();
        (authority, known.changes)
    }

    /// Keeps what was found out when so much had changed.
    fn keep(&self, certificate: ObjectKey, authority: Arc<[u8]>, changes: u64) {
        let mut known = self.0.lock();
        if known.changes == changes {
            known.by_certificate.insert(certificate, authority);
        }
    }
}

impl IntentController {
    /// Whom a convention trusts. The PodIntent depends on what that was found in.
    ///
    /// # Errors
    /// Why it is not known; whoever looks after the convention or its Certificate must mend it.
    pub(crate) async fn authority(
        &self,
        intent: &ObjectKey,
        entry: &ConventionEntry,
    ) -> Result<Result<Authority, AuthorityError>, Fault> {
        let certificate = match reference(&entry.convention) {
            Ok(Some(certificate)) => certificate,
            Ok(None) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(error)),
        };
        let key = ObjectKey::new(&certificate.namespace, &certificate.name);
        self.dependencies
            .add(intent, Dependency::Certificate(key.clone()));
        let (kept, changes) = self.authorities.get(&key);
        if kept.is_some() {
            return Ok(Ok(kept));
        }
        let requests = self.requests(&certificate);
        let bundled = match bundle(&entry.name, &certificate, &requests, None) {
            Err(AuthorityError::NoneValid { .. }) => {
                match self.authority_of_secret(&certificate).await? {
                    Ok(pem) => bundle(&entry.name, &certificate, &requests, pem.as_deref()),
                    Err(refused) => Err(AuthorityError::Forbidden {
                        namespace: certificate.namespace.clone(),
                        name: certificate.name.clone(),
                        convention: entry.name.to_string(),
                        cause: refused.to_string(),
                    }),
                }
            }
            bundled => bundled,
        };
        Ok(bundled.map(|pem| {
            let pem: Arc<[u8]> = pem.into();
            self.authorities.keep(key, pem.clone(), changes);
            Some(pem)
        }))
    }

    fn requests(&self, certificate: &CertificateReference) -> Vec<CertificateRequest> {
        let all = self.stores.requests.all().into_iter();
        let own = all.filter(|(key, request)| {
            *key.namespace == *certificate.namespace && request.0.certificate == certificate.name
        });
        own.map(|(_, request)| request.0.clone()).collect()
    }

    /// What the Secret that cert-manager made for a Certificate has as its authority.
    async fn authority_of_secret(
        &self,
        certificate: &CertificateReference,
    ) -> Result<Result<Authority, RequestError>, Fault> {
        let all = self.stores.secrets.all().into_iter();
        let of_certificate = all.filter(|(key, secret)| {
            *key.namespace == *certificate.namespace
                && secret.certificate.as_deref() == Some(&*certificate.name)
        });
        // Of several always the same one.
        match of_certificate.map(|(key, _)| key).min() {
            Some(key) => self.read_authority(&key).await,
            None => Ok(Ok(None)),
        }
    }

    async fn read_authority(
        &self,
        key: &ObjectKey,
    ) -> Result<Result<Authority, RequestError>, Fault> {
        let call = Call::get(secrets::SECRETS.path(Some(&key.namespace), &key.name));
        let answer = match asked(self.cluster.send(Identity::Controller, call).await, key)? {
            Asked::Answered(answer) => answer,
            Asked::Missing => return Ok(Ok(None)),
            Asked::Refused(error) => {
                warn!(secret = %key, error = %error, "the authority of a convention cannot be read");
                return Ok(Err(error));
            }
        };
        let secret: Option<Secret> = serde_json::from_value(answer).ok();
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        let pem = data.into_iter().find(|(name, _)| name == AUTHORITY);
        Ok(Ok(pem.map(|(_, ByteString(pem))| pem.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_out_before_a_change_is_not_kept() {
        let (authorities, key) = (Authorities::default(), ObjectKey::new("a", "b"));
        let pem: Arc<[u8]> = Arc::from(&b"pem"[..]);
        let (none, before) = authorities.get(&key);
        assert_eq!(none, None);
        authorities.keep(key.clone(), pem.clone(), before);
        assert_eq!(authorities.get(&key).0, Some(pem.clone()));
        authorities.changed(&key);
        assert_eq!(authorities.get(&key).0, None);
        authorities.keep(key.clone(), pem, before);
        assert_eq!(authorities.get(&key).0, None, "it may be out of date");
    }
}
