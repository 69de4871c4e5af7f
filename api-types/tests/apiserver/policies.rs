//! The admission policies say what the webhook says.

use std::time::Duration;

use api_types::validation::{AnyPath, validate};
use serde_json::{Value, json};
use test_support::{ControlPlane, eventually};

use crate::corpus::{self, Case};
use crate::server::{Server, collection, crd, deploy, manifests};

const LIMIT: Duration = Duration::from_mins(1);
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

fn path(kind: &str) -> String {
    match kind {
        "ValidatingAdmissionPolicy" => format!("{ADMISSION}/validatingadmissionpolicies"),
        "ValidatingAdmissionPolicyBinding" => {
            format!("{ADMISSION}/validatingadmissionpolicybindings")
        }
        other => panic!("{other} is not a policy"),
    }
}

async fn install(server: &Server) -> Vec<Value> {
    let policies = manifests("policies");
    for policy in &policies {
        let reply = server
            .create(&path(policy["kind"].as_str().unwrap()), policy)
            .await;
        assert!(reply.is_success(), "{reply:?}");
        assert_eq!(
            reply.warnings,
            Vec::<String>::new(),
            "{}",
            policy["metadata"]["name"]
        );
    }
    policies
}

/// The warnings of the API server's own type checker about a policy, which runs in the controller manager.
async fn type_warnings(server: &Server, name: &str) -> Vec<Value> {
    let object = format!("{}/{name}", path("ValidatingAdmissionPolicy"));
    let status = eventually(
        &format!("the controller manager checks {name}"),
        LIMIT,
        async || {
            let status = server.get(&object).await.body["status"].clone();
            status.get("observedGeneration").is_some().then_some(status)
        },
    )
    .await;
    status["typeChecking"]["expressionWarnings"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

#[tokio::test]
async fn policies_install_without_warnings_and_their_types_check() {
    let home = tempfile::tempdir().unwrap();
    {
        let control_plane = ControlPlane::builder()
            .data_dir(home.path())
            .start()
            .await
            .unwrap();
        control_plane.install_crds(deploy("crds")).await.unwrap();
    }
    // The controller manager looks up schemas among the kinds it found when it started, and skips the others silently.
    let control_plane = ControlPlane::builder()
        .data_dir(home.path())
        .controller_manager(true)
        .start()
        .await
        .unwrap();
    let server = Server::of(&control_plane);
    let mut policies = install(&server).await;
    policies.retain(|policy| policy["kind"] == "ValidatingAdmissionPolicy");
    assert_eq!(policies.len(), 6);

    let mut mistaken = policies[0].clone();
    mistaken["metadata"]["name"] = json!("mistaken");
    mistaken["spec"]["variables"] = json!([]);
    mistaken["spec"]["validations"] = json!([{"expression": "object.spec.nothing == 1"}]);
    assert!(
        server
            .create(&path("ValidatingAdmissionPolicy"), &mistaken)
            .await
            .is_success()
    );
    assert_eq!(
        type_warnings(&server, "mistaken").await.len(),
        1,
        "the type checker is not at work"
    );

    for policy in policies {
        let name = policy["metadata"]["name"].as_str().unwrap();
        assert_eq!(
            type_warnings(&server, name).await,
            Vec::<Value>::new(),
            "{name}"
        );
    }
}

/// Waits until the policy for this kind refuses something that it must refuse.
async fn until_enforced(server: &Server, case: &Case) {
    eventually(
        &format!("the policy for {} is in force", case.kind),
        LIMIT,
        async || {
            !server
                .create(
                    &format!("{}?dryRun=All", collection(&crd(&case.kind))),
                    &case.object,
                )
                .await
                .is_success()
        },
    )
    .await;
}

#[tokio::test]
async fn policies_and_webhook_say_the_same() {
    let control_plane = ControlPlane::start().await.unwrap();
    control_plane.install_crds(deploy("crds")).await.unwrap();
    let server = Server::of(&control_plane);
    install(&server).await;
    let cases = corpus::cases();
    let mut awaited = std::collections::BTreeSet::new();
    for case in cases
        .iter()
        .filter(|case| case.policy.is_some() && !case.refused_by_schema)
    {
        let own_policy = case.rule.contains("observed");
        if awaited.insert((case.kind.clone(), own_policy)) {
            until_enforced(&server, case).await;
        }
    }
    assert_eq!(awaited.len(), 11, "{awaited:?}");
    for case in cases {
        let Case {
            rule,
            kind,
            object,
            error,
            policy,
            refused_by_schema,
            ..
        } = case;
        let reply = server
            .create(&format!("{}?dryRun=All", collection(&crd(&kind))), &object)
            .await;
        if refused_by_schema {
            assert_eq!(reply.status, 422, "{rule}: {object}");
            assert!(
                !reply.message().contains("ValidatingAdmissionPolicy"),
                "{rule}: {}",
                reply.message()
            );
            continue;
        }
        match policy {
            Some(text) => {
                assert!(
                    reply.message().contains("denied request"),
                    "{rule}: {object} {reply:?}"
                );
                assert!(
                    reply.message().ends_with(&text),
                    "{rule}\n  {}\n  {text}",
                    reply.message()
                );
            }
            None => assert!(reply.is_success(), "{rule}: {object} {}", reply.message()),
        }
        // The verdict of the code, for what needs no parser of paths.
        if !case.warnings.is_empty()
            || error
                .as_ref()
                .is_some_and(|error| error.contains("jsonpath"))
        {
            continue;
        }
        assert_eq!(
            validate(&kind, &object, &AnyPath).error,
            error,
            "{rule}: {object}"
        );
    }
}

#[tokio::test]
async fn updates_are_checked_too_and_big_blueprints_stay_within_the_cost_limits() {
    let control_plane = ControlPlane::start().await.unwrap();
    control_plane.install_crds(deploy("crds")).await.unwrap();
    let server = Server::of(&control_plane);
    install(&server).await;
    let chains = collection(&crd("ClusterSupplyChain"));
    let chain = |name: &str, resources: Vec<Value>| {
        json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterSupplyChain", "metadata": {"name": name},
            "spec": {"selector": {"type": "web"}, "resources": resources}})
    };
    let step = |index: usize| {
        let options: Vec<Value> = (0..5)
            .map(|option| {
                json!({"name": format!("t{option}"), "selector": {"matchLabels": {"example.com/flavour": format!("v{option}")},
                    "matchFields": [{"key": "spec.source.git.url", "operator": "Exists"}]}})
            })
            .collect();
        let sources: Vec<Value> = (0..index.min(3))
            .map(|input| json!({"name": format!("i{input}"), "resource": format!("step-{}", index - input - 1)}))
            .collect();
        json!({"name": format!("step-{index}"), "templateRef": {"kind": "ClusterSourceTemplate", "options": options},
            "sources": sources, "params": [{"name": "p", "value": index}]})
    };
    let bad = chain("bad", vec![step(0), step(0)]);
    eventually("the policy is in force", LIMIT, async || {
        !server.create(&chains, &bad).await.is_success()
    })
    .await;

    let reply = server
        .create(&chains, &chain("big", (0..60).map(step).collect()))
        .await;
    assert!(reply.is_success(), "{}", reply.message());
    let rename = json!({"spec": {"resources": [step(0), step(0)]}});
    let reply = server.patch(&format!("{chains}/big"), &rename).await;
    assert!(
        reply
            .message()
            .ends_with("duplicate resource name [step-0] found"),
        "{}",
        reply.message()
    );
}
