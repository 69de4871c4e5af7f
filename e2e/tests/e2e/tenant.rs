//! What somebody tries who may `edit` one namespace, with the roles that are shipped and no others: each attempt is refused, by
//! name, by the API server or by a condition of his own object.

use e2e::binaries::SUPPLY_CHAIN_CONTROLLER;
use e2e::stack::{install, installed_controller};
use http::Request;
use kube::client::Client;
use serde_json::{Value, json};
use test_support::{ControlPlane, eventually, objects_in};

use crate::LIMIT;
use crate::webhook::send;

/// What there is beside the tenant: the chains of the platform, somebody else, and an account that is lent.
const PLATFORM: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: mallory}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mallory, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa, namespace: mallory}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: stamps, namespace: mallory}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, create, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: stamps, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: stamps}
subjects: [{kind: ServiceAccount, name: sa, namespace: mallory}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-others, namespace: mallory}
data: {by: hand}
---
apiVersion: v1
kind: Namespace
metadata: {name: victim}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa, namespace: victim}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: stamps, namespace: victim}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, create, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: stamps, namespace: victim}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: stamps}
subjects: [{kind: ServiceAccount, name: sa, namespace: victim}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: shared, namespace: victim}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: shared}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: shared, namespace: victim}]
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: config}
spec:
  params: [{name: target, default: settings}]
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(params.target)$}
    data: {of: $(workload.metadata.name)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: role}
spec:
  template:
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata: {name: $(workload.metadata.name)$}
    rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources: [{name: config, templateRef: {kind: ClusterTemplate, name: config}}]
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: lends}
spec:
  selector: {type: lent}
  allowedNamespaces: {matchLabels: {team: a}}
  serviceAccountRef: {name: shared, namespace: victim}
  resources: [{name: config, templateRef: {kind: ClusterTemplate, name: config}}]
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: roles}
spec:
  selector: {type: role}
  resources: [{name: role, templateRef: {kind: ClusterTemplate, name: role}}]
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, namespace: victim, labels: {type: web}}
spec: {serviceAccountName: sa}
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, namespace: mallory, labels: {type: web}}
spec: {serviceAccountName: sa}
";

/// What is refused by the API server: verb and resource as it names them, where (`-` for what has no namespace), and the name, `-`
/// for what is created or listed.
const FORBIDDEN: &str = "
# What decides is in statuses, and what is kept is in Artifacts.
patch workloads.carto.run/status mallory app
patch deliverables.carto.run/status mallory app
patch runnables.carto.run/status mallory app
create artifacts.carto.run mallory -
patch artifacts.carto.run mallory app
delete artifacts.carto.run mallory app
# What selects Secrets, and what is stamped.
create runnables.carto.run mallory -
create clustersupplychains.carto.run - -
patch clustersupplychains.carto.run - lends
patch clustersupplychains.carto.run/status - lends
patch clustertemplates.carto.run - config
delete clustertemplates.carto.run - config
create clusterruntemplates.carto.run - -
create clusterdeliveries.carto.run - -
# Where accounts are lent and tokens reach.
patch namespaces - mallory
create namespaces - -
create serviceaccounts/token kube-system generic-garbage-collector
create serviceaccounts/token carto-system supplychain-controller
create serviceaccounts/token victim shared
# The controllers: their keys, their Leases, their Pods.
get secrets carto-system carto-status-key
get secrets carto-system supplychain-controller-webhook
list secrets - -
patch leases.coordination.k8s.io carto-system supplychain-controller
delete leases.coordination.k8s.io carto-system supplychain-controller
create pods carto-system -
create pods/exec carto-system supplychain-controller
patch deployments.apps/scale carto-system supplychain-controller
# Their webhooks and their rights.
patch validatingwebhookconfigurations.admissionregistration.k8s.io - carto-supplychain-controller
create mutatingwebhookconfigurations.admissionregistration.k8s.io - -
patch clusterroles.rbac.authorization.k8s.io - carto-watched-kinds
create clusterroles.rbac.authorization.k8s.io - -
create clusterrolebindings.rbac.authorization.k8s.io - -
create rolebindings.rbac.authorization.k8s.io mallory -
# Somebody else's.
patch workloads.carto.run victim app
patch configmaps victim settings
";

