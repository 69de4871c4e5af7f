use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use controller_kit::metrics::Metrics;
use controller_kit::owner::ROUTES;
use controller_kit::shutdown::Tasks;
use controller_kit::webhook::{
    Answer, Configuration, Operation, SelfManaged, ServingCertificate, Validate, Validating,
    routes, serve,
};
use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use test_support::{ControlPlane, eventually};
use tokio::task::JoinSet;

use crate::stage::{PATIENCE, clock, crds};

struct DenyAll;

impl Validate for DenyAll {
    fn validate(&self, kind: &str, object: &Value, operation: Operation) -> Answer {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let error = (name != "good").then(|| format!("{kind} [{name}] is not good, {operation:?}"));
        Answer {
            error,
            ..Answer::default()
        }
    }
}

struct Replica {
    port: u16,
    certificate: Arc<ServingCertificate>,
    is_trusted: Box<dyn Fn() -> bool>,
    tasks: Tasks,
}

/// A webhook that makes its own certificate, as an administrator's client.
async fn replica(plane: &ControlPlane, namespace: &str, configuration: &str) -> Replica {
    let (certificate, metrics, tasks) = (
        Arc::new(ServingCertificate::new()),
        Arc::new(Metrics::new()),
        Tasks::new(),
    );
    let managed = SelfManaged {
        namespace: namespace.to_owned(),
        secret: "webhook".into(),
        names: vec!["localhost".into(), "127.0.0.1".into()],
        configurations: vec![Configuration::Validating(configuration.to_owned())],
        clock: clock(),
    };
    let is_trusted = managed.start(
        &plane.client().unwrap(),
        certificate.clone(),
        metrics.clone(),
        &tasks,
    );
    let address = serve(
        0,
        routes(&ROUTES, Validating::new(DenyAll)),
        certificate.clone(),
        metrics,
        &tasks,
    )
    .await
    .unwrap();
    Replica {
        port: address.port(),
        certificate,
        is_trusted: Box::new(is_trusted),
        tasks,
    }
}

impl Replica {
    fn configuration(&self, name: &str) -> String {
        let webhook = |webhook: &str, plural: &str, path: &str| {
            format!(
                r#"
  - name: {webhook}
    admissionReviewVersions: [v1beta1, v1]
    sideEffects: None
    failurePolicy: Fail
    timeoutSeconds: 30
    rules: [{{apiGroups: [carto.run], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [{plural}], scope: Cluster}}]
    clientConfig: {{url: "https://localhost:{port}{path}"}}"#,
                port = self.port
            )
        };
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: {name}}}\nwebhooks:{}{}\n",
            webhook(
                "supply-chain-validator.cartographer.com",
                "clustersupplychains",
                ROUTES[0].path
            ),
            webhook(
                "template-validator.cartographer.com",
                "clustertemplates",
                ROUTES[5].path
            ),
        )
    }
}

fn chain(name: &str) -> String {
    format!(
        "apiVersion: carto.run/v1alpha1\nkind: ClusterSupplyChain\nmetadata: {{name: {name}}}\nspec: {{selector: {{a: b}}, resources: []}}\n"
    )
}

/// What the API server says to a supply chain.
async fn verdict(plane: &ControlPlane, name: &str) -> Result<(), String> {
    plane
        .apply_yaml(&chain(name))
        .await
        .map(|_| ())
        .map_err(|error| format!("{error:#}"))
}

const DENIED: &str = r#"admission webhook "supply-chain-validator.cartographer.com" denied the request: ClusterSupplyChain [bad] is not good, Create"#;

