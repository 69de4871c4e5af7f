//! `carto preset`: what presets make of a pod, without anybody creating it.

pub mod export;
pub mod files;
pub mod live;
pub mod render;

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use pod_presets::{Candidate, Explanation, Stale, explain, stale};
use serde_json::Value;

use crate::args::{Connection, ExplainArgs, Output};
use crate::cluster::Cluster;
use files::{PodSource, Subject};

/// A pod, and what presets make of it.
#[derive(Debug)]
pub struct Told {
    /// The object that the pod is in, or would be made from: kind and name.
    pub title: String,
    /// The namespace, where it is known.
    pub namespace: String,
    /// The pod as it would be created.
    pub pod: Value,
    /// What presets make of it.
    pub explanation: Explanation,
    /// What a pod that runs has of other versions.
    pub stale: Vec<Stale>,
}

/// Presets, and the labels of the namespace that they may ask for.
#[derive(Debug, Default)]
pub struct Known {
    /// All that may be for the pod.
    pub candidates: Vec<Candidate>,
    /// Labels of its namespace.
    pub namespace_labels: BTreeMap<String, String>,
}

/// Explains what presets make of pods, and prints it.
///
/// # Errors
///
/// A file that is not there or has no pod in it; a cluster that does not answer. The text says what
/// to do.
pub async fn explain_pods(connection: &Connection, args: &ExplainArgs) -> anyhow::Result<()> {
    let mut cluster = None;
    let subjects = match PodSource::of(&args.target)? {
        PodSource::File(path) => files::subjects(&path)?,
        PodSource::Live(target) => {
            let cluster = cluster.insert(Cluster::connect(connection).await?);
            vec![live::subject(cluster, &target).await?]
        }
    };
    let mut all = Vec::new();
    for subject in subjects {
        let namespace = namespace_of(&subject, connection);
        let known = if args.presets.is_empty() {
            let cluster = match &cluster {
                Some(cluster) => cluster,
                None => cluster.insert(Cluster::connect(connection).await?),
            };
            live::known(cluster, &namespace).await?
        } else {
            Known {
                candidates: files::candidates(&args.presets)?,
                namespace_labels: args.namespace_labels.iter().cloned().collect(),
            }
        };
        all.push(told(subject, &namespace, &known));
    }
    let text = match args.output {
        Output::Tree => render::lines(&all, args.diff.then_some(args.show_values)),
        Output::Json => render::json(&all)?,
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// What is said of one object.
pub fn told(subject: Subject, namespace: &str, known: &Known) -> Told {
    let Subject { title, mut pod, .. } = subject;
    if !namespace.is_empty() {
        pod["metadata"]["namespace"] = namespace.into();
    }
    let explanation = explain(&pod, &known.candidates, &known.namespace_labels);
    let presets = known.candidates.iter();
    let presets = presets.filter_map(|it| it.compiled.as_ref().ok());
    let stale = if subject.is_live {
        stale(&pod["metadata"]["annotations"], presets)
    } else {
        Vec::new()
    };
    Told {
        title,
        namespace: namespace.to_owned(),
        pod,
        explanation,
        stale,
    }
}

fn namespace_of(subject: &Subject, connection: &Connection) -> String {
    let own = Some(&subject.namespace).filter(|it| !it.is_empty());
    own.or(connection.namespace.as_ref())
        .cloned()
        .unwrap_or_default()
}
