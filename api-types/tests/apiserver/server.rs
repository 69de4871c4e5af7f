//! Requests whose status, warnings and body are all looked at.

use std::path::{Path, PathBuf};

use http::{Method, Request, header};
use http_body_util::BodyExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use test_support::{ControlPlane, documents, yaml_files};

pub(crate) struct Server {
    client: Client,
}

/// What the API server answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The texts of the `Warning` headers.
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// `message` of a refusal.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// A folder of `deploy`.
pub(crate) fn deploy(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(folder)
}

/// The YAML documents of a folder of `deploy`, by file name.
pub(crate) fn manifests(folder: &str) -> Vec<Value> {
    yaml_files(&deploy(folder))
        .unwrap()
        .iter()
        .flat_map(|file| documents(&std::fs::read_to_string(file).unwrap()).unwrap())
        .collect()
}

impl Server {
    pub(crate) fn of(control_plane: &ControlPlane) -> Self {
        Self {
            client: control_plane.client().unwrap(),
        }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Reply {
        let accept = "application/json";
        self.send_accepting(accept, method, path, content_type, body)
            .await
    }

    pub(crate) async fn send_accepting(
        &self,
        accept: &str,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Reply {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            serde_json::to_vec(body).unwrap()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::ACCEPT, accept)
            .body(Body::from(bytes))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let status = response.status().as_u16();
        let headers = response.headers().get_all(header::WARNING).iter();
        let warnings = headers
            .map(|value| value.to_str().unwrap().to_owned())
            .collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Reply {
            status,
            warnings,
            body,
        }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Reply {
        self.send(Method::POST, path, "application/json", object)
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "application/json", &Value::Null)
            .await
    }

    pub(crate) async fn patch(&self, path: &str, change: &Value) -> Reply {
        self.send(Method::PATCH, path, "application/merge-patch+json", change)
            .await
    }
}

/// Where objects of a kind are created, in namespace `default` if it is namespaced.
pub(crate) fn collection(crd: &CustomResourceDefinition) -> String {
    let namespace = if crd.spec.scope == "Namespaced" {
        "namespaces/default/"
    } else {
        ""
    };
    format!(
        "/apis/carto.run/v1alpha1/{namespace}{}",
        crd.spec.names.plural
    )
}

/// The definition of a kind.
pub(crate) fn crd(kind: &str) -> CustomResourceDefinition {
    api_types::crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .unwrap()
}