/// An attempt as the table has it.
struct Attempt {
    verb: &'static str,
    group: &'static str,
    /// With the subresource.
    resource: String,
    /// As the API server tells it: that of a namespace is itself.
    namespace: Option<&'static str>,
    path: String,
}

fn attempt(line: &'static str) -> Attempt {
    let words: Vec<&str> = line.split(' ').collect();
    let [verb, resource, namespace, name] = words.try_into().unwrap();
    let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (plural, group) = plural.split_once('.').unwrap_or((plural, ""));
    let version = if group == "carto.run" {
        "v1alpha1"
    } else {
        "v1"
    };
    let namespace = Some(namespace).filter(|namespace| *namespace != "-");
    let within = namespace.map(|namespace| format!("namespaces/{namespace}"));
    let parts = [
        if group.is_empty() { "/api" } else { "/apis" },
        group,
        version,
        within.as_deref().unwrap_or_default(),
        plural,
        if name == "-" { "" } else { name },
        subresource,
    ];
    let path = parts.into_iter().filter(|part| !part.is_empty());
    let path = path.collect::<Vec<_>>().join("/");
    let separator = if subresource.is_empty() { "" } else { "/" };
    Attempt {
        verb,
        group,
        resource: format!("{plural}{separator}{subresource}"),
        namespace: namespace.or_else(|| (plural == "namespaces" && name != "-").then_some(name)),
        path,
    }
}

impl Attempt {
    fn request(&self) -> http::request::Builder {
        let (method, content) = match self.verb {
            "create" => ("POST", "application/json"),
            "patch" => ("PATCH", "application/merge-patch+json"),
            "delete" => ("DELETE", "application/json"),
            _ => ("GET", "application/json"),
        };
        let request = Request::builder().method(method).uri(&self.path);
        request.header("content-type", content)
    }

    /// What the API server says of it.
    fn said(&self) -> String {
        let scope = match self.namespace {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        format!(
            "is forbidden: User \"mallory\" cannot {} resource \"{}\" in API group \"{}\" {scope}",
            self.verb, self.resource, self.group
        )
    }
}

async fn platform() -> (ControlPlane, e2e::Controller, Client) {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .start()
        .await
        .unwrap();
    install(&control_plane).await.unwrap();
    let controller = installed_controller(&control_plane, SUPPLY_CHAIN_CONTROLLER)
        .await
        .unwrap();
    control_plane.apply_yaml(PLATFORM).await.unwrap();
    // The roles for people are summed up by the controller manager.
    let hand_in = "create workloads.carto.run in mallory";
    control_plane.until_it_may("mallory", hand_in).await;
    let mallory = control_plane.client_as_user("mallory", &[]).unwrap();
    (control_plane, controller, mallory)
}

#[tokio::test]
async fn somebody_with_edit_in_one_namespace_escalates_in_none_of_the_ways_that_are_tried() {
    let (control_plane, _controller, mallory) = platform().await;
    let admin = control_plane.client().unwrap();
    of_workload(&admin, "victim", "app", "Ready").await;
    of_workload(&admin, "mallory", "app", "Ready").await;

    let lines = FORBIDDEN.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut refused = 0;
    for line in lines {
        let attempt = attempt(line);
        let answer = send(
            &mallory,
            attempt.request(),
            &json!({"metadata": {"name": "x"}}),
        )
        .await;
        assert_eq!(answer.status, 403, "{line}: {answer:?}");
        assert!(
            answer.message.contains(&attempt.said()),
            "{line}: {answer:?}"
        );
        refused += 1;
    }
    assert!(refused >= 30, "{refused}");
    impersonates_nobody(&mallory).await;
    is_told_by_conditions(&mallory).await;
    forges_no_object_of_others(&admin, &mallory).await;
}

/// `edit` lets impersonate accounts of the namespace, and no others.
async fn impersonates_nobody(mallory: &Client) {
    for account in ["carto-system:supplychain-controller", "victim:shared"] {
        let request = Request::get("/api/v1/namespaces").header(
            "impersonate-user",
            format!("system:serviceaccount:{account}"),
        );
        let answer = send(mallory, request, &Value::Null).await;
        assert_eq!(answer.status, 403, "{answer:?}");
        // The rest differs from one minor version of Kubernetes to the next.
        let said = "User \"mallory\" cannot impersonate";
        assert!(answer.message.contains(said), "{answer:?}");
    }
}

/// What everybody may hand in, and what becomes of it: labels and spec of a Workload, the reason, and part of the message.
fn told() -> [(
    &'static str,
    &'static str,
    Value,
    &'static str,
    &'static str,
); 5] {
    let target = |name: &str| json!({"serviceAccountName": "sa", "params": [{"name": "target", "value": name}]});
    [
        (
            "takes-what-is-lent-to-others",
            "lent",
            json!({}),
            "NamespaceNotAllowed",
            "supply chain [lends] takes no workload of namespace [mallory]: its label [team] must be one of [a]",
        ),
        (
            "names-the-account-of-another-namespace",
            "web",
            json!({"serviceAccountName": "victim/shared"}),
            "ServiceAccountError",
            "[mallory/victim/shared]",
        ),
        (
            "takes-over-what-somebody-made",
            "web",
            target("of-others"),
            "ObjectContested",
            "of-others",
        ),
        (
            "leaves-the-namespace-by-a-name",
            "web",
            target("../../victim/configmaps/settings"),
            "TemplateRejectedByAPIServer",
            "settings",
        ),
        (
            "makes-a-role-of-the-cluster",
            "role",
            json!({"serviceAccountName": "sa"}),
            "TemplateRejectedByAPIServer",
            "User \"system:serviceaccount:mallory:sa\" cannot patch resource \"clusterroles\"",
        ),
    ]
}

async fn is_told_by_conditions(mallory: &Client) {
    for (name, kind, spec, ..) in told() {
        let workload = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Workload",
            "metadata": {"name": name, "labels": {"type": kind}}, "spec": spec});
        let create = Request::post("/apis/carto.run/v1alpha1/namespaces/mallory/workloads")
            .header("content-type", "application/json");
        let answer = send(mallory, create, &workload).await;
        assert_eq!(answer.status, 201, "{name}: {answer:?}");
    }
    for (name, .., reason, part) in told() {
        let ready = of_workload(mallory, "mallory", name, reason).await;
        assert_eq!(ready["status"], "False", "{name}: {ready}");
        let message = ready["message"].as_str().unwrap();
        assert!(message.contains(part), "{name}: {message}");
    }
    // What was there is untouched.
    let others = objects_in(mallory, "mallory", "v1", "ConfigMap");
    let others = others.get("of-others").await.unwrap();
    assert_eq!(others.data["data"], json!({"by": "hand"}));
}

