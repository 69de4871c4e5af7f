//! `carto preset`, with presets out of files.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

const PRESETS: &str = r#"
apiVersion: settings.carto.run/v1alpha1
kind: ClusterPodPreset
metadata: {name: proxies}
spec:
  selector: {}
  allPods: true
  namespaceSelector: {matchLabels: {team: web}}
  env:
    - {name: HTTPS_PROXY, value: "http://hunter2@proxy:3128"}
---
apiVersion: settings.carto.run/v1alpha1
kind: PodPreset
metadata: {name: db}
spec:
  selector: {matchLabels: {role: frontend}}
  env:
    - {name: DB_PORT, value: "6379"}
  volumeMounts:
    - {name: cache, mountPath: /cache}
  volumes:
    - {name: cache, emptyDir: {}}
---
apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata: {name: backend}
spec:
  selector: {matchLabels: {role: backend}}
  env:
    - {name: A}
---
apiVersion: settings.carto.run/v1alpha1
kind: PodPreset
metadata: {name: looks}
spec:
  mode: Audit
  selector: {matchLabels: {role: frontend}}
  env:
    - {name: TRACE, value: "1"}
---
apiVersion: settings.carto.run/v1alpha1
kind: PodPreset
metadata: {name: empty}
spec:
  selector: {matchLabels: {role: frontend}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: passed-over}
"#;

const DEPLOYMENT: &str = r"
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: dev}
spec:
  template:
    metadata: {labels: {role: frontend}}
    spec:
      containers: [{name: web, image: web}]
      initContainers: [{name: migrate, image: web}]
";

struct Scene(TempDir);

impl Scene {
    fn new(target: &str) -> Self {
        let folder = tempdir().unwrap();
        fs::create_dir(folder.path().join("presets")).unwrap();
        fs::write(folder.path().join("presets/all.yaml"), PRESETS).unwrap();
        fs::write(folder.path().join("presets/notes.txt"), "not: [yaml").unwrap();
        fs::write(folder.path().join("app.yaml"), target).unwrap();
        Self(folder)
    }

    fn explains(&self, more: &[&str]) -> Output {
        self.runs(&[&["app.yaml", "--presets", "presets"], more].concat())
    }

    fn runs(&self, args: &[&str]) -> Output {
        self.carto(&[&["preset", "explain"], args].concat())
    }

    fn carto(&self, args: &[&str]) -> Output {
        // No cluster is asked where presets are out of files.
        let nowhere = Path::new("/nowhere");
        Command::new(env!("CARGO_BIN_EXE_carto"))
            .args(args)
            .current_dir(self.0.path())
            .env("KUBECONFIG", nowhere)
            .output()
            .unwrap()
    }
}

