//! What a takeover changed, in a file of the user's: the way back goes by it, and by nothing that is stored in the cluster,
//! where others might have written it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of the file.
const VERSION: u32 = 1;

/// A Deployment, and how many Pods it had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Scaled {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) replicas: i32,
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct State {
    version: u32,
    /// uid of namespace `kube-system`: a file is for one cluster.
    cluster: String,
    /// The Go controller's Deployments, as they were.
    pub(super) old: Vec<Scaled>,
    /// Its webhook configurations, as they were.
    pub(super) old_webhooks: Vec<Value>,
    /// Our Deployments, as they were before the way back.
    #[serde(default)]
    pub(super) ours: Vec<Scaled>,
    /// Our webhook configurations, as they were before the way back.
    #[serde(default)]
    pub(super) our_webhooks: Vec<Value>,
}

/// The file, and what is in it.
#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
    pub(super) state: State,
    /// Whether there was a file.
    pub(super) is_begun: bool,
}

impl Record {
    /// What the file says, or a new one that is not written yet.
    ///
    /// # Errors
    /// The file cannot be read, or is of another cluster.
    pub(super) async fn open(path: &Path, client: &Client) -> anyhow::Result<Self> {
        let cluster = identity(client).await?;
        let text = match fs::read_to_string(path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
        };
        let is_begun = text.is_some();
        let state = match text {
            Some(text) => parse(&text).with_context(|| format!("read {}", path.display()))?,
            None => State {
                version: VERSION,
                cluster: cluster.clone(),
                old: Vec::new(),
                old_webhooks: Vec::new(),
                ours: Vec::new(),
                our_webhooks: Vec::new(),
            },
        };
        if state.cluster != cluster {
            bail!(
                "{} tells of another cluster than the one that is spoken to\n  next: choose the right one with --context, or name another file",
                path.display()
            );
        }
        Ok(Self {
            path: path.to_owned(),
            state,
            is_begun,
        })
    }

    /// Writes the file; one that was there is whole or replaced.
    ///
    /// # Errors
    /// It cannot be written: then nothing must be changed that it would tell of.
    pub(super) fn save(&self) -> anyhow::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let text = serde_json::to_string_pretty(&self.state)?;
        fs::write(&beside, format!("{text}\n"))
            .and_then(|()| fs::rename(&beside, &self.path))
            .with_context(|| format!("write {}", self.path.display()))
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn parse(text: &str) -> anyhow::Result<State> {
    let state: State = serde_json::from_str(text)?;
    if state.version != VERSION {
        bail!(
            "it is of version {}, and this program knows {VERSION}",
            state.version
        );
    }
    Ok(state)
}

/// By what clusters are told apart.
async fn identity(client: &Client) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = namespaces
        .get("kube-system")
        .await
        .context("read namespace kube-system, by which clusters are told apart")?;
    system
        .metadata
        .uid
        .context("namespace kube-system has no uid")
}

/// Keeps what is known already, and adds what is new: an earlier try knew the original.
pub(super) fn remember(known: &mut Vec<Scaled>, now: impl IntoIterator<Item = Scaled>) {
    for scaled in now {
        let is_it = |it: &&mut Scaled| it.namespace == scaled.namespace && it.name == scaled.name;
        match known.iter_mut().find(is_it) {
            // One that has no Pods any more was scaled down by an earlier try.
            Some(it) if scaled.replicas > 0 => it.replicas = scaled.replicas,
            Some(_) => {}
            None => known.push(scaled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(name: &str, replicas: i32) -> Scaled {
        Scaled {
            namespace: "n".to_owned(),
            name: name.to_owned(),
            replicas,
        }
    }

    #[test]
    fn a_second_try_does_not_forget_how_many_there_were() {
        let mut known = Vec::new();
        remember(&mut known, [scaled("a", 2)]);
        remember(&mut known, [scaled("a", 0), scaled("b", 1)]);
        assert_eq!(known, [scaled("a", 2), scaled("b", 1)]);
        remember(&mut known, [scaled("a", 3)]);
        assert_eq!(known[0].replicas, 3);
    }

    #[test]
    fn a_file_of_another_form_is_not_guessed_at() {
        for text in ["", "{}", "{\"version\": 1}", "[]"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let newer = "{\"version\": 2, \"cluster\": \"c\", \"old\": [], \"oldWebhooks\": []}";
        assert!(parse(newer).unwrap_err().to_string().contains("version 2"));
        assert!(parse(&newer.replace('2', "1")).is_ok());
    }
}
