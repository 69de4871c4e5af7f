//! Who is called, and which authorities are trusted there.

use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};
use rustls::pki_types::ServerName;
use url::Url;

use crate::text::told;
use crate::trust::Trust;

/// A webhook as one convention names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    url: Url,
    is_service: bool,
    trust: Trust,
}

/// Why a webhook cannot be called at all. Whoever wrote the convention must correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Neither a service nor a URL.
    #[error("webhook configuration must have either service or URL")]
    Nobody,
    /// No URL that can be called.
    #[error("the URL {url:?} of the webhook cannot be called: {problem}")]
    Url {
        /// What was written, without credentials.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No service that can be called.
    #[error("the service of the webhook cannot be called: {problem}")]
    Service {
        /// What is wrong with it.
        problem: String,
    },
    /// The authorities hold no certificate.
    #[error(
        "the certificate authority of the webhook holds no certificate in PEM that can be read: \
         give a \"BEGIN CERTIFICATE\" block, encoded in base64, in clientConfig.caBundle, \
         or name a Certificate of cert-manager"
    )]
    Authority,
}

impl Target {
    /// The webhook of this configuration. Authorities that are given replace those of the configuration,
    /// and either replace those of the system.
    ///
    /// ```
    /// use convention_client::Target;
    /// use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};
    ///
    /// let service = ServiceReference {
    ///     name: "hooks".to_owned(),
    ///     namespace: "team".to_owned(),
    ///     path: Some("labels".to_owned()),
    ///     port: None,
    /// };
    /// let config = WebhookClientConfig { service: Some(service), ..Default::default() };
    /// let target = Target::of(&config, None)?;
    /// assert_eq!(target.to_string(), "https://hooks.team.svc:443/labels");
    /// # Ok::<(), convention_client::TargetError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong with the configuration; its author must correct it.
    pub fn of(config: &WebhookClientConfig, ca_pem: Option<&[u8]>) -> Result<Self, TargetError> {
        let url = match (&config.service, &config.url) {
            (Some(service), _) => of_service(service)?,
            (None, Some(url)) => of_url(url)?,
            (None, None) => return Err(TargetError::Nobody),
        };
        let configured = config.ca_bundle.as_ref().map(|bundle| &bundle.0[..]);
        let pem = ca_pem.or_else(|| configured.filter(|pem| !pem.is_empty()));
        let trust = match pem {
            Some(pem) => Trust::own(pem).ok_or(TargetError::Authority)?,
            None => Trust::System,
        };
        Ok(Self {
            url,
            is_service: config.service.is_some(),
            trust,
        })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Whether it is in the cluster, where no proxy leads.
    pub(crate) fn is_service(&self) -> bool {
        self.is_service
    }

    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }
}

/// The URL that is called, which has no credentials.
impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(&self.url))
    }
}

/// A URL as messages show it: its port always, no credentials, no query.
pub(crate) fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    told(&format!("{}://{host}:{port}{}", url.scheme(), url.path()))
}

fn of_service(service: &ServiceReference) -> Result<Url, TargetError> {
    let wrong = |problem: String| TargetError::Service { problem };
    for (field, name) in [("name", &service.name), ("namespace", &service.namespace)] {
        let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        if name.is_empty() || !name.chars().all(is_label) {
            return Err(wrong(format!("its {field} is {:?}", told(name))));
        }
    }
    let port = match service.port.unwrap_or_default() {
        0 => 443,
        port => u16::try_from(port).map_err(|_| wrong(format!("its port is {port}")))?,
    };
    let host = format!("{}.{}.svc", service.name, service.namespace);
    let url = format!("https://{host}:{port}/");
    let mut url = Url::parse(&url).map_err(|error| wrong(told(&error.to_string())))?;
    if !has_name(&url) {
        return Err(wrong(format!("no certificate can be for {host:?}")));
    }
    let path = service.path.as_deref().unwrap_or_default();
    // The path is no part of a URL yet: what looks as an escape in it is none.
    url.set_path(&cleaned(&path.replace('%', "%25")));
    Ok(url)
}

fn of_url(text: &str) -> Result<Url, TargetError> {
    let wrong = |shown: String, problem: &str| TargetError::Url {
        url: shown,
        problem: problem.to_owned(),
    };
    // What cannot be read may hold credentials, wherever they are: none of it is shown.
    let parsed = Url::parse(text);
    let mut url = parsed.map_err(|error| wrong("…".to_owned(), &told(&error.to_string())))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(wrong(
            format!("{}:…", told(url.scheme())),
            "it is not https",
        ));
    }
    bare(&mut url);
    url.set_query(None);
    let path = cleaned(url.path());
    url.set_path(&path);
    if url.as_str().parse::<http::Uri>().is_err() {
        return Err(wrong(shown(&url), "it has characters that no request has"));
    }
    if url.scheme() == "https" && !has_name(&url) {
        return Err(wrong(shown(&url), "no certificate can be for its host"));
    }
    Ok(url)
}

/// Takes away what no request has.
pub(crate) fn bare(url: &mut Url) {
    // Both fail for URLs without a host only, which those of http always have.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
}

/// Whether a certificate can have the host as its name.
fn has_name(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    ServerName::try_from(host.trim_matches(['[', ']'])).is_ok()
}

/// A path below the root, without empty segments and without an end in a slash, as Go cleans it.
fn cleaned(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests;
