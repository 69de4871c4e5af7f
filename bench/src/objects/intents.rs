//! PodIntents and their conventions, and what the bare client writes of them.

use serde_json::{Value, json};

use super::ACCOUNT;
use crate::bare::{conditions, digest};
use crate::family::{CONVENTIONS, Family};
use crate::images::Image;
use crate::layout::Key;
use crate::webhook::Webhook;

/// Label of a template that says which conventions are for it.
const SET: &str = "bench.carto.run/conventions";
/// Those that are measured.
pub(crate) const MEASURED: &str = "measured";
/// The one that reads large bills of materials.
pub(crate) const BOMS: &str = "boms";

/// Name of a convention.
pub(crate) fn convention_name(number: usize) -> String {
    format!("convention-{number}")
}

/// A convention for templates of a set.
pub(crate) fn convention(name: &str, set: &str, webhook: &Webhook) -> Value {
    json!({
        "apiVersion": CONVENTIONS.blueprints.api,
        "kind": CONVENTIONS.blueprint_kind,
        "metadata": {"name": name},
        "spec": {
            "selectors": [{"matchLabels": {SET: set}}],
            "webhook": {"clientConfig": webhook.client_config(name)},
        },
    })
}

/// What a developer or a supply chain writes.
pub(crate) fn intent(family: &Family, key: &Key, image: &str, set: &str) -> Value {
    let container = json!({
        "name": "app",
        "image": image,
        "env": [{"name": "PORT", "value": "8080"}],
        "ports": [{"containerPort": 8080}],
        "resources": {"limits": {"cpu": "0.5", "memory": "512Mi"}},
    });
    json!({
        "apiVersion": family.owners.api,
        "kind": family.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "serviceAccountName": ACCOUNT,
            "template": {
                "metadata": {"labels": {"app": key.name, SET: set}},
                "spec": {"containers": [container]},
            },
        },
    })
}

/// What a webhook is asked.
pub(crate) fn context(key: &Key, convention: &str, template: &Value, image: &Image) -> Value {
    json!({
        "apiVersion": "webhooks.conventions.carto.run/v1alpha1",
        "kind": "PodConventionContext",
        "metadata": {"name": format!("{}-{convention}", key.name)},
        "spec": {
            "template": template,
            "imageConfig": [{"image": image.pinned, "config": image.config}],
        },
        "status": {"template": {"metadata": {}, "spec": {"containers": null}}, "appliedConventions": null},
    })
}

/// The status when so many conventions have made this of a template.
pub(crate) fn intent_status(template: &Value, conventions: usize, image: &Image) -> Value {
    let considered = |number| {
        json!({
            "name": convention_name(number),
            "matched": true,
            "selector": 0,
            "durationMillis": 1,
            "receipts": ["annotation"],
            "outputDigest": digest(),
        })
    };
    json!({"status": {
        "observedGeneration": 1,
        "conditions": conditions(&["ConventionsApplied", "Ready"], "True"),
        "template": template,
        "inputsDigest": digest(),
        "conventions": (0..conventions).map(considered).collect::<Vec<_>>(),
        "images": [{
            "image": image.pinned,
            "reference": image.pinned,
            "digest": digest(),
            "configDigest": digest(),
        }],
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::TWIN_INTENT;

    #[test]
    fn what_is_written_is_read_by_the_types_of_the_controller() {
        let key = Key::new("team-0", "app-0");
        let image = Image {
            tagged: "r/app:v1".to_owned(),
            pinned: format!("r/app:v1@{}", digest()),
            config: json!({}),
        };
        let mut object = intent(&TWIN_INTENT, &key, &image.tagged, MEASURED);
        let template = object["spec"]["template"].clone();
        object["status"] = intent_status(&template, 5, &image)["status"].take();
        let read: conventions::PodIntent = serde_json::from_value(object).unwrap();
        let status = read.status.unwrap();
        assert_eq!((status.conventions.len(), status.images.len()), (5, 1));
        assert_eq!(status.template, Some(read.spec.template));
    }
}
