//! Pods and presets out of files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use pod_presets::Candidate;
use serde_json::{Value, json};

use super::live::LiveTarget;

/// The longest file that is read; an object in a cluster has at most 1.5 MiB.
const MOST_BYTES: u64 = 16 << 20;
/// Where objects have a pod template.
const TEMPLATES: [&str; 3] = [
    "/spec/template",
    "/spec/jobTemplate/spec/template",
    "/template",
];

/// Where a pod is to be found.
#[derive(Debug, PartialEq, Eq)]
pub enum PodSource {
    /// In a file.
    File(PathBuf),
    /// In a cluster.
    Live(LiveTarget),
}

impl PodSource {
    /// A file goes before an object of the cluster.
    ///
    /// # Errors
    ///
    /// If it is neither. The user names another one.
    pub fn of(text: &str) -> anyhow::Result<Self> {
        let path = Path::new(text);
        if path.exists() {
            return Ok(Self::File(path.to_owned()));
        }
        if let Some(target) = LiveTarget::of(text) {
            return Ok(Self::Live(target));
        }
        bail!(
            "there is no file {text}, and it is no object of a cluster either\n  next: name a file with a pod or a workload, or an object as pod/NAME, deployment/NAME, statefulset/NAME, daemonset/NAME, replicaset/NAME, job/NAME, cronjob/NAME or podintent/NAME"
        )
    }
}

/// Something that presets may be for.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Kind and name of the object.
    pub title: String,
    /// Its namespace; empty if it names none.
    pub namespace: String,
    /// The pod itself, or one as it would be made from its template.
    pub pod: Value,
    /// Whether it is a pod that runs.
    pub is_live: bool,
}

impl Subject {
    /// The pod of an object.
    ///
    /// # Errors
    ///
    /// If it has none; the text says what has.
    pub fn of(object: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
        let name = text(&metadata["name"]);
        let pod = match &*kind {
            "Pod" => object.clone(),
            _ => from_template(object).ok_or_else(|| no_pod(object, &kind, &name))?,
        };
        Ok(Self {
            title: format!("{kind} {name}").trim().to_owned(),
            namespace: text(&metadata["namespace"]),
            pod,
            is_live: false,
        })
    }
}

/// A pod as a controller makes it.
fn from_template(object: &Value) -> Option<Value> {
    let mut templates = TEMPLATES.iter().filter_map(|path| object.pointer(path));
    let template = templates.find(|it| it["spec"]["containers"].is_array())?;
    Some(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
        },
        "spec": template["spec"],
    }))
}

fn no_pod(object: &Value, kind: &str, name: &str) -> anyhow::Error {
    let of_ours = object["apiVersion"].as_str().unwrap_or_default();
    if of_ours.starts_with("carto.run/") {
        return anyhow!(
            "{kind} {name} has no pod template itself: its blueprint stamps the object that has it\n  next: find that object with `carto tree {}/{name}`, and explain it",
            kind.to_ascii_lowercase()
        );
    }
    anyhow!(
        "{kind} {name} is no pod, and has no pod template in spec.template or spec.jobTemplate\n  next: name a file with a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob or PodIntent"
    )
}

/// What a file has for which there may be presets.
///
/// # Errors
///
/// If it cannot be read, or no object in it has a pod.
pub fn subjects(path: &Path) -> anyhow::Result<Vec<Subject>> {
    let objects = documents(path)?;
    let found: Vec<anyhow::Result<Subject>> = objects.iter().map(Subject::of).collect();
    ensure!(!found.is_empty(), "{} is empty", path.display());
    // A file may well hold the Service beside the Deployment.
    if found.iter().any(Result::is_ok) {
        return Ok(found.into_iter().flatten().collect());
    }
    let all: anyhow::Result<Vec<Subject>> = found.into_iter().collect();
    all.with_context(|| format!("in {}", path.display()))
}

/// The presets of files and folders; other objects in them are passed over.
///
/// # Errors
///
/// If one cannot be read, or there is no preset at all.
pub fn candidates(paths: &[PathBuf]) -> anyhow::Result<Vec<Candidate>> {
    let presets = presets(paths)?;
    let candidates = presets.iter().filter_map(|it| Candidate::read(it).ok());
    Ok(candidates.collect())
}

/// The objects of presets in files and folders; other objects in them are passed over.
///
/// # Errors
///
/// As [`candidates`].
pub fn presets(paths: &[PathBuf]) -> anyhow::Result<Vec<Value>> {
    let mut presets = Vec::new();
    for path in paths {
        for file in manifests(path)? {
            let documents = documents(&file)?.into_iter();
            presets.extend(documents.filter(|it| Candidate::read(it).is_ok()));
        }
    }
    let shown: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
    ensure!(
        !presets.is_empty(),
        "there is no PodPreset or ClusterPodPreset in {}\n  next: name a file or a folder with manifests of them",
        shown.join(", ")
    );
    Ok(presets)
}

/// A file, or those in a folder that end like manifests, by name.
fn manifests(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || format!("read {}", path.display());
    if !fs::metadata(path).with_context(read)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(read)? {
        let file = entry.with_context(read)?.path();
        let ending = file.extension().and_then(|it| it.to_str());
        if file.is_file() && matches!(ending, Some("yaml" | "yml" | "json")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The objects of a file; those of a list one by one.
fn documents(path: &Path) -> anyhow::Result<Vec<Value>> {
    let shown = path.display();
    let size = fs::metadata(path).with_context(|| format!("read {shown}"))?;
    ensure!(size.len() <= MOST_BYTES, "{shown} has more than 16 MiB");
    let text = fs::read_to_string(path).with_context(|| format!("read {shown}"))?;
    let values: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
    let values = values.map_err(|error| anyhow!("{shown} cannot be read as YAML: {error}"))?;
    let mut objects = Vec::new();
    for value in values {
        match value["items"].as_array() {
            Some(items)
                if value["kind"]
                    .as_str()
                    .is_some_and(|it| it.ends_with("List")) =>
            {
                objects.extend(items.iter().cloned());
            }
            _ if value.is_null() => {}
            _ => objects.push(value),
        }
    }
    Ok(objects)
}
