//! examples/full-path on a [`PathStack`]: what a developer and a platform team do there, and how far a commit has come.

mod hops;
pub mod killing;
mod runs;
pub mod stand_in;

use anyhow::Context;
use serde_json::{Value, json};
use test_support::{Node, as_yaml};

use crate::example::{NAMESPACE, fix_param, param};
use crate::manifests::documents;
use crate::path_stack::PathStack;

pub use hops::{Hop, Kind};

/// What the platform team applies: files and folders.
const PLATFORM: [&str; 3] = [
    "examples/web-app/platform/source-template.yaml",
    "examples/deliver-app/platform",
    "examples/full-path/platform",
];
const DEVELOPER: &str = "examples/full-path/developer";

/// Name of the Workload, of the Deliverable, of what is deployed, and of the application's repository.
pub const NAME: &str = "full-path";
/// The repository with the manifests.
pub const CONFIG_REPOSITORY: &str = "config";
/// The Runnable that tests.
pub const TEST: &str = "full-path-test";
/// The Runnable that writes manifests.
pub const WRITE: &str = "full-path-write";
/// A `test.sh` that passes.
pub const PASSING_TEST: &str = "test -s greeting\n";

/// The example with repositories of its own.
pub struct FullPath<'a> {
    stack: &'a PathStack,
    client: kube::Client,
    runs: Kind,
}

/// How the example is changed to fit this machine: where repositories are and that Flux looks every second is always
/// changed.
#[derive(Debug, Clone, Copy)]
pub struct Adaptation {
    /// The image of the Jobs and of the application.
    pub image: &'static str,
    /// Pods of the application.
    pub replicas: u32,
    /// What the ClusterRunTemplates stamp: API version and kind.
    pub runs: Kind,
    /// Changes the objects of the platform team.
    pub platform: fn(&mut Value),
    /// Kinds besides that the developer may stamp: API group and plural.
    pub more_kinds: &'static [(&'static str, &'static str)],
}

/// The example as it is, with an image that is on every node of the tests.
pub const WITH_PODS: Adaptation = Adaptation {
    image: Node::TOOLS_IMAGE,
    replicas: 1,
    runs: ("batch/v1", "Job"),
    platform: |_| {},
    more_kinds: &[],
};

impl<'a> FullPath<'a> {
    /// Creates both repositories, one with a first commit of the application, applies what the platform team and then what
    /// the developer applies. Returns the revision of the first commit, too.
    ///
    /// # Errors
    ///
    /// When git or the API server refuse.
    pub async fn hand_in(
        stack: &'a PathStack,
        adaptation: Adaptation,
    ) -> anyhow::Result<(Self, String)> {
        stack.git.create_repo(NAME)?;
        stack.git.create_repo(CONFIG_REPOSITORY)?;
        // A repository without a branch can be neither followed nor cloned.
        stack.git.commit(
            CONFIG_REPOSITORY,
            &[("README.md", "Written by a supply chain.\n")],
            "Begin",
        )?;
        let path = Self {
            stack,
            client: stack.control_plane.client()?,
            runs: adaptation.runs,
        };
        let first = path.commit("Hello", PASSING_TEST)?;
        for folder in PLATFORM {
            let mut objects = documents(folder)?;
            for object in &mut objects {
                look_every_second(object);
                fix_param(object, "tools-image", adaptation.image);
                fix_param(
                    object,
                    "config-repository",
                    stack.git_url(CONFIG_REPOSITORY),
                );
                (adaptation.platform)(object);
            }
            let applied = stack.control_plane.apply_yaml(&as_yaml(&objects)).await;
            applied.context(folder)?;
        }
        path.apply_as_developer(adaptation).await?;
        Ok((path, first))
    }

    async fn apply_as_developer(&self, adaptation: Adaptation) -> anyhow::Result<()> {
        let mut objects = documents(DEVELOPER)?;
        for object in &mut objects {
            match object["kind"].as_str() {
                Some("Workload") => {
                    object["spec"]["source"]["git"]["url"] = json!(self.stack.git_url(NAME));
                    object["spec"]["image"] = json!(adaptation.image);
                    object["spec"]["params"] = json!([param("replicas", adaptation.replicas)]);
                }
                Some("Deliverable") => {
                    let url = self.stack.git_url(CONFIG_REPOSITORY);
                    object["spec"]["source"]["git"]["url"] = json!(url);
                }
                Some("Role") => grant(object, adaptation.more_kinds),
                _ => {}
            }
        }
        let control_plane = &self.stack.control_plane;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        control_plane.apply_yaml(&namespace.to_string()).await?;
        let applied = control_plane
            .apply_yaml_in(NAMESPACE, &as_yaml(&objects))
            .await;
        applied.context(DEVELOPER)?;
        Ok(())
    }

    /// Commits a change of the application with this `test.sh`, and returns the revision that Flux gives the commit.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn commit(&self, greeting: &str, test: &str) -> anyhow::Result<String> {
        let files = [("greeting", greeting), ("test.sh", test)];
        let commit = self
            .stack
            .git
            .commit(NAME, &files, &format!("Say {greeting}"))?;
        Ok(format!("main@sha1:{commit}"))
    }
}

/// As a default of the templates: a param of the Deliverable would let Flux apply the same manifests every second, too.
fn look_every_second(object: &mut Value) {
    if object["kind"] != "ClusterSourceTemplate" {
        return;
    }
    let params = object.pointer_mut("/spec/params");
    let params = params.and_then(Value::as_array_mut);
    for param in params.into_iter().flatten() {
        if param["name"] == "interval" {
            param["default"] = json!("1s");
        }
    }
}

/// Lets the developer's service account stamp more kinds.
fn grant(role: &mut Value, kinds: &[(&str, &str)]) {
    let rules = role["rules"].as_array_mut();
    let more = kinds.iter().map(|(group, plural)| {
        let verbs = ["get", "list", "create", "patch", "delete"];
        json!({"apiGroups": [group], "resources": [plural], "verbs": verbs})
    });
    if let Some(rules) = rules {
        rules.extend(more);
    }
}
