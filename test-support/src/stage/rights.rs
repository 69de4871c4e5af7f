//! What the service account may do. The API server's authorizer learns of rights later than whoever wrote them: without
//! waiting for it a test may find that something is refused which is allowed, or done which was forbidden.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose rights cannot be set has failed"
)]

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Api;
use kube::api::PostParams;

use super::{PATIENCE, Stage};
use crate::eventually;

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
        let account = format!("system:serviceaccount:{}:sa", self.namespace);
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
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.to_owned()),
                resource_attributes: Some(ResourceAttributes {
                    namespace: namespace.map(str::to_owned),
                    verb: Some(verb.to_owned()),
                    group: Some(group.to_owned()),
                    resource: Some(plural.to_owned()),
                    subresource: Some(subresource.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let by_default = PostParams::default();
        let what = format!("whether {user} may {verb} {resource} is {allowed}");
        eventually(&what, PATIENCE, async || {
            let answer = reviews.create(&by_default, &review).await?;
            let is = answer.status.is_some_and(|status| status.allowed);
            Ok::<_, kube::Error>((is == allowed).then_some(()))
        })
        .await;
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
