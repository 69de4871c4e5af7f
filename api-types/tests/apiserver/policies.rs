//! The admission policies say what the webhook says.

use std::collections::BTreeSet;
use std::time::Duration;

use api_types::validation::{Verdict, validate};
use serde_json::{Value, json};
use test_support::admission_corpus::{Case, cases};
use test_support::{ControlPlane, eventually};

use crate::server::{Reply, Server, collection, crd, deploy, manifests};

const LIMIT: Duration = Duration::from_mins(3);
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
    assert_eq!(policies.len(), 8);

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

async fn dry_run(server: &Server, case: &Case) -> Reply {
    let path = format!("{}?dryRun=All", collection(&crd(&case.kind)));
    server.create(&path, &case.object).await
}

/// Waits until an object is refused with its text, and says by which policy. Policies come into force one by one, and one
/// kind may have several: a refusal by one says nothing about the other.
async fn refused_by(server: &Server, case: &Case, text: &str) -> String {
    let what = format!("{}: {} is refused with {text:?}", case.rule, case.object);
    eventually(&what, LIMIT, async || {
        let reply = dry_run(server, case).await;
        let message = reply.message();
        let policy = message
            .split_once("ValidatingAdmissionPolicy '")
            .and_then(|(_, rest)| rest.split_once('\''));
        match policy {
            Some((policy, rest))
                if rest.contains("denied request: ") && message.ends_with(text) =>
            {
                Ok(Some(policy.to_owned()))
            }
            _ => Err(format!("{}: {message}", reply.status)),
        }
    })
    .await
}

#[tokio::test]
async fn policies_and_webhook_say_the_same() {
    let control_plane = ControlPlane::start().await.unwrap();
    control_plane.install_crds(deploy("crds")).await.unwrap();
    let server = Server::of(&control_plane);
    let installed: BTreeSet<String> = install(&server)
        .await
        .iter()
        .map(|policy| policy["metadata"]["name"].as_str().unwrap().to_owned())
        // It asks who writes, and not what.
        .filter(|name| name != "artifact.carto.run")
        .collect();
    let (by_schema, cases): (Vec<_>, Vec<_>) =
        cases().into_iter().partition(|case| case.refused_by_schema);
    let mut enforced = BTreeSet::new();
    for case in &cases {
        if let Some(text) = &case.policy {
            enforced.insert(refused_by(&server, case, text).await);
        }
    }
    assert_eq!(enforced, installed);

    // From here on, all are in force.
    for case in cases.iter().filter(|case| case.policy.is_none()) {
        let reply = dry_run(&server, case).await;
        assert!(reply.is_success(), "{case:?} {}", reply.message());
    }
    for case in by_schema {
        let reply = dry_run(&server, &case).await;
        assert_eq!(reply.status, 422, "{case:?}");
        let message = reply.message();
        assert!(
            !message.contains("ValidatingAdmissionPolicy"),
            "{case:?} {message}"
        );
    }
    // The rules in code, which the webhook serves, with the parser that users meet.
    for case in cases {
        assert_eq!(
            validate(&case.kind, &case.object),
            Verdict {
                error: case.error,
                warnings: case.warnings
            },
            "{}: {}",
            case.rule,
            case.object
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
    let twice = "duplicate resource name [step-0] found";
    let bad = chain("bad", vec![step(0), step(0)]);
    let dry_run = format!("{chains}?dryRun=All");
    eventually("the policy is in force", LIMIT, async || {
        let reply = server.create(&dry_run, &bad).await;
        if reply.message().ends_with(twice) {
            Ok(())
        } else {
            Err(format!("{}: {}", reply.status, reply.message()))
        }
    })
    .await;

    let reply = server
        .create(&chains, &chain("big", (0..60).map(step).collect()))
        .await;
    assert!(reply.is_success(), "{}", reply.message());
    let rename = json!({"spec": {"resources": [step(0), step(0)]}});
    let reply = server.patch(&format!("{chains}/big"), &rename).await;
    assert!(reply.message().ends_with(twice), "{}", reply.message());
}
