//! Deletions: exactly the object that was meant, and what it owns goes with it.

use std::sync::Arc;

use controller_kit::cluster::Cluster;
use controller_kit::mapper::Mapper;
use controller_kit::metrics::Metrics;
use controller_kit::openapi::SchemaCache;
use controller_kit::shutdown::Tasks;
use controller_kit::stamped::StampedWatches;
use controller_kit::submit::{Applicant, Deletion, Submitter};
use controller_kit::tokens::{Account, TokenCache, TokenSources};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use realizer::{ObjectRef, Removal, RemovalReason};
use serde_json::{Value, json};
use test_support::{ControlPlane, objects_in, service_account, shared_control_plane};

use crate::stage::{clock, watch_settings};

fn submitter(plane: &ControlPlane) -> Submitter {
    let metrics = Arc::new(Metrics::new());
    let cluster = Cluster::connect(plane.config().unwrap(), metrics.clone()).unwrap();
    let mapper = Arc::new(Mapper::new(cluster.clone()));
    let settings = watch_settings();
    let watches = StampedWatches::new(cluster.clone(), mapper.clone(), settings, Tasks::new());
    let sources = TokenSources {
        clock: clock(),
        jitter: Arc::new(|| 0.0),
    };
    let tokens = Arc::new(TokenCache::new(plane.client().unwrap(), sources, metrics));
    Submitter::new(
        cluster,
        mapper,
        watches,
        tokens,
        SchemaCache::default(),
        1 << 20,
    )
}

/// An account in the namespace that may do everything there.
async fn account(plane: &ControlPlane, namespace: &str) -> Account {
    plane
        .apply_yaml_in(
            namespace,
            &format!(
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: all, namespace: {namespace}}}\n\
                 roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}\n\
                 subjects: [{{kind: ServiceAccount, name: default, namespace: {namespace}}}]\n"
            ),
        )
        .await
        .unwrap();
    let user = service_account(namespace, "default");
    for right in ["delete configmaps", "delete jobs.batch"] {
        let right = format!("{right} in {namespace}");
        plane.until_it_may(&user, &right).await;
    }
    let account = api(plane, namespace, "v1", "ServiceAccount")
        .get("default")
        .await
        .unwrap();
    Account {
        namespace: namespace.to_owned(),
        name: "default".to_owned(),
        uid: account.metadata.uid.unwrap(),
    }
}

fn api(plane: &ControlPlane, namespace: &str, api_version: &str, kind: &str) -> Api<DynamicObject> {
    objects_in(&plane.client().unwrap(), namespace, api_version, kind)
}

async fn create(api: &Api<DynamicObject>, object: Value) -> String {
    let object = serde_json::from_value(object).unwrap();
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    created.metadata.uid.unwrap()
}

async fn remove(
    submitter: &Submitter,
    account: &Account,
    (api_version, kind): (&str, &str),
    uid: &str,
) -> Deletion {
    let applicant = Applicant {
        kind: "Workload",
        plural: "workloads",
        namespace: &account.namespace.parse().unwrap(),
        name: &"app".parse().unwrap(),
        uid: "of-app",
        generation: 1,
        now: jiff::Timestamp::UNIX_EPOCH,
        stamped_for: &[],
        account: account.clone(),
        is_live_owner: &|_, _, _| true,
        wanted_by_step: &|_, _| false,
    };
    let removal = Removal {
        resource: "step".into(),
        reason: RemovalReason::Orphan,
        object: ObjectRef {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: account.namespace.clone(),
            name: "a".to_owned(),
            qualified_resource: None,
            uid: Some(uid.to_owned()),
        },
    };
    let removed = submitter.remove(&applicant, &removal).await.unwrap();
    removed.unwrap()
}

/// The metadata of an object that the owner controls.
fn controlled() -> Value {
    let owner = json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": "app", "uid": "of-app", "controller": true,
    });
    json!({"name": "a", "ownerReferences": [owner]})
}

