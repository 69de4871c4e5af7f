//! Which certificate authority is trusted for a convention that names a Certificate of cert-manager.
//!
//! CertificateRequests are watched; a Secret is read only where they are gone, and of what it holds only the authority is
//! kept, for as long as the Secret stays as it is.

use std::collections::HashMap;
use std::sync::Arc;

use controller_kit::cluster::{Call, Identity};
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

/// What Secrets said in one of their versions.
#[derive(Default)]
pub(crate) struct OfSecrets(Mutex<HashMap<ObjectKey, (u64, Authority)>>);

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
        self.dependencies.add(intent, Dependency::Certificate(key));
        let requests = self.requests(&certificate);
        let bundled = match bundle(&entry.name, &certificate, &requests, None) {
            Err(AuthorityError::NoneValid { .. }) => {
                let of_secret = self.authority_of_secret(&certificate).await?;
                bundle(&entry.name, &certificate, &requests, of_secret.as_deref())
            }
            bundled => bundled,
        };
        Ok(bundled.map(|pem| Some(pem.into())))
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
    ) -> Result<Authority, Fault> {
        let all = self.stores.secrets.all().into_iter();
        let mut of_certificate = all.filter(|(key, secret)| {
            *key.namespace == *certificate.namespace
                && secret.certificate.as_deref() == Some(&*certificate.name)
        });
        let Some((key, secret)) = of_certificate.next() else {
            return Ok(None);
        };
        let kept = self.authorities.0.lock().get(&key).cloned();
        if let Some((version, authority)) = kept
            && version == secret.version
        {
            return Ok(authority);
        }
        let authority = self.read_authority(&key).await?;
        let mut kept = self.authorities.0.lock();
        kept.retain(|key, _| self.stores.secrets.get(key).is_some());
        kept.insert(key, (secret.version, authority.clone()));
        Ok(authority)
    }

    async fn read_authority(&self, key: &ObjectKey) -> Result<Authority, Fault> {
        let call = Call::get(secrets::SECRETS.path(Some(&key.namespace), &key.name));
        let answer = match asked(self.cluster.send(Identity::Controller, call).await, key)? {
            Asked::Answered(answer) => answer,
            Asked::Missing => return Ok(None),
            Asked::Refused(error) => {
                warn!(secret = %key, error = %error, "the authority of a convention cannot be read");
                return Ok(None);
            }
        };
        let secret: Option<Secret> = serde_json::from_value(answer).ok();
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        let pem = data.into_iter().find(|(name, _)| name == AUTHORITY);
        Ok(pem.map(|(_, ByteString(pem))| pem.into()))
    }
}
