//! The policies in `deploy/optional` that bound the controllers' strongest rights, against who tries to get around them.

use e2e::binaries::{CONVENTIONS_CONTROLLER, SUPPLY_CHAIN_CONTROLLER};
use e2e::manifests::documents;
use e2e::stack::{install, user};
use http::Request;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use test_support::{CONTROLLERS_NAMESPACE, ControlPlane, all_objects, eventually};

use crate::LIMIT;
use crate::rights::WATCH_KPACK;
use crate::terminal::Terminal;
use crate::webhook::send;

/// Types it until it is refused with this text: policies, and what they read, come into force a moment later.
async fn until_refused(terminal: &Terminal, script: &str, part: &str) {
    eventually(&format!("refused: {script}"), LIMIT, async || {
        let (succeeded, said) = terminal.try_typing(script);
        anyhow::ensure!(!succeeded && said.contains(part), "{said}");
        anyhow::Ok(())
    })
    .await;
}

async fn until_done(terminal: &Terminal, script: &str) {
    eventually(&format!("done: {script}"), LIMIT, async || {
        let (succeeded, said) = terminal.try_typing(script);
        anyhow::ensure!(succeeded, "{said}");
        anyhow::Ok(())
    })
    .await;
}

/// Asks for a token of an account as one of `carto-system`.
fn token(asks: &str, namespace: &str, account: &str, more: &str) -> String {
    format!(
        "kubectl -n {namespace} create token {account} --as=system:serviceaccount:{CONTROLLERS_NAMESPACE}:{asks} {more}"
    )
}

#[tokio::test]
async fn with_the_token_policy_controllers_get_short_tokens_of_tenants_and_nothing_else() {
    let control_plane = ControlPlane::start().await.unwrap();
    let terminal = Terminal::new(&control_plane);
    install(&control_plane).await.unwrap();
    let tenant = control_plane.create_namespace("tenant").await.unwrap();
    let other = control_plane.create_namespace("other").await.unwrap();
    terminal.types(&format!(
        "kubectl label namespace {tenant} kube-system {CONTROLLERS_NAMESPACE} carto.run/tenant=true
         kubectl -n kube-system create serviceaccount boss
         kubectl create clusterrole tokens --verb=create --resource=serviceaccounts/token
         kubectl create clusterrolebinding tokens --clusterrole=tokens --serviceaccount={CONTROLLERS_NAMESPACE}:{CONVENTIONS_CONTROLLER}"
    ));
    let controller = SUPPLY_CHAIN_CONTROLLER;
    let short = "--duration=20m";
    terminal.types(&token(controller, &other, "default", "--duration=2h"));
    let conventions = "create serviceaccounts/token in dev named app";
    control_plane
        .until_it_may(&user(CONVENTIONS_CONTROLLER), conventions)
        .await;

    terminal.types("kubectl apply -f deploy/optional/token-policy.yaml");
    let no_label = format!(
        "carto gets tokens only in namespaces with the label carto.run/tenant=true, and {other} has none"
    );
    until_refused(
        &terminal,
        &token(controller, &other, "default", short),
        &no_label,
    )
    .await;
    terminal.types(&token(controller, &tenant, "default", short));

    let long = "carto gets tokens for twenty minutes at most";
    let for_others = |audiences: &str| {
        format!("carto gets tokens for the API server alone, and not for [{audiences}]")
    };
    let own = "https://kubernetes.default.svc";
    let escapes = [
        (
            token(controller, "kube-system", "boss", short),
            "carto gets no tokens in namespace kube-system".to_owned(),
        ),
        (
            token(
                controller,
                CONTROLLERS_NAMESPACE,
                CONVENTIONS_CONTROLLER,
                short,
            ),
            "carto gets no tokens in namespace carto-system".to_owned(),
        ),
        (
            token(controller, &tenant, "default", "--duration=21m"),
            long.to_owned(),
        ),
        // It is an hour then.
        (token(controller, &tenant, "default", ""), long.to_owned()),
        (
            token(
                controller,
                &tenant,
                "default",
                &format!("{short} --audience=vault"),
            ),
            for_others("vault"),
        ),
        (
            token(
                controller,
                &tenant,
                "default",
                &format!("{short} --audience={own} --audience=vault"),
            ),
            for_others(&format!("{own}, vault")),
        ),
        (
            token(CONVENTIONS_CONTROLLER, &other, "default", short),
            no_label.clone(),
        ),
    ];
    for (script, said) in escapes {
        let refused = terminal.is_refused(&script);
        assert!(refused.contains(&said), "{script}\n{refused}");
    }

    let without = format!("carto.run/tenant=true, and {tenant} has none");
    for label in ["carto.run/tenant=yes", "carto.run/tenant-"] {
        terminal.types(&format!(
            "kubectl label --overwrite namespace {tenant} {label}"
        ));
        until_refused(
            &terminal,
            &token(controller, &tenant, "default", short),
            &without,
        )
        .await;
    }
    // Everybody else is as before.
    terminal.types(&format!(
        "kubectl -n {other} create token default --duration=3h"
    ));
}

