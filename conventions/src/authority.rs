//! Which certificate authority is trusted where a convention names a Certificate of cert-manager.
//!
//! Not the Certificate is read but the CertificateRequests made for it: each says which authority signed
//! it. While an authority is replaced, servers have certificates of the old one and of the new one, so
//! those of the newest three requests are trusted.

use api_types::ConditionType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::INJECT_CA_FROM;
use crate::convention::{CertificateReference, ClusterPodConvention};

/// Annotation of a CertificateRequest: the Certificate that it was made for.
pub const CERTIFICATE_NAME: &str = "cert-manager.io/certificate-name";
/// Of how many requests the authorities are trusted.
const NEWEST: usize = 3;
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// A CertificateRequest of cert-manager, as far as it is about the authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Its name.
    pub name: String,
    /// The Certificate that it was made for, by [`CERTIFICATE_NAME`].
    pub certificate: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// `status.ca`: certificates in PEM, out of base64.
    pub ca: Vec<u8>,
    /// Whether it was signed.
    pub ready: bool,
}

/// Why it is not known which authority to trust.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The annotation names no namespace.
    #[error("invalid certificate name; needs a namespace/ prefix")]
    Prefix,
    /// No request was signed that says by whom, and no Secret says it either.
    #[error(
        r#"unable to find valid "CertificateRequests" for certificate "{namespace}/{name}" configured in convention "{convention}""#
    )]
    NoneValid {
        /// Namespace of the Certificate.
        namespace: String,
        /// Name of the Certificate.
        name: String,
        /// The convention that names it.
        convention: String,
    },
    /// The Secret that says it may not be read.
    #[error(
        r#"no "CertificateRequests" for certificate "{namespace}/{name}" configured in convention "{convention}", and its Secret may not be read: {cause}"#
    )]
    Forbidden {
        /// Namespace of the Certificate.
        namespace: String,
        /// Name of the Certificate.
        name: String,
        /// The convention that names it.
        convention: String,
        /// What the API server said.
        cause: String,
    },
    /// The requests cannot be read.
    #[error(
        "failed to fetch associated `CertificateRequests` using the certificate namespace \
         \"{namespace}\": {cause} configured on the ClusterPodConvention config"
    )]
    Fetch {
        /// Namespace of the Certificate.
        namespace: String,
        /// Why.
        cause: String,
    },
}

/// The Certificate whose authority a convention trusts: of its field, else of its annotation.
///
/// # Errors
///
/// If the annotation is none; whoever wrote the convention must correct it.
pub fn reference(
    convention: &ClusterPodConvention,
) -> Result<Option<CertificateReference>, AuthorityError> {
    let webhook = convention.spec.webhook.as_ref();
    if let Some(certificate) = webhook.and_then(|webhook| webhook.certificate.as_ref()) {
        return Ok(Some(certificate.clone()));
    }
    let annotations = convention.metadata.annotations.as_ref();
    let Some(annotation) = annotations.and_then(|all| all.get(INJECT_CA_FROM)) else {
        return Ok(None);
    };
    match annotation.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() => Ok(Some(CertificateReference {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })),
        _ => Err(AuthorityError::Prefix),
    }
}

/// The authorities to trust, in PEM: of the newest requests for the Certificate, among all requests of its
/// namespace; if there are none any more, those that its Secret has in `ca.crt`.
///
/// What is no certificate in a request is left out. Each certificate is there once, so the same
/// authority gives the same text after each renewal.
///
/// # Errors
///
/// If neither says anything. It may be there in a moment.
pub fn bundle(
    convention: &str,
    certificate: &CertificateReference,
    requests: &[CertificateRequest],
    secret_ca: Option<&[u8]>,
) -> Result<Vec<u8>, AuthorityError> {
    let mut usable: Vec<(&CertificateRequest, Vec<Vec<u8>>)> = requests
        .iter()
        .filter(|request| request.ready && request.certificate == certificate.name)
        .map(|request| (request, certificates(&request.ca)))
        .filter(|(_, certificates)| !certificates.is_empty())
        .collect();
    // Made in the same second, the greater name counts as newer: any order will do that is always the same.
    usable.sort_by_key(|(request, _)| std::cmp::Reverse((request.created, &request.name)));
    let mut trusted: Vec<Vec<u8>> = Vec::new();
    let newest = usable.into_iter().take(NEWEST);
    let mut all: Vec<Vec<u8>> = newest.flat_map(|(_, certificates)| certificates).collect();
    if all.is_empty() {
        all = certificates(secret_ca.unwrap_or_default());
    }
    for certificate in all {
        if !trusted.contains(&certificate) {
            trusted.push(certificate);
        }
    }
    if trusted.is_empty() {
        return Err(AuthorityError::NoneValid {
            namespace: certificate.namespace.clone(),
            name: certificate.name.clone(),
            convention: convention.to_owned(),
        });
    }
    Ok(trusted.iter().map(|it| pem(it)).collect::<String>().into())
}

impl CertificateRequest {
    /// A CertificateRequest as the API server has it. What is missing or of another type is empty: others
    /// write these objects.
    ///
    /// ```
    /// use conventions::authority::CertificateRequest;
    /// use serde_json::json;
    ///
    /// let request = CertificateRequest::read(&json!({
    ///     "metadata": {"name": "web-1", "creationTimestamp": "2026-01-01T00:00:00Z",
    ///         "annotations": {"cert-manager.io/certificate-name": "web"}},
    ///     "status": {"ca": "Y2E=", "conditions": [{"type": "Ready", "status": "True"}]},
    /// }));
    /// assert!(request.ready && request.certificate == "web" && request.ca == b"ca");
    /// ```
    pub fn read(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let annotations = &object["metadata"]["annotations"];
        let conditions = object["status"]["conditions"].as_array();
        let is_ready =
            |it: &Value| it["type"] == ConditionType::Ready.as_str() && it["status"] == "True";
        let ca = text("/status/ca").unwrap_or_default();
        Self {
            name: text("/metadata/name").unwrap_or_default().to_owned(),
            certificate: annotations[CERTIFICATE_NAME]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            created: text("/metadata/creationTimestamp").and_then(|time| time.parse().ok()),
            ca: STANDARD.decode(ca).unwrap_or_default(),
            ready: conditions.is_some_and(|all| all.iter().any(is_ready)),
        }
    }
}

/// The certificates of a bundle in PEM, as bytes. What is none is passed over, as Go does: other blocks,
/// text between them, blocks that are cut off or are not base64.
///
/// ```
/// use conventions::authority::certificates;
///
/// let joined = b"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE----------BEGIN CERTIFICATE-----\nYg==\n-----END CERTIFICATE-----";
/// assert_eq!(certificates(joined), [b"a", b"b"]);
/// ```
pub fn certificates(pem: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(pem);
    let blocks = text.split(BEGIN).skip(1);
    let contents = blocks.filter_map(|block| Some(block.split_once(END)?.0));
    let decoded = contents.filter_map(|content| {
        let content: String = content.split_ascii_whitespace().collect();
        STANDARD.decode(content).ok()
    });
    decoded.filter(|bytes| !bytes.is_empty()).collect()
}

/// A certificate in PEM, with a line break at its end.
fn pem(certificate: &[u8]) -> String {
    let content = STANDARD.encode(certificate);
    let lines = content.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let lines: String = lines.flat_map(|line| [line, "\n".into()]).collect();
    format!("{BEGIN}\n{lines}{END}\n")
}

#[cfg(test)]
mod tests;
