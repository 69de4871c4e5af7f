//! examples/web-app on a [`Stack`]: what a developer and a platform team do there.

use anyhow::Context;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::objects_in;

use crate::Stack;
pub use crate::example::NAMESPACE;
use crate::example::{self, fix_param, param};

const EXAMPLE: &str = "examples/web-app";
/// Name of the Workload, and of most objects stamped for it.
pub const NAME: &str = "web-app";
/// The annotation that says which revision a Deployment runs.
pub const REVISION: &str = "example.com/revision";

/// The example with a repository and an image of its own.
pub struct WebApp<'a> {
    stack: &'a Stack,
    /// URL of the repository.
    pub repository: String,
    /// The image without its tag.
    pub image: String,
}

impl<'a> WebApp<'a> {
    /// Creates a repository with a first commit, pushes version 1.0.0 of an image, and applies what the platform team
    /// applies. Returns the app and the first commit.
    ///
    /// # Errors
    ///
    /// When git, the registry or the API server refuse.
    pub async fn prepare(stack: &'a Stack) -> anyhow::Result<(Self, String)> {
        let (app, commit) = Self::sources(stack)?;
        // This machine's registry has no TLS, and no Workload may say so.
        let adapt = |object: &mut Value| fix_param(object, "insecure", true);
        example::apply_platform(&stack.control_plane, EXAMPLE, adapt).await?;
        Ok((app, commit))
    }

    /// Creates a repository with a first commit, and pushes version 1.0.0 of an image. Returns the app and the commit.
    ///
    /// # Errors
    ///
    /// When git or the registry refuse.
    pub fn sources(stack: &'a Stack) -> anyhow::Result<(Self, String)> {
        let repository = stack.git.create_repo(NAME)?;
        let commit = stack
            .git
            .commit(NAME, &[("main.py", "print('Hello')\n")], "Say hello")?;
        let image = format!("{}/team/{NAME}", stack.registry.host());
        stack.registry.push_image(
            &format!("team/{NAME}"),
            "1.0.0",
            &[("app/main.py", "print('Hello')\n")],
        )?;
        let app = Self {
            stack,
            repository,
            image,
        };
        Ok((app, commit))
    }

    /// Creates the developer's namespace and applies what the developer applies, with this repository and image.
    ///
    /// The example's Workload is used as it is but for three things that this machine asks for: where the repository and the
    /// image are, that Flux looks every second, and that no pods are wanted, as there are no nodes.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn hand_in(&self) -> anyhow::Result<()> {
        example::hand_in(&self.stack.control_plane, EXAMPLE, |workload| {
            let git = &mut workload["spec"]["source"]["git"];
            git["url"] = json!(self.repository);
            git["ref"]["branch"] = json!("main");
            workload["spec"]["image"] = json!(self.image);
            let params = workload["spec"]["params"]
                .as_array_mut()
                .context("the Workload has no params")?;
            params.extend([param("interval", "1s"), param("replicas", 0)]);
            Ok(())
        })
        .await
    }

    /// Commits a change and returns the commit.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn commit(&self, greeting: &str) -> anyhow::Result<String> {
        let content = format!("print('{greeting}')\n");
        self.stack
            .git
            .commit(NAME, &[("main.py", &content)], &format!("Say {greeting}"))
    }

    /// Releases a version of the image and returns its digest.
    ///
    /// # Errors
    ///
    /// When the registry refuses.
    pub fn release(&self, version: &str) -> anyhow::Result<String> {
        let content = format!("print('{version}')\n");
        self.stack.registry.push_image(
            &format!("team/{NAME}"),
            version,
            &[("app/main.py", &content)],
        )
    }

    /// The Deployment, if it is there.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn deployment(&self) -> anyhow::Result<Option<Deployment>> {
        let deployments: Api<Deployment> =
            Api::namespaced(self.stack.control_plane.client()?, NAMESPACE);
        Ok(deployments.get_opt(NAME).await?)
    }

    /// Changes the Workload by a merge patch, as the developer would with `kubectl edit`.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn change_workload(&self, patch: &Value) -> anyhow::Result<()> {
        let client = self.stack.control_plane.client()?;
        objects_in(&client, NAMESPACE, "carto.run/v1alpha1", "Workload")
            .patch(NAME, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }
}

/// The revision that a Deployment's pods are of: `main@sha1:<commit>`.
pub fn revision(deployment: &Deployment) -> &str {
    let template = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.metadata.as_ref());
    let annotations = template.and_then(|metadata| metadata.annotations.as_ref());
    annotations
        .and_then(|annotations| annotations.get(REVISION))
        .map_or("", String::as_str)
}

/// The image that a Deployment runs.
pub fn image(deployment: &Deployment) -> &str {
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.containers.first())
        .and_then(|container| container.image.as_deref())
        .unwrap_or("")
}
