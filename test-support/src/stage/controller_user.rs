//! A controller with exact rights: it acts as a user who may do nothing but what a test grants.

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, DeleteParams};

use super::Stage;
use super::rights::firsts;

/// The user; `fixtures/controller-rights.yaml` names it, too.
const USER: &str = "carto";

impl Stage {
    /// Grants the user what every controller needs, and to write these subresources of `carto.run`, as a YAML flow sequence.
    /// No kind that templates stamp or select is among it.
    pub async fn grant_user_the_least(&self, statuses: &str) {
        self.apply(include_str!("../../fixtures/controller-rights.yaml"))
            .await;
        let rules = format!("[{{apiGroups: [carto.run], resources: {statuses}, verbs: [patch]}}]");
        self.grant_user("statuses", &rules).await;
    }

    /// Grants the user more in the whole cluster, as RBAC rules in YAML flow style, and waits until that holds. The name is
    /// free, and new for each grant.
    pub async fn grant_user(&self, name: &str, rules: &str) {
        self.apply(&format!(
            r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules: {rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {USER}}}]
"
        ))
        .await;
        for [verb, group, resource] in firsts(rules) {
            self.until_user_may(USER, None, [&verb, &group, &resource], true)
                .await;
        }
    }

    /// Takes back what was granted under this name. A watch that is open goes on until it starts anew.
    pub async fn revoke_from_user(&self, name: &str) {
        let bindings = Api::<ClusterRoleBinding>::all(self.client.clone());
        let by_default = DeleteParams::default();
        bindings.delete(name, &by_default).await.unwrap();
    }

    /// Starts the controller as this user.
    pub fn start_controller_as_user(&mut self) {
        let kubeconfig = self.plane.kubeconfig_as_user(USER, &[]).unwrap();
        self.start_controller_as(&kubeconfig);
    }
}
