//! The definitions of our kinds, and what they lack.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use super::packages::managers;
use super::{Definition, unlisted};

pub(super) async fn definitions(client: &Client) -> anyhow::Result<Vec<Definition>> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut found = Vec::new();
    for wanted in api_types::crds() {
        let name = wanted.name_any();
        let there = api.get_opt(&name).await;
        let there = there.map_err(|error| unlisted("customresourcedefinitions", &error))?;
        let wanted = serde_json::to_value(&wanted)?;
        let (lacks, managed_by) = match &there {
            None => (Some("all of it".to_owned()), Vec::new()),
            Some(there) => {
                let schema = serde_json::to_value(there)?;
                let by = managers(there.labels(), there.annotations());
                (lacking(schema_of(&wanted), schema_of(&schema), ""), by)
            }
        };
        found.push(Definition {
            name,
            lacks,
            managed_by,
        });
    }
    Ok(found)
}

fn schema_of(definition: &Value) -> &Value {
    let versions = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut versions = versions.filter(|version| version["name"] == api_types::VERSION);
    versions
        .next()
        .map_or(&Value::Null, |it| &it["schema"]["openAPIV3Schema"])
}

/// The first field of ours that a schema does not have.
fn lacking(wanted: &Value, there: &Value, path: &str) -> Option<String> {
    if there["x-kubernetes-preserve-unknown-fields"] == true {
        return None;
    }
    for (name, wanted) in wanted["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let Some(there) = there["properties"].get(name) else {
            return Some(path);
        };
        if let Some(lacks) = lacking(wanted, there, &path) {
            return Some(lacks);
        }
    }
    let items = &wanted["items"];
    if items.is_object() {
        return lacking(items, &there["items"], &format!("{path}[]"));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_field_that_a_schema_lacks_is_named() {
        let wanted = json!({"properties": {"status": {"properties": {"resources": {"items": {"properties": {"runs": {}}}}}}}});
        let there = json!({"properties": {"status": {"properties": {"resources": {"items": {"properties": {}}}}}}});
        assert_eq!(
            lacking(&wanted, &there, "").as_deref(),
            Some("status.resources[].runs")
        );
        assert_eq!(lacking(&wanted, &wanted, ""), None);
        let open = json!({"x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(lacking(&wanted, &open, ""), None);
    }
}