async fn until_denied(plane: &ControlPlane) {
    eventually("the webhook is asked", PATIENCE, async || {
        match verdict(plane, "bad").await {
            Err(text) if text.contains(DENIED) => Ok(Some(())),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn without_cert_manager_the_api_server_asks_us_and_users_read_our_text() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds(crds()).await.unwrap();
    let namespace = plane.create_namespace("webhook").await.unwrap();
    let first = replica(&plane, &namespace, "carto").await;
    let second = replica(&plane, &namespace, "carto").await;
    eventually("both serve", PATIENCE, async || {
        first.certificate.is_loaded() && second.certificate.is_loaded()
    })
    .await;
    // Nobody asks, so nobody waits.
    eventually("there is nothing to be trusted by", PATIENCE, async || {
        (first.is_trusted)()
    })
    .await;

    // The configuration is installed after the controller.
    plane
        .apply_yaml(&first.configuration("carto"))
        .await
        .unwrap();
    until_denied(&plane).await;
    assert_eq!(verdict(&plane, "good").await, Ok(()));

    // The other replica serves under the same authority.
    plane
        .apply_yaml(&second.configuration("carto"))
        .await
        .unwrap();
    until_denied(&plane).await;

    // Whoever takes the bundle away gets it back.
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(plane.client().unwrap());
    let emptied = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    let emptied: Patch<()> = Patch::Json(serde_json::from_value(emptied).unwrap());
    configurations
        .patch("carto", &PatchParams::default(), &emptied)
        .await
        .unwrap();
    eventually("the bundle is back", PATIENCE, async || {
        let configuration = configurations.get("carto").await.unwrap();
        let webhooks = configuration.webhooks.unwrap();
        webhooks[0].client_config.ca_bundle.is_some()
    })
    .await;
    until_denied(&plane).await;

    // A lost Secret is made anew, by one of the two, and both serve what it holds. Neither puts the old authority back.
    let (told, following) = bundles(configurations.clone(), "carto");
    let told = || told.lock().unwrap().len();
    eventually("the bundle is known", PATIENCE, async || told() == 1).await;
    let secrets: Api<Secret> = Api::namespaced(plane.client().unwrap(), &namespace);
    let before = secrets.get("webhook").await.unwrap();
    secrets
        .delete("webhook", &DeleteParams::default())
        .await
        .unwrap();
    let after = eventually("a new secret", PATIENCE, async || {
        secrets.get_opt("webhook").await.unwrap()
    })
    .await;
    assert_ne!(before.data, after.data);
    let (before, after) = (before.data.unwrap(), after.data.unwrap());
    assert_eq!(
        after["ca-lost.crt"], before["ca.crt"],
        "what is shown stays trusted"
    );
    for replica in [&first, &second] {
        plane
            .apply_yaml(&replica.configuration("carto"))
            .await
            .unwrap();
        until_denied(&plane).await;
    }
    eventually("the other bundle is known", PATIENCE, async || told() > 1).await;
    drop(following);
    assert_eq!(told(), 2, "one of before has come back");

    for replica in [first, second] {
        replica.tasks.token().cancel();
        replica.tasks.join(PATIENCE).await.unwrap();
    }
}

/// Each bundle that the first webhook of a configuration has from now on, until the task is dropped.
fn bundles(
    configurations: Api<ValidatingWebhookConfiguration>,
    name: &str,
) -> (Arc<Mutex<Vec<ByteString>>>, JoinSet<()>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let (known, name) = (told.clone(), name.to_owned());
    let following = async move {
        let mut stream = std::pin::pin!(watcher::watch_object(configurations, &name));
        while let Some(event) = stream.next().await {
            let webhooks = event.unwrap().and_then(|found| found.webhooks);
            let mut webhooks = webhooks.unwrap_or_default().into_iter();
            let bundle = webhooks.next().and_then(|it| it.client_config.ca_bundle);
            let mut known = known.lock().unwrap();
            if let Some(bundle) = bundle
                && known.last() != Some(&bundle)
            {
                known.push(bundle);
            }
        }
    };
    let mut task = JoinSet::new();
    task.spawn(following);
    (told, task)
}

/// What deploy/install.yaml grants, to whom, and the configuration that it installs. Deployments and Services make no sense
/// without a node.
fn installed() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/install.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents.retain(|document| {
        [
            "Namespace",
            "ServiceAccount",
            "Role",
            "RoleBinding",
            "ClusterRole",
            "ClusterRoleBinding",
            "ValidatingWebhookConfiguration",
        ]
        .iter()
        .any(|kind| document["kind"] == *kind)
    });
    let documents: Vec<String> = documents.iter().map(Value::to_string).collect();
    documents.join("\n---\n")
}

#[tokio::test]
async fn the_rights_of_the_install_manifest_suffice() {
    const NAMESPACE: &str = "carto-system";
    const ACCOUNT: &str = "supplychain-controller";
    const CONFIGURATION: &str = "carto-supplychain-controller";
    const SECRET: &str = "supplychain-controller-webhook";
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let plane = ControlPlane::builder().audit().start().await.unwrap();
    // At first the configuration may not be written to.
    let lacking = installed().replace(r#"["list","watch","patch"]"#, r#"["list","watch"]"#);
    assert_ne!(lacking, installed());
    plane.apply_yaml(&lacking).await.unwrap();
    let (certificate, metrics, tasks) = (
        Arc::new(ServingCertificate::new()),
        Arc::new(Metrics::new()),
        Tasks::new(),
    );
    let managed = SelfManaged {
        namespace: NAMESPACE.to_owned(),
        secret: SECRET.to_owned(),
        names: vec!["localhost".into()],
        configurations: vec![Configuration::Validating(CONFIGURATION.to_owned())],
        clock: clock(),
    };
    let account = plane.client_as_service_account(NAMESPACE, ACCOUNT).await;
    let is_trusted = managed.start(&account.unwrap(), certificate.clone(), metrics, &tasks);
    eventually("a certificate", PATIENCE, async || certificate.is_loaded()).await;
    let patch = ("patch", "validatingwebhookconfigurations");
    let patch = (patch.0.to_owned(), patch.1.to_owned());
    eventually("a patch was refused", PATIENCE, async || {
        asked(&plane, &user, true).contains(&patch)
    })
    .await;
    assert!(!is_trusted());
    plane.apply_yaml(&installed()).await.unwrap();
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(plane.client().unwrap());
    eventually("every bundle is written", PATIENCE, async || {
        let configuration = configurations.get(CONFIGURATION).await.unwrap();
        let webhooks = configuration.webhooks.unwrap();
        assert_eq!(webhooks.len(), ROUTES.len());
        webhooks
            .iter()
            .all(|webhook| webhook.client_config.ca_bundle.is_some())
    })
    .await;
    eventually("it is known to be trusted", PATIENCE, async || is_trusted()).await;

    // A damaged Secret is replaced as one that is about to expire is.
    let secrets: Api<Secret> = Api::namespaced(plane.client().unwrap(), NAMESPACE);
    let damage: Patch<Value> = Patch::Merge(json!({"data": {"tls.crt": null}}));
    secrets
        .patch(SECRET, &PatchParams::default(), &damage)
        .await
        .unwrap();
    eventually("the secret is whole again", PATIENCE, async || {
        let data = secrets.get(SECRET).await.unwrap().data.unwrap();
        data.contains_key("tls.crt")
    })
    .await;

    eventually("everything was asked and allowed", PATIENCE, async || {
        // A right that was granted a moment ago may be refused at first; what is never allowed is missing.
        let (refused, allowed) = (asked(&plane, &user, true), asked(&plane, &user, false));
        let used = [
            ("create", "secrets"),
            ("update", "secrets"),
            ("patch", "validatingwebhookconfigurations"),
        ];
        let used = used.map(|(verb, resource)| (verb.to_owned(), resource.to_owned()));
        if refused.is_subset(&allowed) && used.iter().all(|used| allowed.contains(used)) {
            return Ok(());
        }
        Err(format!("refused: {refused:?}, allowed: {allowed:?}"))
    })
    .await;
    tasks.token().cancel();
    tasks.join(PATIENCE).await.unwrap();
}

/// Verb and resource of what a user asked for and was refused, or was not.
fn asked(plane: &ControlPlane, user: &str, refused: bool) -> BTreeSet<(String, String)> {
    let mut requests = plane.audit_events().unwrap();
    requests.retain(|request| {
        let status = request.response_status.as_ref();
        request.user.username == user
            && status.is_some_and(|status| (status.code == 403) == refused)
    });
    requests
        .into_iter()
        .filter_map(|request| Some((request.verb, request.object_ref?.resource)))
        .collect()
}
