//! Which layer of an image has its bills of materials.

use conventions::image::Digest;
use serde_json::Value;

use crate::error::Cause;
use crate::fault::clip;
use crate::values::value_in;

/// What a name begins with that comes from a layer of a buildpack.
pub(crate) const BUILDPACK: &str = "cnb-app:";
/// The label with the layer's digest.
const SHORT: &str = "io.buildpacks.app.sbom";
/// The label in which buildpacks say all about an image.
const LONG: &str = "io.buildpacks.lifecycle.metadata";

/// Digest and position of the layer with bills of materials, if there is one.
///
/// # Errors
///
/// If the labels cannot be read, or name a layer that the image does not have.
pub(crate) fn layer(config: &Value) -> Result<Option<(Digest, usize)>, Cause> {
    let Some(text) = named(config)? else {
        return Ok(None);
    };
    let fault = |fault: &str| Cause::Image {
        what: format!("layer {} of bills of materials", clip(&text)),
        fault: fault.to_owned(),
    };
    let digest: Digest = text
        .parse()
        .map_err(|_| fault("is named by no sha256 digest"))?;
    let layers = config.pointer("/rootfs/diff_ids").and_then(Value::as_array);
    let position = layers.and_then(|all| all.iter().position(|it| it.as_str() == Some(&text)));
    let position = position.ok_or_else(|| fault("is not among the layers of the image"))?;
    Ok(Some((digest, position)))
}

fn named(config: &Value) -> Result<Option<String>, Cause> {
    let labels = config.get("config").and_then(|config| config.get("Labels"));
    let label = |name: &str| {
        let text = labels.and_then(|labels| labels.get(name)?.as_str());
        text.filter(|text| !text.is_empty())
    };
    if let Some(digest) = label(SHORT) {
        return Ok(Some(digest.to_owned()));
    }
    let Some(text) = label(LONG) else {
        return Ok(None);
    };
    let (metadata, _) = value_in(text.as_bytes()).map_err(|fault| Cause::Image {
        what: format!("label {LONG}"),
        fault: fault.to_string(),
    })?;
    let sha = |name: &str| {
        let sha = field(field(&metadata, name)?, "sha")?.as_str()?;
        (!sha.is_empty()).then(|| sha.to_owned())
    };
    Ok(sha("sbom").or_else(|| sha("bom")))
}

/// A field, however its name is capitalized.
fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let fields = value.as_object()?;
    let mut others = fields.iter();
    let other = || {
        others
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    };
    fields.get(name).or_else(other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn digest(fill: char) -> String {
        format!("sha256:{}", fill.to_string().repeat(64))
    }

    fn with(labels: &Value) -> Result<Option<usize>, String> {
        let config = json!({
            "config": {"Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [digest('a'), digest('b'), 5]},
        });
        let found = layer(&config).map_err(|error| error.to_string())?;
        Ok(found.map(|(_, position)| position))
    }

    #[test]
    fn the_layer_is_found_by_either_label() {
        let long = |metadata: Value| json!({LONG: metadata.to_string()});
        assert_eq!(with(&json!({SHORT: digest('b')})), Ok(Some(1)));
        assert_eq!(
            with(&long(json!({"sbom": {"sha": digest('b')}}))),
            Ok(Some(1))
        );
        assert_eq!(
            with(&long(json!({"bom": {"sha": digest('a')}}))),
            Ok(Some(0))
        );
        assert_eq!(
            with(&long(json!({"SBOM": {"SHA": digest('b')}}))),
            Ok(Some(1))
        );
        let both = json!({"sbom": {"sha": digest('b')}, "bom": {"sha": digest('a')}});
        assert_eq!(with(&long(both.clone())), Ok(Some(1)));
        assert_eq!(
            with(&json!({SHORT: digest('a'), LONG: both.to_string()})),
            Ok(Some(0))
        );
        for none in [
            json!(null),
            json!({}),
            json!({SHORT: ""}),
            json!({LONG: ""}),
            long(json!({})),
            long(json!({"sbom": null})),
            long(json!({"sbom": {"sha": ""}})),
            long(json!([])),
        ] {
            assert_eq!(with(&none), Ok(None), "{none}");
        }
        assert_eq!(layer(&json!({})), Ok(None));
    }

    #[test]
    fn labels_that_lead_nowhere_are_told() {
        assert_eq!(
            with(&json!({LONG: "{"})),
            Err("label io.buildpacks.lifecycle.metadata is no JSON".to_owned())
        );
        let missing = with(&json!({SHORT: digest('c')})).unwrap_err();
        assert!(missing.ends_with("of bills of materials is not among the layers of the image"));
        let odd = with(&json!({SHORT: "sha512:\n00"})).unwrap_err();
        assert_eq!(
            odd,
            r"layer sha512:\n00 of bills of materials is named by no sha256 digest"
        );
    }

    proptest! {
        #[test]
        fn no_label_makes_it_panic(text in "\\PC{0,100}") {
            let _ = with(&json!({SHORT: text.clone()}));
            let _ = with(&json!({LONG: text}));
        }

        #[test]
        fn no_configuration_makes_it_panic(
            parts in prop::collection::vec(0..6_usize, 8),
            text in "\\PC{0,40}",
        ) {
            let odd = [json!(null), json!(5), json!([]), json!({}), json!(text), json!(digest('a'))];
            let of = |index: usize| odd[parts[index]].clone();
            let metadata = json!({"sbom": {"sha": of(0)}, "bom": of(1)}).to_string();
            for config in [
                of(2),
                json!({"config": of(3), "rootfs": of(4)}),
                json!({"config": {"Labels": of(5)}}),
                json!({"config": {"Labels": {SHORT: of(6)}}, "rootfs": {"diff_ids": [of(7)]}}),
                json!({"config": {"Labels": {LONG: metadata}}, "rootfs": {"diff_ids": of(7)}}),
            ] {
                let _ = layer(&config);
            }
        }
    }
}
