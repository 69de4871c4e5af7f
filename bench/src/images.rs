//! Images in a real registry.

use serde::Serialize;
use serde_json::{Value, json};
use test_support::{DockerRegistry, TestImage};

/// Bytes of a large bill of materials.
pub(crate) const BOM_BYTES: usize = 20_000_000;

/// An image that was pushed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Image {
    /// Its text with a tag.
    pub(crate) tagged: String,
    /// With tag and digest.
    pub(crate) pinned: String,
    /// What a webhook is told of it.
    pub(crate) config: Value,
}

/// Pushes so many images without bills of materials, all different.
pub(crate) async fn push(registry: &DockerRegistry, count: usize) -> anyhow::Result<Vec<Image>> {
    let mut images = Vec::new();
    for number in 0..count {
        let config = json!({"Env": [format!("NUMBER={number}")], "User": "1000"});
        let image = TestImage::new().config(config.clone());
        let pushed = push_one(registry, &format!("app-{number}"), &image).await?;
        images.push(Image {
            config: json!({"architecture": "amd64", "os": "linux", "config": config}),
            ..pushed
        });
    }
    Ok(images)
}

/// Pushes an image with a large bill of materials, another one for each number.
pub(crate) async fn push_with_bom(
    registry: &DockerRegistry,
    number: usize,
) -> anyhow::Result<Image> {
    let component = r#",{"type":"library","name":"a","version":"1","purl":"pkg:maven/a@1"}"#;
    let mut bom = format!(r#"{{"bomFormat":"CycloneDX","version":{number},"components":[{{}}"#);
    bom.push_str(&component.repeat(BOM_BYTES.div_ceil(component.len())));
    bom.push_str("]}");
    let file = "/layers/sbom/launch/bench/sbom.cdx.json";
    let image = TestImage::new().sbom(&[(file, bom.as_bytes())]);
    push_one(registry, &format!("bom-{number}"), &image).await
}

async fn push_one(
    registry: &DockerRegistry,
    repository: &str,
    image: &TestImage,
) -> anyhow::Result<Image> {
    let pushed = registry.push(repository, "v1", image).await?;
    let tagged = format!("{}/{repository}:v1", registry.host());
    Ok(Image {
        pinned: format!("{tagged}@{}", pushed.digest),
        tagged,
        config: Value::Null,
    })
}
