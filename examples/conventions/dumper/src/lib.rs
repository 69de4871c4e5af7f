//! Writes what a convention is asked, as YAML, and changes nothing: to see what the controller
//! sends, or to make it a test.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use convention_webhook_sdk::{Applied, Convention, ConventionError, Images, Template};
use serde_json::{Value, json};

/// Writes every request somewhere, one at a time.
#[derive(Clone)]
pub struct Dumper<W>(Arc<Mutex<W>>);

impl<W: Write + Send + 'static> Dumper<W> {
    /// Writes to this.
    pub fn to(output: W) -> Self {
        Self(Arc::new(Mutex::new(output)))
    }
}

impl<W: Write + Send + 'static> Convention for Dumper<W> {
    async fn apply(
        &self,
        template: &mut Template,
        images: &Images,
    ) -> Result<Applied, ConventionError> {
        let text = serde_saphyr::to_string(&request(template, images))?;
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(output, "---\n{text}")?;
        output.flush()?;
        Ok(Applied::from("dumper"))
    }
}

/// What was asked, without the bytes of bills of materials: they are megabytes that nobody reads.
fn request(template: &Template, images: &Images) -> Value {
    let image = |image: &convention_webhook_sdk::Image| {
        let boms = image
            .boms()
            .iter()
            .map(|bom| json!({"name": bom.name, "bytes": bom.raw.len()}));
        json!({
            "image": image.name(),
            "boms": boms.collect::<Vec<_>>(),
            "config": image.config(),
        })
    };
    json!({
        "apiVersion": convention_webhook_sdk::protocol::API_VERSION,
        "kind": convention_webhook_sdk::protocol::KIND,
        "spec": {
            "template": template.to_value(),
            "imageConfig": images.iter().map(image).collect::<Vec<_>>(),
        },
    })
}