#[tokio::test]
async fn an_object_that_the_owner_does_not_control_is_not_deleted() {
    let plane = shared_control_plane().await.unwrap();
    let namespace = plane.create_namespace("removal").await.unwrap();
    let submitter = submitter(plane);
    let account = account(plane, &namespace).await;
    let configs = api(plane, &namespace, "v1", "ConfigMap");
    for (field, value) in [
        ("kind", "Nope"),
        ("apiVersion", "nope.example.com/v1"),
        ("name", "other"),
        ("uid", "of-other"),
    ] {
        let mut metadata = controlled();
        metadata["ownerReferences"][0][field] = json!(value);
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let uid = create(&configs, config).await;
        let deletion = remove(&submitter, &account, ("v1", "ConfigMap"), &uid).await;
        assert_eq!(deletion, Deletion::Needless, "{field}");
        let kept = configs.get("a").await.unwrap();
        assert_eq!(kept.metadata.deletion_timestamp, None, "{field}");
        configs.delete("a", &DeleteParams::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_namesake_of_the_object_is_not_deleted() {
    let plane = shared_control_plane().await.unwrap();
    let namespace = plane.create_namespace("removal").await.unwrap();
    let submitter = submitter(plane);
    let account = account(plane, &namespace).await;
    let configs = api(plane, &namespace, "v1", "ConfigMap");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": controlled()});
    let uid = create(&configs, config).await;

    // What was seen last is gone already; somebody else took the name.
    let former = "00000000-0000-4000-8000-000000000000";
    let deletion = remove(&submitter, &account, ("v1", "ConfigMap"), former).await;
    assert_eq!(deletion, Deletion::Needless);
    let kept = configs.get("a").await.unwrap();
    assert_eq!(
        (kept.metadata.uid, kept.metadata.deletion_timestamp),
        (Some(uid.clone()), None)
    );
    let deletion = remove(&submitter, &account, ("v1", "ConfigMap"), &uid).await;
    assert_eq!(deletion, Deletion::Accepted);
    assert_eq!(configs.get_opt("a").await.unwrap(), None);
    let again = remove(&submitter, &account, ("v1", "ConfigMap"), &uid).await;
    assert_eq!(again, Deletion::Needless, "it is told of once");
}

#[tokio::test]
async fn what_finalizers_hold_back_is_deleted_once() {
    let plane = shared_control_plane().await.unwrap();
    let namespace = plane.create_namespace("removal").await.unwrap();
    let submitter = submitter(plane);
    let account = account(plane, &namespace).await;
    let configs = api(plane, &namespace, "v1", "ConfigMap");
    let mut metadata = controlled();
    metadata["finalizers"] = json!(["test.run/wait"]);
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let uid = create(&configs, config).await;
    let mut deletions = Vec::new();
    for _ in 0..3 {
        deletions.push(remove(&submitter, &account, ("v1", "ConfigMap"), &uid).await);
    }
    assert_eq!(
        deletions,
        [Deletion::Accepted, Deletion::Needless, Deletion::Needless]
    );
    let released = json!({"metadata": {"finalizers": null}});
    let patch = Patch::Merge(&released);
    configs
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(configs.get_opt("a").await.unwrap(), None);
}

/// There is no garbage collector here. The server holds a Job back for it, to orphan its pods or to delete them first,
/// unless the request says that they go in the background; nothing said means orphans.
#[tokio::test]
async fn what_a_deleted_object_owns_goes_in_the_background() {
    let plane = shared_control_plane().await.unwrap();
    let namespace = plane.create_namespace("removal").await.unwrap();
    let submitter = submitter(plane);
    let account = account(plane, &namespace).await;
    let jobs = api(plane, &namespace, "batch/v1", "Job");
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/app"}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": controlled(), "spec": {"template": pod}});
    let uid = create(&jobs, job).await;
    let deletion = remove(&submitter, &account, ("batch/v1", "Job"), &uid).await;
    assert_eq!(deletion, Deletion::Accepted);
    assert_eq!(jobs.get_opt("a").await.unwrap(), None);
}