/// An object in his own namespace that says it is made for somebody else's owner.
async fn forges_no_object_of_others(admin: &Client, mallory: &Client) {
    let workloads = objects_in(admin, "victim", "carto.run/v1alpha1", "Workload");
    let before = workloads.get("app").await.unwrap();
    let made = objects_in(admin, "victim", "v1", "ConfigMap");
    let made = made.get("settings").await.unwrap();
    let mut forged = serde_json::to_value(&made).unwrap();
    forged["metadata"] = json!({
        "name": "forged", "labels": made.metadata.labels, "annotations": made.metadata.annotations,
        "ownerReferences": made.metadata.owner_references,
    });
    forged["data"] = json!({"of": "mallory"});
    let create = Request::post("/api/v1/namespaces/mallory/configmaps")
        .header("content-type", "application/json");
    let answer = send(mallory, create, &forged).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    // The owner is reconciled after it, and says the same.
    let touch = json!({"metadata": {"annotations": {"again": "1"}}});
    let patch = kube::api::Patch::Merge(&touch);
    let by_default = kube::api::PatchParams::default();
    workloads.patch("app", &by_default, &patch).await.unwrap();
    of_workload(admin, "victim", "app", "Ready").await;
    let after = workloads.get("app").await.unwrap();
    let resources = |of: &kube::api::DynamicObject| of.data["status"]["resources"].clone();
    assert_eq!(resources(&after), resources(&before));
}

/// Waits until the condition Ready of a Workload has this reason.
async fn of_workload(client: &Client, namespace: &str, name: &str, reason: &str) -> Value {
    let workloads = objects_in(client, namespace, "carto.run/v1alpha1", "Workload");
    let what = format!("{namespace}/{name} is {reason}");
    eventually(&what, LIMIT, async || {
        let workload = workloads.get(name).await?;
        let conditions = workload.data["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|condition| condition["type"] == "Ready");
        let ready = ready.cloned().unwrap_or_default();
        anyhow::ensure!(ready["reason"] == reason, "{ready}");
        anyhow::Ok(Some(ready))
    })
    .await
}