/// Somebody who may write ClusterRoles, and may watch whatever he puts into them.
const AUTHOR: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: author}
rules:
  - {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [get, create, update, patch]}
  - {apiGroups: ['*'], resources: ['*'], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: author}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: author}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: author}]
";

#[tokio::test]
async fn who_may_write_cluster_roles_widens_what_the_controllers_watch_only_if_he_may_bind_it() {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .start()
        .await
        .unwrap();
    let terminal = Terminal::new(&control_plane);
    install(&control_plane).await.unwrap();
    control_plane.apply_yaml(AUTHOR).await.unwrap();
    terminal.types("kubectl apply -f deploy/optional/watched-roles-policy.yaml");
    control_plane.until_it_may("author", "watch secrets").await;
    let labelled = "kubectl label --overwrite clusterrole mine carto.run/aggregate-to-watched=true --as=author";
    let reserved = "it is reserved to who may bind ClusterRole carto-watched";
    until_done(
        &terminal,
        "kubectl create clusterrole mine --verb=list,watch --resource=secrets --as=author",
    )
    .await;
    until_refused(&terminal, &format!("{labelled} --dry-run=server"), reserved).await;

    // An administrator may, and what he adds is watched.
    control_plane.apply_yaml(WATCH_KPACK).await.unwrap();
    let controller = user(SUPPLY_CHAIN_CONTROLLER);
    control_plane
        .until_it_may(&controller, "watch images.kpack.io")
        .await;

    let rule = r#"[{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}}]"#;
    let escapes = [
        labelled.to_owned(),
        format!("kubectl patch clusterrole carto-watched-kpack --as=author --type=json -p '{rule}'"),
        "kubectl label clusterrole carto-watched-kpack carto.run/aggregate-to-watched- --as=author".to_owned(),
        "kubectl get clusterrole mine -o yaml | sed '/uid:/d;/resourceVersion:/d;s/name: mine/name: other\\n  labels: {carto.run\\/aggregate-to-watched: \"true\"}/' \
         | kubectl create --as=author -f -"
            .to_owned(),
    ];
    for script in escapes {
        let refused = terminal.is_refused(&script);
        assert!(refused.contains(reserved), "{script}\n{refused}");
    }
    assert!(
        !control_plane
            .may(&controller, "watch secrets")
            .await
            .unwrap()
    );

    // Who installs the kinds of templates is let do it.
    terminal.types(
        "kubectl create clusterrole watched-author --verb=bind --resource=clusterroles.rbac.authorization.k8s.io --resource-name=carto-watched
         kubectl create clusterrolebinding watched-author --clusterrole=watched-author --user=author",
    );
    until_done(&terminal, labelled).await;
}

const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// A webhook configuration of ours, on the API server.
async fn webhooks_of(control_plane: &ControlPlane, kind: &str, manifest: &str) -> String {
    let found = documents(manifest).unwrap();
    let found = found.into_iter().find(|object| object["kind"] == kind);
    let mut found = found.unwrap();
    // Nobody answers here, and nobody is to be asked.
    for webhook in found["webhooks"].as_array_mut().unwrap() {
        webhook["failurePolicy"] = json!("Ignore");
    }
    let name = found["metadata"]["name"].as_str().unwrap().to_owned();
    let object: DynamicObject = serde_json::from_value(found).unwrap();
    let configurations = all_objects(&control_plane.client().unwrap(), ADMISSION, kind);
    let by_default = PostParams::default();
    configurations.create(&by_default, &object).await.unwrap();
    name
}

/// What each field of a webhook, and of the configuration, is set to; the `caBundle` is not among it.
fn changes(kind: &str) -> Vec<Value> {
    let of_webhook = |path: &str, value: Value| json!({"op": "add", "path": format!("/webhooks/0/{path}"), "value": value});
    let of_metadata = |path: &str, value: Value| json!({"op": "add", "path": format!("/metadata/{path}"), "value": value});
    let everything = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"], "scope": "*"}]);
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "0d7f1a5e-0000-4000-8000-000000000000"}]);
    let selector = json!({"matchLabels": {"a": "b"}});
    let mut changes = vec![
        of_webhook("name", json!("other.cartographer.com")),
        of_webhook("clientConfig", json!({"url": "https://evil.example/x"})),
        of_webhook("clientConfig/service/name", json!("evil")),
        of_webhook("clientConfig/service/namespace", json!("evil")),
        of_webhook("clientConfig/service/path", json!("/evil")),
        of_webhook("clientConfig/service/port", json!(666)),
        of_webhook("rules", everything),
        of_webhook("failurePolicy", json!("Fail")),
        of_webhook("matchPolicy", json!("Exact")),
        of_webhook("namespaceSelector", selector.clone()),
        of_webhook("objectSelector", selector),
        of_webhook("sideEffects", json!("NoneOnDryRun")),
        of_webhook("timeoutSeconds", json!(29)),
        of_webhook("admissionReviewVersions", json!(["v1", "v1beta2"])),
        of_webhook(
            "matchConditions",
            json!([{"name": "never", "expression": "false"}]),
        ),
        json!({"op": "remove", "path": "/webhooks/0"}),
        of_metadata("labels", json!({"a": "b"})),
        of_metadata("annotations", json!({"a": "b"})),
        of_metadata("ownerReferences", owner),
        of_metadata("finalizers", json!(["evil.example/x"])),
    ];
    if kind == "MutatingWebhookConfiguration" {
        changes.push(of_webhook("reinvocationPolicy", json!("IfNeeded")));
    }
    changes
}

