//! What is installed: controllers, webhooks, definitions, who installed them, and the rights to watch.

mod definitions;
mod packages;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;

use super::state::Scaled;
use super::world::in_words;
use definitions::definitions;
use packages::{managers, packages};

/// Where the Go controller's release puts it.
pub(super) const OLD_NAMESPACE: &str = "cartographer-system";
const OLD_NAME: &str = "cartographer-controller";

/// Our controllers, as `app.kubernetes.io/name` says, and the webhook where it has a Deployment of its own.
const OURS: [&str; 4] = [
    "supplychain-controller",
    "supplychain-controller-webhook",
    "delivery-controller",
    "runnable-controller",
];

/// The label of ClusterRoles whose kinds the controllers may watch.
const TO_WATCHED: &str = "carto.run/aggregate-to-watched=true";

/// A Deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many Pods it is to have.
    pub replicas: i32,
    /// What manages it, as its labels and annotations say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_by: Vec<String>,
}

impl Controller {
    pub(super) fn of(deployment: &Deployment) -> Self {
        let spec = deployment.spec.as_ref();
        Self {
            namespace: deployment.namespace().unwrap_or_default(),
            name: deployment.name_any(),
            replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            managed_by: managers(deployment.labels(), deployment.annotations()),
        }
    }

    /// `<namespace>/<name>`.
    pub fn address(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// A webhook configuration of the Go controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhooks {
    /// Kind of the configuration.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
}

/// A definition of one of our kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// A field of ours that it does not have; absent where it has all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// What manages it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_by: Vec<String>,
}

/// Something that would scale the Go controller up again, or put its definitions back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// `<kind> <namespace>/<name>`.
    pub object: String,
    /// The command that pauses it.
    pub pause: String,
}

/// Which Deployments are meant.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// Namespace and name of the Go controller's, if it is not where its release puts it.
    pub(super) old: Option<(String, String)>,
    /// The namespace of ours.
    pub(super) ours: String,
}

impl Choice {
    /// Where webhooks of the Go controller may be served from.
    pub(super) fn old_namespaces(&self, known: &[Scaled]) -> Vec<String> {
        let named = self.old.iter().map(|(namespace, _)| namespace.clone());
        let known = known.iter().map(|it| it.namespace.clone());
        let usual = [OLD_NAMESPACE.to_owned()];
        named.chain(known).chain(usual).collect()
    }
}

/// What is installed.
#[derive(Debug, Default)]
pub(super) struct Installed {
    pub(super) old: Vec<Controller>,
    pub(super) ours: Vec<Controller>,
    pub(super) webhooks: Vec<Webhooks>,
    pub(super) definitions: Vec<Definition>,
    pub(super) packages: Vec<Package>,
    pub(super) watched: Vec<PolicyRule>,
    pub(super) server: Option<u32>,
}

impl Installed {
    pub(super) async fn read(client: &Client, choice: &Choice) -> anyhow::Result<Self> {
        let deployments: Api<Deployment> = Api::all(client.clone());
        let deployments = deployments.list(&ListParams::default()).await;
        let deployments = deployments.map_err(|error| unlisted("deployments", &error))?;
        let mut old: Vec<Controller> = Vec::new();
        let mut ours: Vec<Controller> = Vec::new();
        for deployment in &deployments.items {
            if is_old(deployment, choice) {
                old.push(Controller::of(deployment));
            } else if is_ours(deployment, choice) {
                ours.push(Controller::of(deployment));
            }
        }
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let roles = roles.list(&ListParams::default().labels(TO_WATCHED)).await;
        let roles = roles.map_err(|error| unlisted("clusterroles", &error))?;
        let watched = roles.items.into_iter().filter_map(|role| role.rules);
        Ok(Self {
            webhooks: webhooks(client, &old).await?,
            definitions: definitions(client).await?,
            packages: packages(client, &old).await,
            watched: watched.flatten().collect(),
            server: minor(client).await,
            old,
            ours,
        })
    }

