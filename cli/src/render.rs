//! `carto convention render`: a PodIntent through webhooks of conventions, without a cluster.
//!
//! What the controller does between an intent and its status is done here with the same client, the
//! same chain and the same checks, but for images: what is known of them is given as a file.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use convention_client::{
    CallError, Clients, DEFAULT_BUDGET, RequestBody, Settings, Target, TargetError,
};
use convention_protocol::{ImageConfig, PodTemplate};
use conventions::chain::Chain;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The longest file that is read: a template is at most 1.5 MiB, images may have bills of materials.
const MOST_BYTES: u64 = 256 << 20;

/// What is sent through conventions.
const INTENT: &str = "PodIntent";

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
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    template: Option<PodTemplate>,
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
    let (name, before) = template(intent)?;
    let images: Vec<ImageConfig> = match images {
        Some(path) => document(path, "list of images")?,
        None => Vec::new(),
    };
    let trusted = authority.map(read).transpose()?;
    let mut chain = Chain::start(before.clone());
    let settings = Settings {
        user_agent: format!("carto/{}", env!("CARGO_PKG_VERSION")),
        ..Settings::default()
    };
    let clients = Clients::new(settings).map_err(|error| wrong("all", &error))?;
    for webhook in webhooks {
        let known = known(&chain, &images);
        let context = chain.request(&name, &webhook.name, known);
        let body = RequestBody::new(&context, &std::collections::BTreeMap::new())
            .map_err(|error| wrong(&webhook.name, &error))?;
        let config = WebhookClientConfig {
            url: Some(webhook.url.clone()),
            ..WebhookClientConfig::default()
        };
        let target = Target::of(&config, trusted.as_deref());
        let target = target.map_err(|error| no_target(&webhook.name, error, authority))?;
        let answer = clients.call(&target, DEFAULT_BUDGET, &body).await;
        let answer = answer.map_err(|error| not_called(&webhook.name, &error))?;
        chain
            .record(&webhook.name, answer)
            .map_err(|fault| wrong(&webhook.name, &fault))?;
    }
    let after = chain.finish().map_err(|fault| wrong("all", &fault))?;
    Ok(Rendered { before, after })
}

/// The name and the template of a PodIntent.
fn template(path: &Path) -> Result<(String, PodTemplate), RenderError> {
    let Intent {
        kind,
        metadata,
        spec,
    } = document(path, INTENT)?;
    let content = |problem: &str| RenderError::Content {
        path: path.to_owned(),
        wanted: INTENT,
        problem: problem.to_owned(),
    };
    if !["", INTENT].contains(&kind.as_str()) {
        let problem = format!("it is a {kind:?}; a pod template is put below spec.template of one");
        return Err(content(&problem));
    }
    let template = spec.template;
    let template = template.ok_or_else(|| content("it has no pod template in spec.template"))?;
    Ok((metadata.name, template))
}

fn no_target(name: &str, error: TargetError, authority: Option<&Path>) -> RenderError {
    match (error, authority) {
        (TargetError::Authority, Some(path)) => RenderError::Content {
            path: path.to_owned(),
            wanted: "certificate",
            problem: "it has no \"BEGIN CERTIFICATE\" block that can be read".to_owned(),
        },
        (error, _) => wrong(name, &error),
    }
}

/// The texts are for whoever writes a ClusterPodConvention; here trust is said otherwise.
fn not_called(name: &str, error: &CallError) -> RenderError {
    match error {
        CallError::Untrusted { .. } => wrong(
            name,
            &format!("{error}. Here it is the file of --ca that is trusted, else the system's"),
        ),
        CallError::Connection { .. }
        | CallError::TimedOut { .. }
        | CallError::Status { .. }
        | CallError::Redirect { .. }
        | CallError::Answer { .. }
        | CallError::Request { .. } => wrong(name, error),
    }
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
    let values: Result<Vec<serde_json::Value>, _> = serde_saphyr::from_multiple(text);
    let mut values = values.map_err(|error| content(error.to_string()))?;
    // What stands between two lines of dashes, and is empty.
    values.retain(|value| !value.is_null());
    let (Some(value), true) = (values.pop(), values.is_empty()) else {
        return Err(content("it is to be one document, and no more".to_owned()));
    };
    serde_json::from_value(value).map_err(|error| content(error.to_string()))
}

/// Writes the template as YAML, or what changed.
///
/// # Errors
///
/// Nobody reads it.
pub fn show(rendered: &Rendered, only_changes: bool) -> anyhow::Result<()> {
    let text = text(rendered, only_changes)?;
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// No terminal obeys it, whatever a server answered: both escape what a terminal would.
fn text(rendered: &Rendered, only_changes: bool) -> anyhow::Result<String> {
    let after = serde_json::to_value(&rendered.after)?;
    if only_changes {
        let before = serde_json::to_value(&rendered.before)?;
        return Ok(convention_webhook_sdk::testing::difference(&before, &after));
    }
    Ok(serde_saphyr::to_string(&after)?)
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

    #[test]
    fn no_terminal_obeys_what_a_server_answered() {
        let hostile = "a\u{1b}[2J\u{7}\u{9b}2J\u{7f}\r\nb";
        let after = serde_json::json!({"spec": {hostile: hostile, "list": [hostile]}});
        let rendered = Rendered {
            before: PodTemplate::default(),
            after: serde_json::from_value(after.clone()).unwrap(),
        };
        for only_changes in [false, true] {
            let text = text(&rendered, only_changes).unwrap();
            let is_told = |next: char| next == '\n' || !next.is_control();
            assert!(text.chars().all(is_told), "{text:?}");
        }
        let yaml = text(&rendered, false).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read["spec"], after["spec"]);
    }
}