#[tokio::test]
async fn the_right_to_a_ca_bundle_changes_nothing_else_of_a_webhook_configuration() {
    let control_plane = ControlPlane::start().await.unwrap();
    let terminal = Terminal::new(&control_plane);
    install(&control_plane).await.unwrap();
    let authority = terminal.types(
        "kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}'
         file=$(kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority}')
         if [[ -n $file ]]; then base64 -w0 \"$file\"; fi",
    );
    let bundle =
        json!({"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": authority});
    let configurations = [
        (
            SUPPLY_CHAIN_CONTROLLER,
            "ValidatingWebhookConfiguration",
            "deploy/install.yaml",
        ),
        (
            CONVENTIONS_CONTROLLER,
            "MutatingWebhookConfiguration",
            "deploy/conventions/install.yaml",
        ),
    ];
    let mut is_applied = false;
    for (controller, kind, manifest) in configurations {
        let name = webhooks_of(&control_plane, kind, manifest).await;
        let client = control_plane.client_as_service_account(CONTROLLERS_NAMESPACE, controller);
        let client = client.await.unwrap();
        let path = format!("/apis/{ADMISSION}/{}s/{name}", kind.to_lowercase());
        let patched = async |change: &Value, query: &str| {
            let patch = Request::patch(format!("{path}{query}"))
                .header("content-type", "application/json-patch+json");
            send(&client, patch, &json!([change])).await
        };
        if !is_applied {
            // RBAC lets it do what the policy is for.
            for change in changes(kind) {
                let answer = patched(&change, "?dryRun=All").await;
                assert_eq!(answer.status, 200, "{change}: {answer:?}");
            }
            terminal.types("kubectl apply -f deploy/optional/ca-bundle-policy.yaml");
            is_applied = true;
        }
        let said = format!(
            "carto changes nothing of webhook configuration {name} but webhooks[*].clientConfig.caBundle"
        );
        eventually("the policy is in force", LIMIT, async || {
            let answer = patched(&changes(kind)[0], "?dryRun=All").await;
            anyhow::ensure!(answer.message.contains(&said), "{answer:?}");
            anyhow::Ok(())
        })
        .await;
        for change in changes(kind) {
            let answer = patched(&change, "").await;
            assert!(answer.message.contains(&said), "{change}: {answer:?}");
        }
        let answer = patched(&bundle, "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        // An administrator changes what he likes.
        terminal.types(&format!("kubectl label {kind} {name} a=b"));
    }
}

/// A field that a later Kubernetes adds would be anybody's to change.
#[tokio::test]
async fn the_policy_of_ca_bundles_names_every_field_that_a_webhook_has() {
    let control_plane = ControlPlane::start().await.unwrap();
    let request = Request::get("/openapi/v3/apis/admissionregistration.k8s.io/v1");
    let request = request.body(Vec::new()).unwrap();
    let client = control_plane.client().unwrap();
    let mut document: Value = client.request(request).await.unwrap();
    let schemas = document["components"]["schemas"].take();
    let policy = documents("deploy/optional/ca-bundle-policy.yaml").unwrap();
    let policy = policy[0]["spec"]["validations"][0]["expression"].clone();
    let policy = policy.as_str().unwrap();
    let mut named = 0;
    for kind in ["ValidatingWebhook", "MutatingWebhook"] {
        let schema = &schemas[format!("io.k8s.api.admissionregistration.v1.{kind}")];
        for field in schema["properties"].as_object().unwrap().keys() {
            let ways = [
                format!("now.{field} =="),
                format!("now.?{field} =="),
                format!("dyn(now).?{field} =="),
            ];
            // Of a connection the CA bundle alone is free.
            let is_compared =
                ways.iter().any(|way| policy.contains(way)) || field == "clientConfig";
            assert!(
                is_compared,
                "{kind} has {field}, which the policy does not name"
            );
            named += 1;
        }
    }
    let connection = &schemas["io.k8s.api.admissionregistration.v1.WebhookClientConfig"];
    let fields: Vec<&String> = connection["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(fields, ["caBundle", "service", "url"]);
    assert!(named > 20, "{named}");
}
