//! A stage on which the API server asks about pods, as deploy/conventions/pod-presets.yaml has it.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use test_support::stage::{PATIENCE, Particulars, Port};
use test_support::{PRESET_WEBHOOKS, eventually};

use crate::stage::{Intents, set};

/// What a marker begins with.
pub(crate) const MARKER: &str = "podpreset.admission.kubernetes.io/podpreset-";

/// The stage of conventions, and the port of the webhook.
pub(crate) struct Pods {
    stage: Intents,
    port: Port,
}

impl Deref for Pods {
    type Target = Intents;

    fn deref(&self) -> &Intents {
        &self.stage
    }
}

impl DerefMut for Pods {
    fn deref_mut(&mut self) -> &mut Intents {
        &mut self.stage
    }
}

/// What the API server made of a pod, and what it said beside that.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) pod: Value,
    /// As kubectl shows them.
    pub(crate) warnings: Vec<String>,
}

impl Created {
    /// The version of the preset with this name that the pod is marked with.
    pub(crate) fn marker(&self, preset: &str) -> Option<String> {
        let annotations = &self.pod["metadata"]["annotations"];
        let marker = &annotations[format!("{MARKER}{preset}")];
        marker.as_str().map(str::to_owned)
    }
}

/// With the controller, once it is asked about pods.
pub(crate) async fn open() -> Pods {
    open_with(&[]).await
}

/// The same with these flags.
pub(crate) async fn open_with(flags: &[&str]) -> Pods {
    let mut pods = set_pods(set().await);
    pods.start_by(None, flags).await;
    pods
}

/// Everything but the controller.
pub(crate) fn set_pods(stage: Intents) -> Pods {
    let port = Port::reserve();
    Pods { stage, port }
}

impl Pods {
    /// What a controller needs that serves at this port.
    pub(crate) fn flags_at(&self, port: &Port) -> Vec<String> {
        let cache = self
            .plane
            .folder()
            .join(format!("images-{}", port.number()));
        vec![
            format!("--image-cache={}", cache.display()),
            format!("--port={}", port.number()),
            format!("--own-namespace={}", self.namespace),
            "--webhook-secret=hook".to_owned(),
            "--webhook-service=localhost".to_owned(),
            "--pod-presets".to_owned(),
            format!("--preset-webhook-configuration={PRESET_WEBHOOKS}"),
        ]
    }

    /// Starts the controller, on this way to the API server, and waits until it is asked about
    /// pods.
    pub(crate) async fn start_by(&mut self, kubeconfig: Option<&Path>, flags: &[&str]) {
        let own = self.flags_at(&self.port);
        let own = own.iter().map(String::as_str);
        let flags: Vec<&str> = own.chain(flags.iter().copied()).collect();
        self.start_controller_with(&Particulars {
            kubeconfig,
            flags: &flags,
            ..Particulars::default()
        });
        self.configure(&self.port).await;
        eventually("the controller is asked about pods", PATIENCE, async || {
            let tried = self.try_pod(pod("is-it-asked", json!({}))).await;
            let asked = self.metric("carto_preset_pods_total", &[]).await;
            if asked > Some(0.0) {
                Ok(())
            } else {
                Err((tried, asked))
            }
        })
        .await;
    }

    /// The configurations of deploy/conventions/pod-presets.yaml, with the address of this machine.
    pub(crate) async fn configure(&self, port: &Port) {
        // On a busy machine the API server itself may take a while to reach us.
        let plane = &self.plane;
        let registered = plane.register_preset_webhooks(port.number(), 10, PATIENCE);
        registered.await.unwrap();
    }

    /// Creates a pod.
    pub(crate) async fn create_pod(&self, pod: Value) -> Created {
        self.post("", &pod).await.unwrap()
    }

    /// What creating it would come to; nothing is stored.
    pub(crate) async fn try_pod(&self, pod: Value) -> Result<Created, String> {
        self.post("?dryRun=All", &pod).await
    }

    /// The refusal is what the API server says.
    pub(crate) async fn post(&self, query: &str, pod: &Value) -> Result<Created, String> {
        let path = format!("/api/v1/namespaces/{}/pods{query}", self.namespace);
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(Body::from(pod.to_string().into_bytes()))
            .unwrap();
        let answer = self.client.send(request).await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        if !status.is_success() {
            return Err(body["message"].as_str().unwrap().to_owned());
        }
        let warnings = headers.get_all("warning").iter();
        let warnings = warnings.map(|it| warned(it.to_str().unwrap()));
        Ok(Created {
            warnings: warnings.collect(),
            pod: body,
        })
    }

    /// Tries a pod until it comes out as described by `probe`.
    pub(crate) async fn until_tried(
        &self,
        what: &str,
        pod: &Value,
        probe: impl Fn(&Created) -> bool,
    ) -> Created {
        eventually(what, PATIENCE, async || {
            match self.try_pod(pod.clone()).await {
                Ok(created) if probe(&created) => Ok(Some(created)),
                other => Err(other),
            }
        })
        .await
    }

    /// Tries a pod until it is marked with this preset: the controller knows the preset then.
    pub(crate) async fn until_marked(&self, preset: &str, pod: &Value) -> Created {
        let what = format!("a pod gets {preset}");
        let marked = |created: &Created| created.marker(preset).is_some();
        self.until_tried(&what, pod, marked).await
    }

    /// Applies a preset of the group of today.
    pub(crate) async fn preset(&self, name: &str, spec: Value) {
        self.apply(&preset("PodPreset", name, spec).to_string())
            .await;
    }
}

/// A preset of the group of today.
pub(crate) fn preset(kind: &str, name: &str, spec: Value) -> Value {
    let mut preset = json!({
        "apiVersion": "settings.carto.run/v1alpha1", "kind": kind, "metadata": {"name": name},
    });
    preset["spec"] = spec;
    preset
}

/// A pod with these labels.
pub(crate) fn pod(name: &str, labels: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    pod["metadata"]["labels"] = labels;
    pod
}

/// `299 - "text"`, as RFC 7234 has it.
fn warned(header: &str) -> String {
    let text = header.strip_prefix("299 - \"").unwrap();
    text.strip_suffix('"').unwrap().replace("\\\"", "\"")
}
