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
        let rules: Vec<PolicyRule> = serde_saphyr::from_str(rules).unwrap();
        for rule in rules {
            let group = rule.api_groups.unwrap_or_default().remove(0);
            let resource = rule.resources.unwrap_or_default().remove(0);
            self.until_may(&rule.verbs[0], &group, &resource, true)
                .await;
        }
    }

    /// Waits until the API server allows this to the service account of the tests, or does not any more.
    pub async fn until_may(&self, verb: &str, group: &str, resource: &str, allowed: bool) {
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(format!("system:serviceaccount:{}:sa", self.namespace)),
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(self.namespace.clone()),
                    verb: Some(verb.to_owned()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let by_default = PostParams::default();
        let what = format!("whether sa may {verb} {resource} is {allowed}");
        eventually(&what, PATIENCE, async || {
            let answer = reviews.create(&by_default, &review).await?;
            let is = answer.status.is_some_and(|status| status.allowed);
            Ok::<_, kube::Error>((is == allowed).then_some(()))
        })
        .await;
    }
}
