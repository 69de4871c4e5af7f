//! What to do about an object that the API server refused.
//!
//! The reason is the same whatever it objects to, so its words are read here: to advise, never to decide. Words that are not
//! known get the advice that is right for all.

/// A right that is missing, as the API server's authorizer tells it.
#[derive(Debug, PartialEq, Eq)]
struct Denied<'m> {
    /// Namespace and name of the service account.
    account: (&'m str, &'m str),
    /// `deployments`, or `deployments/scale`.
    resource: &'m str,
    /// Empty for the core group.
    group: &'m str,
    /// Absent for a kind without namespaces.
    namespace: Option<&'m str>,
}

impl<'m> Denied<'m> {
    /// Reads `User "system:serviceaccount:dev:app" cannot patch resource "services" in API group "" in the namespace "dev"`. Of
    /// two, the last is the owner's: before it may stand what the controller must not watch.
    fn read(message: &'m str) -> Option<Self> {
        let (_, denied) = message.rsplit_once("User \"system:serviceaccount:")?;
        let resource =
            until_quote(after(denied, "\" cannot ").and_then(|rest| after(rest, "resource \""))?)?;
        let group = until_quote(after(denied, "in API group \"")?)?;
        let namespace = after(denied, "in the namespace \"").and_then(until_quote);
        Some(Self {
            account: until_quote(denied)?.split_once(':')?,
            resource,
            group,
            // A Namespace is told to be in itself, which is of no use for creating it.
            namespace: namespace.filter(|_| (resource, group) != ("namespaces", "")),
        })
    }

    /// The commands that grant it, with all that is needed to write, read back and one day delete such objects.
    fn grant(&self) -> String {
        let (account_namespace, account) = self.account;
        let plural = self
            .resource
            .split_once('/')
            .map_or(self.resource, |(plural, _)| plural);
        let role = format!("{account}-{plural}");
        let resource = match self.group {
            "" => self.resource.to_owned(),
            // kubectl wants the group before the subresource.
            group => format!("{plural}.{group}{}", &self.resource[plural.len()..]),
        };
        let (kind, place) = match self.namespace {
            Some(namespace) => ("role", format!(" -n {namespace}")),
            None => ("clusterrole", String::new()),
        };
        format!(
            "grant it to the service account, in a {kind} it has or in a new one: kubectl create {kind} {role}{place} \
             --verb=get,list,create,patch,delete --resource={resource} && kubectl create {kind}binding {role}{place} \
             --{kind}={role} --serviceaccount={account_namespace}:{account}"
        )
    }
}

/// A kind that the API server does not serve: its group (empty for the core group).
fn unknown_kind(message: &str) -> Option<&str> {
    let version = after(message, "no matches for kind \"")
        .and_then(|rest| after(rest, "\" in version \""))
        .and_then(until_quote)?;
    Some(
        version
            .split_once('/')
            .map_or("", |(group, _version)| group),
    )
}

/// What to do about a refusal with this message; `template` is the command that shows the template.
pub(super) fn advice(message: &str, template: &str) -> String {
    if let Some(denied) = Denied::read(message) {
        return denied.grant();
    }
    match unknown_kind(message) {
        Some(group) => format!(
            "install what serves this kind, or correct apiVersion and kind in the template: {template}; those there are: \
             kubectl api-resources --api-group={group}"
        ),
        None => format!(
            "correct what the message names, in the template or in what it is given: {template}"
        ),
    }
}

fn after<'m>(text: &'m str, mark: &str) -> Option<&'m str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

fn until_quote(text: &str) -> Option<&str> {
    text.split_once('"').map(|(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: &str = "create: services \"x\" is forbidden: User \"system:serviceaccount:k:app\" cannot patch resource \
         \"services\" in API group \"\" in the namespace \"k\"";

    #[test]
    fn a_missing_right_is_granted_by_what_the_advice_says() {
        assert_eq!(
            advice(CREATE, "kubectl get clustertemplate dep -o yaml"),
            "grant it to the service account, in a role it has or in a new one: kubectl create role app-services -n k \
             --verb=get,list,create,patch,delete --resource=services && kubectl create rolebinding app-services -n k \
             --role=app-services --serviceaccount=k:app"
        );
    }

    #[test]
    fn groups_subresources_other_namespaces_and_cluster_scoped_kinds_are_told_apart() {
        let cases = [
            (
                "User \"system:serviceaccount:a:b\" cannot patch resource \"deployments/scale\" in API group \"apps\" in the namespace \"c\"",
                "create role b-deployments -n c --verb=get,list,create,patch,delete --resource=deployments.apps/scale",
            ),
            (
                "User \"system:serviceaccount:a:b\" cannot patch resource \"deployments/scale\" in API group \"apps\" in the namespace \"c\"",
                "create rolebinding b-deployments -n c --role=b-deployments --serviceaccount=a:b",
            ),
            (
                "User \"system:serviceaccount:a:b\" cannot get resource \"nodes\" in API group \"\" at the cluster scope",
                "create clusterrole b-nodes --verb=get,list,create,patch,delete --resource=nodes &&",
            ),
            (
                "User \"system:serviceaccount:a:b\" cannot get resource \"nodes\" in API group \"\" at the cluster scope",
                "create clusterrolebinding b-nodes --clusterrole=b-nodes --serviceaccount=a:b",
            ),
        ];
        for (message, expected) in cases {
            let advice = advice(message, "");
            assert!(advice.contains(expected), "{advice}");
        }
    }

    #[test]
    fn the_right_is_the_owners_when_the_controller_lacks_one_too() {
        let told = advice(
            "failed to get unstructured [dev/x] from api server (the controller cannot watch the kind either: pods is forbidden: \
             User \"system:serviceaccount:carto-system:supplychain-controller\" cannot list resource \"pods\" in API group \"\" \
             at the cluster scope): namespaces \"x\" is forbidden: User \"system:serviceaccount:dev:app\" cannot get resource \
             \"namespaces\" in API group \"\" in the namespace \"x\"",
            "",
        );
        assert!(
            told.contains("kubectl create clusterrole app-namespaces --verb="),
            "{told}"
        );
        assert!(told.ends_with("--serviceaccount=dev:app"), "{told}");
    }

    #[test]
    fn a_kind_that_is_not_served_is_no_matter_of_rights() {
        let told = advice(
            "failed to get unstructured [g/x] from api server: no matches for kind \"GitRepositry\" in version \
             \"source.toolkit.fluxcd.io/v1\"",
            "kubectl get clustertemplate bad -o yaml",
        );
        assert!(
            told.ends_with("kubectl api-resources --api-group=source.toolkit.fluxcd.io"),
            "{told}"
        );
        let core = advice("no matches for kind \"Pot\" in version \"v1\"", "");
        assert!(core.ends_with("--api-group="), "{core}");
    }

    #[test]
    fn any_other_refusal_is_corrected_where_the_object_comes_from() {
        for message in [
            "create: ConfigMap \"X_Y\" is invalid: metadata.name: Invalid value",
            "configmaps \"x\" is forbidden: exceeded quota: few, requested: count/configmaps=1",
            "services \"x\" is forbidden: User \"jane\" cannot patch resource \"services\" in API group \"\"",
            "User \"system:serviceaccount:a\" cannot patch resource",
            "no matches for kind",
            "",
        ] {
            assert_eq!(
                advice(message, "kubectl get clustertemplate t -o yaml"),
                "correct what the message names, in the template or in what it is given: kubectl get clustertemplate t -o yaml"
            );
        }
    }
}
