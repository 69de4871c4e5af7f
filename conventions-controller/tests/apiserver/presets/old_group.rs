//! Manifests for Kubernetes until 1.19, in the group of that time: those of the design of presets,
//! with its slips mended.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::PATIENCE;

use super::stage::{Created, Pods, open};

const PRESETS: &str = r#"
apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata:
  name: allow-database
spec:
  selector:
    matchLabels:
      role: frontend
  env:
    - name: DB_PORT
      value: "6379"
    - name: duplicate_key
      value: FROM_ENV
    - name: expansion
      value: $(REPLACE_ME)
  envFrom:
    - configMapRef:
        name: etcd-env-config
  volumeMounts:
    - mountPath: /cache
      name: cache-volume
    - mountPath: /etc/app/config.json
      readOnly: true
      name: secret-volume
  volumes:
    - name: cache-volume
      emptyDir: {}
    - name: secret-volume
      secret:
        secretName: config-details
---
apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata:
  name: proxy
spec:
  selector:
    matchLabels:
      role: frontend
  volumeMounts:
    - mountPath: /etc/proxy/configs
      name: proxy-volume
  volumes:
    - name: proxy-volume
      emptyDir: {}
"#;

const POD: &str = r"
apiVersion: v1
kind: Pod
metadata:
  name: website
  labels:
    app: website
    role: frontend
spec:
  containers:
    - name: website
      image: ecorp/website
      ports:
        - containerPort: 80
";

/// What was not there before admission: that of service accounts adds its own.
fn without_token(list: &Value) -> Vec<Value> {
    let is_token = |it: &Value| it["name"].as_str().unwrap().starts_with("kube-api-access-");
    let items = list.as_array().unwrap().iter();
    items.filter(|it| !is_token(it)).cloned().collect()
}

async fn with_old_group() -> Pods {
    let pods = open().await;
    let crds = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/conventions/optional-crds");
    pods.plane.install_crds(crds).await.unwrap();
    pods
}

#[tokio::test]
async fn manifests_of_the_old_group_apply_unchanged_and_their_kind_may_come_later() {
    let pods = with_old_group().await;
    pods.apply(PRESETS).await;
    let pod = test_support::documents(POD).unwrap().remove(0);
    let both = |created: &Created| {
        let marked = |name| created.marker(name).is_some();
        marked("allow-database") && marked("proxy")
    };
    pods.until_tried("a pod gets both presets", &pod, both)
        .await;
    let created = pods.create_pod(pod).await;
    let container = &created.pod["spec"]["containers"][0];
    let env = json!([
        {"name": "DB_PORT", "value": "6379"}, {"name": "duplicate_key", "value": "FROM_ENV"},
        {"name": "expansion", "value": "$(REPLACE_ME)"},
    ]);
    assert_eq!(container["env"], env);
    assert_eq!(
        container["envFrom"],
        json!([{"configMapRef": {"name": "etcd-env-config"}}])
    );
    let mounts = json!([
        {"mountPath": "/cache", "name": "cache-volume"},
        {"mountPath": "/etc/app/config.json", "name": "secret-volume", "readOnly": true},
        {"mountPath": "/etc/proxy/configs", "name": "proxy-volume"},
    ]);
    assert_eq!(json!(without_token(&container["volumeMounts"])), mounts);
    let volumes = json!([
        {"name": "cache-volume", "emptyDir": {}},
        {"name": "secret-volume", "secret": {"secretName": "config-details", "defaultMode": 420}},
        {"name": "proxy-volume", "emptyDir": {}},
    ]);
    assert_eq!(
        json!(without_token(&created.pod["spec"]["volumes"])),
        volumes
    );
    eventually(
        "the statuses of the old group are written",
        PATIENCE,
        async || {
            let preset = pods
                .get("settings.k8s.io/v1alpha1", "PodPreset", "proxy")
                .await;
            let applied = preset.unwrap()["status"]["applied"].clone();
            if applied == 1 { Ok(()) } else { Err(applied) }
        },
    )
    .await;
}
