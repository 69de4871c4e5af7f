//! What whoever works with kubectl sees of presets.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use test_support::stage::PATIENCE;
use test_support::{as_yaml, assets, eventually};

use super::stage::{Created, MARKER, Pods, open, pod};

impl Pods {
    /// Runs kubectl as the administrator, with this on its standard input.
    fn kubectl(&self, args: &[&str], input: &str) -> Output {
        let kubectl = assets().unwrap().binary("kubectl").unwrap();
        let mut running = Command::new(kubectl)
            .args(["-n", &self.namespace])
            .args(args)
            .env("KUBECONFIG", self.plane.kubeconfig_path())
            .env("HOME", self.plane.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = running.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        running.wait_with_output().unwrap()
    }

    /// What it says beside what it prints.
    fn types(&self, args: &[&str], input: &str) -> String {
        let output = self.kubectl(args, input);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        said
    }
}

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Whether all that an example shows is there. The API server adds defaults and the token of the
/// service account.
fn is_within(shown: &Value, seen: &Value) -> bool {
    match (shown, seen) {
        (Value::Object(shown), Value::Object(seen)) => shown.iter().all(|(key, value)| {
            let is_marker = key.starts_with(MARKER);
            let seen = seen.get(key);
            seen.is_some_and(|seen| is_marker && seen.is_string() || is_within(value, seen))
        }),
        (Value::Array(shown), Value::Array(seen)) => {
            let is_token = |it: &&Value| {
                let name = it["name"].as_str().unwrap_or_default();
                !name.starts_with("kube-api-access-")
            };
            let seen: Vec<&Value> = seen.iter().filter(is_token).collect();
            let both = shown.iter().zip(&seen);
            shown.len() == seen.len() && both.into_iter().all(|(it, seen)| is_within(it, seen))
        }
        (shown, seen) => shown == seen,
    }
}

/// The examples of the design as they stand there, but for what no API server takes: a version that
/// is a text, and the namespace of somebody else.
#[tokio::test]
async fn the_examples_of_the_design_apply_as_they_stand() {
    let pods = open().await;
    let crds = folder("deploy/conventions/optional-crds");
    pods.plane.install_crds(crds).await.unwrap();
    let mut tried = 0;
    for file in test_support::yaml_files(&folder("pod-presets/tests/proposal")).unwrap() {
        let text = std::fs::read_to_string(&file).unwrap();
        let documents = test_support::documents(&text).unwrap();
        let [pod, presets @ .., expected] = &documents[..] else {
            panic!("{} has no pods", file.display());
        };
        let mut presets = presets.to_vec();
        for preset in &mut presets {
            let metadata = preset["metadata"].as_object_mut().unwrap();
            metadata.remove("resourceVersion");
            metadata.remove("namespace");
        }
        pods.types(&["apply", "-f", "-"], &as_yaml(&presets));
        let markers = expected["metadata"]["annotations"].as_object();
        let conflicts = markers.is_none_or(serde_json::Map::is_empty);
        let is_known = |created: &Created| {
            let annotations = &created.pod["metadata"]["annotations"];
            let mut markers = markers.into_iter().flatten();
            if conflicts {
                !created.warnings.is_empty()
            } else {
                markers.all(|(key, _)| annotations[key].is_string())
            }
        };
        pods.until_tried("the presets are known", pod, is_known)
            .await;
        let name = file.display();
        let said = pods.types(&["create", "-f", "-"], &as_yaml(std::slice::from_ref(pod)));
        assert_eq!(said.contains("Warning: "), conflicts, "{name}: {said}");
        let stored = pods.all("v1", "Pod").await;
        let [stored] = &stored[..] else {
            panic!("{name}: {stored:#?}")
        };
        // What is listed does not say its kind.
        for part in ["metadata", "spec"] {
            let (shown, seen) = (&expected[part], &stored[part]);
            assert!(is_within(shown, seen), "{name}: {stored:#}");
        }
        if conflicts {
            let annotations = stored["metadata"]["annotations"].as_object();
            let marked = annotations.is_some_and(|it| it.keys().any(|key| key.starts_with(MARKER)));
            assert!(!marked, "{name}: {stored:#}");
        }
        pods.types(&["delete", "podpresets.settings.k8s.io", "--all"], "");
        pods.types(
            &["delete", "pods", "--all", "--force", "--grace-period=0"],
            "",
        );
        let is_plain = |created: &Created| {
            let annotations = &created.pod["metadata"]["annotations"];
            created.warnings.is_empty() && annotations.is_null()
        };
        pods.until_tried("the presets are gone", pod, is_plain)
            .await;
        tried += 1;
    }
    assert_eq!(tried, 5);
}

#[tokio::test]
async fn kubectl_warns_of_a_conflict_and_a_dry_run_leaves_no_trace() {
    let pods = open().await;
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]);
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "env": env});
    pods.preset("env", spec).await;
    pods.until_marked("env", &pod("a", json!({"a": "b"}))).await;
    let conflicting = |name: &str, variable: &str| {
        let mut pod = pod(name, json!({"a": "b"}));
        pod["spec"]["containers"][0]["env"] = json!([{"name": variable, "value": "2"}]);
        pod.to_string()
    };
    let warned = |variable: &str| {
        format!("Warning: PodPreset env: Conflict on pod preset. Duplicate env {variable}.")
    };
    let said = pods.types(
        &["apply", "--dry-run=server", "-f", "-"],
        &conflicting("a", "A"),
    );
    assert!(said.contains(&warned("A")), "{said}");
    let said = pods.types(&["apply", "-f", "-"], &conflicting("b", "B"));
    assert!(said.contains(&warned("B")), "{said}");
    // What is told of the second would come after what is told of the first.
    let status = eventually("the conflict is counted", PATIENCE, async || {
        let preset = pods
            .get("settings.carto.run/v1alpha1", "PodPreset", "env")
            .await;
        let status = preset.unwrap()["status"].clone();
        if status["conflicts"].as_i64() > Some(0) {
            Ok(Some(status))
        } else {
            Err(status)
        }
    })
    .await;
    assert_eq!(status["conflicts"], 1, "{status:#}");
    assert_eq!(status["lastConflicts"][0]["key"], "B", "{status:#}");
    let told = eventually("the conflict is told", PATIENCE, async || {
        let told = pods.events().await;
        let conflicts = told.iter().filter(|it| it.contains("Duplicate env"));
        let conflicts: Vec<String> = conflicts.cloned().collect();
        if conflicts.is_empty() {
            Err(told)
        } else {
            Ok(Some(conflicts))
        }
    })
    .await;
    assert!(
        told.iter().all(|it| it.contains("Duplicate env B.")),
        "{told:#?}"
    );
}

