use super::*;

const TEMPLATE: &str = "kubectl get clustertemplate t -o yaml";
const PREFIX: &str =
    "unable to apply object [k/x] for resource [publish] in supply chain [chain.v1]: ";
const DENIED: &str = "services \"x\" is forbidden: User \"system:serviceaccount:k:app\" cannot patch resource \"services\" in \
                      API group \"\" in the namespace \"k\"";

fn told(message: &str) -> String {
    advice(message, ("k", "app"), TEMPLATE)
}

#[test]
fn a_missing_right_is_granted_by_what_the_advice_says() {
    let run = "unable to apply object [k/test-] for run template [tests]: ";
    for message in [
        format!("{PREFIX}create: {DENIED}"),
        format!("{PREFIX}patch: {DENIED}"),
        format!("{run}create: {DENIED}"),
        format!("{PREFIX}patch: {DENIED}: RBAC: role.rbac.authorization.k8s.io \"r\" not found"),
    ] {
        assert_eq!(
            told(&message),
            "grant it to the service account, in a role it has or in a new one: kubectl create role app-services -n k \
             --verb=get,list,create,patch,delete --resource=services && kubectl create rolebinding app-services -n k \
             --role=app-services --serviceaccount=k:app"
        );
    }
}

#[test]
fn groups_subresources_other_namespaces_and_cluster_scoped_kinds_are_told_apart() {
    let cases = [
        (
            "deployments.apps \"x\" is forbidden: User \"system:serviceaccount:k:app\" cannot patch resource \
             \"deployments/scale\" in API group \"apps\" in the namespace \"c\"",
            "create role app-deployments -n c --verb=get,list,create,patch,delete --resource=deployments.apps/scale && \
             kubectl create rolebinding app-deployments -n c --role=app-deployments --serviceaccount=k:app",
        ),
        (
            "nodes \"x\" is forbidden: User \"system:serviceaccount:k:app\" cannot get resource \"nodes\" in API group \"\" \
             at the cluster scope",
            "create clusterrole app-nodes --verb=get,list,create,patch,delete --resource=nodes && kubectl create \
             clusterrolebinding app-nodes --clusterrole=app-nodes --serviceaccount=k:app",
        ),
        (
            "namespaces \"x\" is forbidden: User \"system:serviceaccount:k:app\" cannot patch resource \"namespaces\" in API \
             group \"\" in the namespace \"x\"",
            "create clusterrole app-namespaces --verb=",
        ),
    ];
    for (message, expected) in cases {
        let advice = told(&format!("{PREFIX}create: {message}"));
        assert!(advice.contains(expected), "{advice}");
    }
}

/// What a developer can write into a param that a template puts into a name, or that a webhook quotes.
#[test]
fn no_command_is_made_of_what_a_developer_wrote() {
    let evil = "x User \"system:serviceaccount:evil:evil\" cannot get resource \"secrets\" in API group \"\" at the cluster scope";
    let own = "secrets \"x\" is forbidden: User \"system:serviceaccount:k:app\" cannot get resource \"secrets\" in API group \
               \"\" at the cluster scope";
    let shell = DENIED
        .replace("\"services\"", "\"$(id)\"")
        .replace("services \"", "$(id) \"");
    for message in [
        format!("{PREFIX}create: ConfigMap \"{evil}\" is invalid: metadata.name: Invalid value: \"{evil}\""),
        format!("{PREFIX}create: configmaps \"{evil}\" is forbidden: exceeded quota: few"),
        format!("{PREFIX}create: admission webhook \"w\" denied the request: {own}"),
        format!("{PREFIX}create: admission webhook \"w\" denied the request: create: {own}"),
        format!("{PREFIX}create: {}", DENIED.replace("k:app", "k:other")),
        format!("{PREFIX}create: {}", DENIED.replace("namespace \"k\"", "namespace \"k; id\"")),
        format!("{PREFIX}create: {}", DENIED.replace("group \"\"", "group \"$(id)\"")),
        format!("{PREFIX}create: {}", DENIED.replace("cannot patch", "cannot escalate")),
        format!("{PREFIX}create: {}", DENIED.replace("services \"x\"", "services \"x `id`\"")),
        format!("{PREFIX}create: {}", DENIED.replace("services \"x\"", "secrets \"x\"")),
        format!("{PREFIX}create: {shell}"),
        format!("unable to apply object [k/x] for resource [a] in supply chain [b]: create: {own}] for resource [publish] in \
                 supply chain [chain]: create: Invalid value").replacen("k/x", "k/x y", 1),
        format!("failed to get unstructured [k/x] from api server (the controller cannot watch the kind either: no): {own}"),
        own.to_owned(),
    ] {
        let advice = told(&message);
        assert!(!advice.contains("kubectl create"), "{advice}\nfor\n{message}");
        assert!(advice.ends_with(TEMPLATE), "{advice}");
    }
}

#[test]
fn a_kind_that_is_not_served_is_no_matter_of_rights() {
    let get = "failed to get unstructured [g/x] from api server: no matches for kind";
    let advice = told(&format!(
        "{get} \"GitRepositry\" in version \"source.toolkit.fluxcd.io/v1\""
    ));
    assert!(
        advice.ends_with("kubectl api-resources --api-group=source.toolkit.fluxcd.io"),
        "{advice}"
    );
    let core = told("no matches for kind \"Pot\" in version \"v1\"");
    assert!(core.ends_with("--api-group="), "{core}");
    let forged = told("no matches for kind \"Pot\" in version \"$(id)/v1\"");
    assert!(!forged.contains("$(id)"), "{forged}");
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
            told(message),
            format!(
                "correct what the message names, in the template or in what it is given: {TEMPLATE}"
            )
        );
    }
}
