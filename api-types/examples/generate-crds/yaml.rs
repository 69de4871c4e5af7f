//! A CustomResourceDefinition as a YAML file; shared with the test that compares the files in `deploy/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// `carto.run_<plural>.yaml`
pub(crate) fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// The text of the file. Keys are sorted and whole numbers written as such, whatever serde_json's features are.
pub(crate) fn render(crd: &CustomResourceDefinition) -> Result<String, Box<dyn std::error::Error>> {
    let tidy = tidy(serde_json::to_value(crd)?);
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    Ok(format!(
        "---\n{}",
        serde_saphyr::to_string_with_options(&tidy, options)?
    ))
}

fn tidy(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .into_iter()
                .map(|(key, field)| (key, tidy(field)))
                .collect();
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(tidy).collect()),
        Value::Number(number) => {
            // `minimum` is a float in the type; all of ours are whole and small.
            let whole = number
                .as_f64()
                .map(|float| format!("{float}"))
                .and_then(|text| text.parse::<i64>().ok());
            whole.map_or(Value::Number(number), Value::from)
        }
        other => other,
    }
}