    /// Whether the controllers may watch a kind by the roles that are there.
    pub(super) fn may_watch(&self, group: &str, plural: &str) -> bool {
        let has = |held: Option<&Vec<String>>, wanted: &str| {
            held.is_some_and(|held| held.iter().any(|it| it == wanted || it == "*"))
        };
        let grants = |rule: &PolicyRule, verb: &str| {
            has(rule.api_groups.as_ref(), group)
                && has(rule.resources.as_ref(), plural)
                && has(Some(&rule.verbs), verb)
                && rule.resource_names.as_ref().is_none_or(Vec::is_empty)
        };
        ["list", "watch"]
            .iter()
            .all(|verb| self.watched.iter().any(|rule| grants(rule, verb)))
    }
}

pub(super) fn is_old(deployment: &Deployment, choice: &Choice) -> bool {
    let (namespace, name) = (
        deployment.namespace().unwrap_or_default(),
        deployment.name_any(),
    );
    match &choice.old {
        Some((in_namespace, named)) => namespace == *in_namespace && name == *named,
        None => name == OLD_NAME,
    }
}

pub(super) fn is_ours(deployment: &Deployment, choice: &Choice) -> bool {
    let called = deployment.labels().get("app.kubernetes.io/name");
    deployment.namespace().as_deref() == Some(&*choice.ours)
        && called.is_some_and(|called| OURS.contains(&called.as_str()))
}

fn unlisted(plural: &str, error: &kube::Error) -> anyhow::Error {
    anyhow::anyhow!(
        "{plural} cannot be listed: {}\n  next: run this as an administrator of the cluster; it reads, and sends dry runs",
        in_words(error)
    )
}

/// The configurations whose webhooks for our group are served from a namespace of the Go controller.
async fn webhooks(client: &Client, old: &[Controller]) -> anyhow::Result<Vec<Webhooks>> {
    let namespaces: Vec<String> = old
        .iter()
        .map(|old| old.namespace.clone())
        .chain([OLD_NAMESPACE.to_owned()])
        .collect();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let validating = validating.list(&ListParams::default()).await;
    let validating =
        validating.map_err(|error| unlisted("validatingwebhookconfigurations", &error))?;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let mutating = mutating.list(&ListParams::default()).await;
    let mutating = mutating.map_err(|error| unlisted("mutatingwebhookconfigurations", &error))?;
    let validating = validating.items.into_iter().map(|it| {
        let kind = "ValidatingWebhookConfiguration";
        (kind, it.name_any(), serde_json::to_value(it.webhooks))
    });
    let mutating = mutating.items.into_iter().map(|it| {
        let kind = "MutatingWebhookConfiguration";
        (kind, it.name_any(), serde_json::to_value(it.webhooks))
    });
    let mut found = Vec::new();
    for (kind, name, webhooks) in validating.chain(mutating) {
        if is_of_group(&webhooks?, &namespaces) {
            found.push(Webhooks { kind, name });
        }
    }
    Ok(found)
}

/// Whether one of these webhooks is for our group, and served from one of these namespaces.
pub(super) fn is_of_group(webhooks: &Value, namespaces: &[String]) -> bool {
    let webhooks = webhooks.as_array().into_iter().flatten();
    let mut webhooks = webhooks.filter(|webhook| {
        let served = webhook["clientConfig"]["service"]["namespace"].as_str();
        served.is_some_and(|served| namespaces.iter().any(|it| it == served))
    });
    webhooks.any(|webhook| {
        let rules = webhook["rules"].as_array().into_iter().flatten();
        let mut groups = rules.flat_map(|rule| rule["apiGroups"].as_array().into_iter().flatten());
        groups.any(|group| *group == api_types::GROUP)
    })
}

async fn minor(client: &Client) -> Option<u32> {
    let version = client.apiserver_version().await.ok()?;
    let digits: String = version
        .minor
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_webhook_is_the_go_controllers_by_who_serves_it_and_for_which_group() {
        let webhook = |namespace: &str, group: &str| json!([{"clientConfig": {"service": {"namespace": namespace}}, "rules": [{"apiGroups": [group]}]}]);
        let of_go = |webhooks: Value| is_of_group(&webhooks, &[OLD_NAMESPACE.to_owned()]);
        assert!(of_go(webhook("cartographer-system", "carto.run")));
        assert!(!of_go(webhook("carto-system", "carto.run")), "ours");
        assert!(!of_go(webhook(
            "cartographer-system",
            "conventions.carto.run"
        )));
        assert!(!of_go(
            json!([{"clientConfig": {"url": "https://localhost"}}])
        ));
        assert!(!of_go(Value::Null));
    }
}
