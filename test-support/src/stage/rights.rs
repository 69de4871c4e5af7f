//! What the service account may do. The API server's authorizer learns of rights later than whoever wrote them: without
//! waiting for it a test may find that something is refused which is allowed, or done which was forbidden.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose rights cannot be set has failed"
)]

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::Stage;
use crate::control_plane::service_account;

impl Stage {
    /// The rights to what the tests stamp.
    pub(super) async fn apply_rights(&self) {
        let rights = include_str!("../../fixtures/test-rights.yaml");
        self.apply(&rights.replace("NAMESPACE", &self.namespace))
            .await;
        self.until_may("create", "", "configmaps", true).await;
    }

    /// Gives the service account more rights, as RBAC rules in YAML flow style.
    pub async fn grant(&self, role: &str, rules: &str) {
        let namespace = &self.namespace;
        self.apply(&format!(
            r"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: {role}, namespace: {namespace}}}
rules: {rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {role}, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {role}}}
subjects: [{{kind: ServiceAccount, name: sa, namespace: {namespace}}}]
"
        ))
        .await;
        for [verb, group, resource] in firsts(rules) {
            self.until_may(&verb, &group, &resource, true).await;
        }
    }

    /// Waits until the API server allows this to the service account of the tests, or does not any more.
    pub async fn until_may(&self, verb: &str, group: &str, resource: &str, allowed: bool) {
        let account = service_account(&self.namespace, "sa");
        let asked = [verb, group, resource];
        self.until_user_may(&account, Some(&self.namespace), asked, allowed)
            .await;
    }

    /// The same of any user, in a namespace or in all; `asked` are verb, group and resource, which may have a subresource.
    pub(super) async fn until_user_may(
        &self,
        user: &str,
        namespace: Option<&str>,
        asked: [&str; 3],
        allowed: bool,
    ) {
        let [verb, group, resource] = asked;
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let place = namespace.map_or(String::new(), |namespace| format!(" in {namespace}"));
        let right = format!("{verb} {plural}.{group}/{subresource}{place}");
        if allowed {
            self.plane.until_it_may(user, &right).await;
        } else {
            self.plane.until_it_may_not(user, &right).await;
        }
    }
}

/// Of each RBAC rule, in YAML: its first verb, group and resource.
pub(super) fn firsts(rules: &str) -> Vec<[String; 3]> {
    let rules: Vec<PolicyRule> = serde_saphyr::from_str(rules).unwrap();
    let first = |rule: PolicyRule| {
        let group = rule.api_groups.unwrap_or_default().remove(0);
        let resource = rule.resources.unwrap_or_default().remove(0);
        [rule.verbs[0].clone(), group, resource]
    };
    rules.into_iter().map(first).collect()
}