/// The variables of the first container, by name; those from fields are empty.
fn variables(pod: &Value) -> Vec<(&str, &str)> {
    let env = pod["spec"]["containers"][0]["env"].as_array();
    env.into_iter()
        .flatten()
        .map(|it| {
            let value = it["value"].as_str().unwrap_or_default();
            (it["name"].as_str().unwrap(), value)
        })
        .collect()
}

fn apply_example(pods: &Pods, name: &str) {
    let file = folder(&format!("examples/presets/{name}.yaml"));
    pods.types(&["apply", "-f", file.to_str().unwrap()], "");
}

fn marked(created: &Created, name: &str) -> bool {
    let key = format!("podpreset.admission.kubernetes.io/clusterpodpreset-{name}");
    created.pod["metadata"]["annotations"][key].is_string()
}

#[tokio::test]
async fn all_pods_trust_the_company_but_those_of_the_platform() {
    let pods = open().await;
    apply_example(&pods, "ca-bundle");
    let plain = pod("a", json!({}));
    let created = pods
        .until_tried("the pod trusts", &plain, |it| marked(it, "ca-bundle"))
        .await;
    let path = "/etc/company-ca/ca.crt";
    let expected = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"];
    assert_eq!(variables(&created.pod), expected.map(|name| (name, path)));
    let spec = &created.pod["spec"];
    let mount = json!({"name": "company-ca", "mountPath": "/etc/company-ca", "readOnly": true});
    let mounts = spec["containers"][0]["volumeMounts"].as_array().unwrap();
    assert!(mounts.contains(&mount), "{mounts:#?}");
    let volumes = spec["volumes"].as_array().unwrap();
    let source = json!({"name": "company-ca", "optional": true, "defaultMode": 420});
    assert!(
        volumes.iter().any(|it| it["configMap"] == source),
        "{volumes:#?}"
    );
    // Who has a bundle of his own keeps it, and gets the rest.
    let mut own = plain.clone();
    own["spec"]["containers"][0]["env"] = json!([{"name": "SSL_CERT_FILE", "value": "/own"}]);
    let created = pods.try_pod(own).await.unwrap();
    assert_eq!(variables(&created.pod)[0], ("SSL_CERT_FILE", "/own"));
    assert_eq!(variables(&created.pod).len(), 3);
    pods.types(&["label", "namespace", &pods.namespace, "platform=yes"], "");
    pods.until_tried("the platform is left alone", &plain, |it| {
        !marked(it, "ca-bundle")
    })
    .await;
}

#[tokio::test]
async fn pods_of_namespaces_behind_the_proxy_are_told_of_it() {
    let pods = open().await;
    apply_example(&pods, "proxies");
    let plain = pod("a", json!({}));
    let created = pods.try_pod(plain.clone()).await.unwrap();
    assert_eq!(variables(&created.pod), [], "the namespace has no label");
    pods.types(&["label", "namespace", &pods.namespace, "egress=proxy"], "");
    let created = pods
        .until_tried("the pod has the proxy", &plain, |it| marked(it, "proxies"))
        .await;
    let proxy = "http://proxy.egress.svc:3128";
    let variables = variables(&created.pod);
    assert_eq!(variables[0], ("HTTP_PROXY", proxy));
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    let expected = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ];
    assert_eq!(
        names, expected,
        "those that refer to others come after them"
    );
}

#[tokio::test]
async fn pods_that_are_traced_know_where_to_and_who_they_are() {
    let pods = open().await;
    apply_example(&pods, "tracing");
    let mut traced = pod("a", json!({"tracing": "enabled"}));
    traced["spec"]["initContainers"] = json!([
        {"name": "setup", "image": "setup"},
        {"name": "sidecar", "image": "sidecar", "restartPolicy": "Always"},
    ]);
    let created = pods
        .until_tried("the pod is traced", &traced, |it| marked(it, "tracing"))
        .await;
    let names: Vec<&str> = variables(&created.pod)
        .iter()
        .map(|(name, _)| *name)
        .collect();
    let expected = [
        "POD_NAME",
        "POD_NAMESPACE",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_RESOURCE_ATTRIBUTES",
    ];
    assert_eq!(names, expected);
    let init = &created.pod["spec"]["initContainers"];
    assert_eq!(
        init[0]["env"],
        Value::Null,
        "it ends before there is anything to trace"
    );
    assert_eq!(init[1]["env"], created.pod["spec"]["containers"][0]["env"]);
    let other = pods.try_pod(pod("b", json!({}))).await.unwrap();
    assert_eq!(variables(&other.pod), []);
}
