//! `carto convention render`: a PodIntent through webhooks of conventions, without a cluster.
//!
//! What the controller does between an intent and its status is done here with the same client, the
//! same chain and the same checks, but for images: what is known of them is given as a file.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use convention_client::{Clients, DEFAULT_BUDGET, RequestBody, Settings, Target};
use convention_protocol::{ImageConfig, PodTemplate};
use conventions::chain::Chain;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The longest file that is read: a template is at most 1.5 MiB, images may have bills of materials.
const MOST_BYTES: u64 = 256 << 20;

/// Why nothing was rendered.
#[derive(Debug, Error)]
pub enum RenderError {
    /// A file cannot be read.
    #[error("read {}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file has something else.
    #[error("{} is no {wanted}: {problem}", .path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What it is to be.
        wanted: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A server cannot be called, or has not answered as it should.
    #[error("convention {name}: {problem}")]
    Convention {
        /// Its name, or the URL of its server.
        name: String,
        /// What went wrong.
        problem: String,
    },
}

/// The server of a convention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The name in receipts.
    pub name: String,
    /// Where it is called.
    pub url: String,
}

/// `NAME=URL`, or a URL, whose convention is then called after its host.
impl std::str::FromStr for Webhook {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) if !name.contains("://") => (Some(name), url),
            _ => (None, text),
        };
        let host = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"));
        let host = host.ok_or("write a URL, such as https://localhost:9000/, or NAME=URL")?;
        let host = host.split(['/', ':', '?']).next().unwrap_or_default();
        let name = name.unwrap_or(host);
        if name.is_empty() || url.is_empty() {
            return Err("write a URL, such as https://localhost:9000/, or NAME=URL".to_owned());
        }
        Ok(Self {
            name: name.to_owned(),
            url: url.to_owned(),
        })
    }
}

/// What came of a PodIntent.
#[derive(Debug)]
pub struct Rendered {
    /// The template as its author wrote it.
    pub before: PodTemplate,
    /// The template after all conventions.
    pub after: PodTemplate,
}

#[derive(Deserialize)]
struct Intent {
    #[serde(default)]
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Spec {
    template: PodTemplate,
}

/// Sends a PodIntent through conventions, in the order given. `images` is a list as `imageConfig` of
/// a request has it; those that the template has at the time are sent. `authority` replaces the
/// authorities that the system trusts.
///
/// # Errors
///
/// A file that is none of its kind, which its author must correct; a server that cannot be called, or
/// whose answer the controller would refuse.
pub async fn render(
    intent: &Path,
    images: Option<&Path>,
    authority: Option<&Path>,
    webhooks: &[Webhook],
) -> Result<Rendered, RenderError> {
    let Intent { metadata, spec } = document(intent, "PodIntent")?;
    let images: Vec<ImageConfig> = match images {
        Some(path) => document(path, "list of images")?,
        None => Vec::new(),
    };
    let authority = authority.map(read).transpose()?;
    let before = spec.template.clone();
    let mut chain = Chain::start(spec.template);
    let settings = Settings {
        user_agent: format!("carto/{}", env!("CARGO_PKG_VERSION")),
        ..Settings::default()
    };
    let clients = Clients::new(settings).map_err(|error| wrong("all", &error))?;
    for webhook in webhooks {
        let known = known(&chain, &images);
        let context = chain.request(&metadata.name, &webhook.name, known);
        let body = RequestBody::new(&context, &std::collections::BTreeMap::new())
            .map_err(|error| wrong(&webhook.name, &error))?;
        let config = WebhookClientConfig {
            url: Some(webhook.url.clone()),
            ..WebhookClientConfig::default()
        };
        let target = Target::of(&config, authority.as_deref())
            .map_err(|error| wrong(&webhook.name, &error))?;
        let answer = clients.call(&target, DEFAULT_BUDGET, &body).await;
        let answer = answer.map_err(|error| wrong(&webhook.name, &error))?;
        chain
            .record(&webhook.name, answer)
            .map_err(|fault| wrong(&webhook.name, &fault))?;
    }
    let after = chain.finish().map_err(|fault| wrong("all", &fault))?;
    Ok(Rendered { before, after })
}

/// What is known of the images that the template has now.
fn known(chain: &Chain, images: &[ImageConfig]) -> Vec<ImageConfig> {
    let used = chain.template().images();
    let known = images
        .iter()
        .filter(|image| used.contains(image.image.as_str()));
    known.cloned().collect()
}

fn wrong(name: &str, problem: &impl std::fmt::Display) -> RenderError {
    RenderError::Convention {
        name: name.to_owned(),
        problem: problem.to_string(),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, RenderError> {
    let read = |path: &Path| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = fs::File::open(path)?;
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("it has more than 256 MiB"));
        }
        Ok(bytes)
    };
    read(path).map_err(|source| RenderError::Read {
        path: path.to_owned(),
        source,
    })
}

fn document<T: DeserializeOwned>(path: &Path, wanted: &'static str) -> Result<T, RenderError> {
    let bytes = read(path)?;
    let content = |problem: String| RenderError::Content {
        path: path.to_owned(),
        wanted,
        problem,
    };
    let text = std::str::from_utf8(&bytes).map_err(|error| content(error.to_string()))?;
    // By way of JSON: the types of the protocol are read as it is read there.
    let value: serde_json::Value =
        serde_saphyr::from_str(text).map_err(|error| content(error.to_string()))?;
    serde_json::from_value(value).map_err(|error| content(error.to_string()))
}

/// Writes the template as YAML, or what changed.
///
/// # Errors
///
/// Nobody reads it.
pub fn show(rendered: &Rendered, only_changes: bool) -> anyhow::Result<()> {
    let after = serde_json::to_value(&rendered.after)?;
    let text = if only_changes {
        let before = serde_json::to_value(&rendered.before)?;
        convention_webhook_sdk::testing::difference(&before, &after)
    } else {
        serde_saphyr::to_string(&after)?
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convention_is_called_as_is_said_or_after_its_host() {
        let read = |text: &str| text.parse().map(|it: Webhook| (it.name, it.url));
        let url = "https://localhost:9000/a?b=c";
        let expected = |name: &str| Ok((name.to_owned(), url.to_owned()));
        assert_eq!(read(url), expected("localhost"));
        assert_eq!(read(&format!("env={url}")), expected("env"));
        for wrong in ["", "env", "env=", "=https://a", "https://", "env=ftp://a"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