fn printed(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn each_preset_says_what_it_adds_or_why_it_does_not() {
    let scene = Scene::new(DEPLOYMENT);
    let text = printed(&scene.explains(&["--namespace-labels", "team=web,a=b"]));
    let expected = "\
Deployment web in namespace dev
3 of 5 presets select it
  ClusterPodPreset proxies  applied: adds 2 entries
    + container web: env HTTPS_PROXY
    + container migrate: env HTTPS_PROXY
  PodPreset db              applied: adds 5 entries
    + volumes cache
    + container web: env DB_PORT
    + container web: volumeMounts /cache
    + container migrate: env DB_PORT
    + container migrate: volumeMounts /cache
  PodPreset looks           in mode Audit: would add 2 entries
    + container web: env TRACE
    + container migrate: env TRACE
  PodPreset backend         not for it: label [role] must be one of [backend], but is [frontend]
  PodPreset empty           for no pod, it is not valid: spec.volumes.env.envFrom.volumeMounts: Required value: must specify at least one
the pod is created with all of it
";
    assert_eq!(text, expected);
}

#[test]
fn a_preset_for_other_namespaces_says_which_label_is_missing() {
    let scene = Scene::new(DEPLOYMENT);
    let text = printed(&scene.explains(&[]));
    let why = "not for it: of the namespace label [team] must be one of [web], but is not there";
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_conflict_names_who_has_what_and_what_to_do() {
    let pod = r#"
kind: Pod
metadata: {name: web, labels: {role: frontend}}
spec: {containers: [{name: web, env: [{name: DB_PORT, value: "1"}]}]}
"#;
    let scene = Scene::new(pod);
    let text = printed(&scene.explains(&["--namespace-labels", "team=web"]));
    for line in [
        "PodPreset db              not applied: it conflicts",
        "! container web: the pod has another env DB_PORT, so nothing is injected",
        "ClusterPodPreset proxies  not applied: PodPreset db conflicts",
        "the pod is created as it is",
        "next: take what conflicts out of the pod or of PodPreset db, or give that preset another conflictPolicy",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let told = scene.explains(&["--namespace-labels", "team=web", "--output", "json"]);
    let told: Value = serde_json::from_str(&printed(&told)).unwrap();
    assert_eq!(
        (&told[0]["object"], &told[0]["isChanged"]),
        (&json!("Pod web"), &json!(false))
    );
    let db = &told[0]["presets"][1];
    assert_eq!(
        (&db["name"], &db["outcome"]),
        (&json!("db"), &json!("HeldBack"))
    );
    let conflict = json!({"container": "web", "field": "env", "key": "DB_PORT", "with": "Pod", "settled": "Skipped"});
    assert_eq!(db["conflicts"], json!([conflict]));
}

#[test]
fn values_of_variables_are_shown_only_if_they_are_asked_for() {
    let scene = Scene::new(DEPLOYMENT);
    let labels = ["--namespace-labels", "team=web"];
    for more in [&[][..], &["--diff"], &["--output", "json"]] {
        let text = printed(&scene.explains(&[&labels[..], more].concat()));
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(text.contains("<hidden"), more == ["--diff"], "{text}");
    }
    let shown = printed(&scene.explains(&[&labels[..], &["--diff", "--show-values"]].concat()));
    assert!(shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_pod_that_is_left_alone_says_why() {
    let pod = r#"
kind: Pod
metadata:
  labels: {role: frontend}
  annotations: {podpreset.admission.kubernetes.io/exclude: "true"}
spec: {containers: [{name: web}]}
"#;
    let text = printed(&Scene::new(pod).explains(&[]));
    assert!(
        text.contains("PodPreset db              not applied: the pod is left alone"),
        "{text}"
    );
    let why = "its annotation podpreset.admission.kubernetes.io/exclude is true";
    assert!(
        text.ends_with(&format!("the pod is left alone: {why}\n")),
        "{text}"
    );
}

#[test]
fn no_terminal_obeys_what_a_file_says() {
    let pod = "kind: Pod\nmetadata: {name: \"a\\e[2Jb\"}\nspec: {containers: [{name: \"\\a\"}]}\n";
    let text = printed(&Scene::new(pod).explains(&[]));
    assert!(
        text.chars().all(|it| it == '\n' || !it.is_control()),
        "{text:?}"
    );
}

#[test]
fn a_mistake_is_told_with_what_to_do() {
    let scene =
        Scene::new("kind: Workload\napiVersion: carto.run/v1alpha1\nmetadata: {name: web}\n");
    let told = refused(&scene.explains(&[]));
    assert!(
        told.contains("find that object with `carto tree workload/web`"),
        "{told}"
    );

    let scene = Scene::new("kind: Service\nmetadata: {name: web}\n");
    let told = refused(&scene.explains(&[]));
    assert!(
        told.contains("Service web is no pod, and has no pod template"),
        "{told}"
    );

    let scene = Scene::new("a: [b\n");
    let told = refused(&scene.explains(&[]));
    assert!(told.contains("app.yaml cannot be read as YAML"), "{told}");

    let told = refused(&scene.runs(&["nothing.yaml", "--presets", "presets"]));
    assert!(told.contains("there is no file nothing.yaml"), "{told}");
    assert!(
        told.contains("next: name a file with a pod or a workload"),
        "{told}"
    );

    let told = refused(&Scene::new(DEPLOYMENT).runs(&["app.yaml", "--presets", "app.yaml"]));
    assert!(
        told.contains("there is no PodPreset or ClusterPodPreset in app.yaml"),
        "{told}"
    );

    let told = refused(&Scene::new(DEPLOYMENT).runs(&["app.yaml"]));
    assert!(told.contains("no usable kubeconfig"), "{told}");
}

#[test]
fn presets_are_exported_as_policies_with_what_these_do_not_do() {
    let scene = Scene::new(DEPLOYMENT);
    let presets = PRESETS.split("---").take(2);
    let presets: Vec<&str> = presets.collect();
    fs::write(scene.0.path().join("two.yaml"), presets.join("---")).unwrap();
    let told = refused(&scene.carto(&["preset", "export", "two.yaml"]));
    assert!(
        told.contains("names no namespace") && told.contains("with -n"),
        "{told}"
    );
    let text = printed(&scene.carto(&["preset", "export", "two.yaml", "-n", "dev"]));
    assert!(text.contains("# - Nobody is told of a conflict"), "{text}");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let objects: Vec<&Value> = objects.iter().filter(|it| !it.is_null()).collect();
    let named: Vec<String> = objects
        .iter()
        .map(|it| format!("{} {}", it["kind"], it["metadata"]["name"]).replace('"', ""))
        .collect();
    let expected = [
        "MutatingAdmissionPolicy clusterpodpreset.proxies",
        "MutatingAdmissionPolicyBinding clusterpodpreset.proxies",
        "MutatingAdmissionPolicy podpreset.dev.db",
        "MutatingAdmissionPolicyBinding podpreset.dev.db",
    ];
    assert_eq!(named, expected);
    let namespaces = &objects[0]["spec"]["matchConstraints"]["namespaceSelector"];
    assert_eq!(namespaces["matchLabels"], json!({"team": "web"}));

    let told = refused(&scene.carto(&["preset", "export", "presets", "-n", "dev"]));
    assert!(
        told.contains("a preset in mode Audit changes nothing"),
        "{told}"
    );
}
