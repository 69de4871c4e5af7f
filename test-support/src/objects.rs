//! Requests for objects of any kind, which is named as in a manifest.

use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};

/// Requests for the objects of a kind in a namespace.
pub fn objects_in(
    client: &Client,
    namespace: &str,
    api_version: &str,
    kind: &str,
) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(api_version, kind))
}

/// Requests for the objects of a kind that has no namespaces, or for those in all of them.
pub fn all_objects(client: &Client, api_version: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource(api_version, kind))
}

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_as_in_a_manifest() {
        let named = |api_version, kind| {
            let resource = resource(api_version, kind);
            (resource.group, resource.version, resource.plural)
        };
        let of = |group: &str, version: &str, plural: &str| {
            (group.to_owned(), version.to_owned(), plural.to_owned())
        };
        assert_eq!(named("v1", "ConfigMap"), of("", "v1", "configmaps"));
        assert_eq!(
            named("carto.run/v1alpha1", "ClusterDelivery"),
            of("carto.run", "v1alpha1", "clusterdeliveries")
        );
    }
}
