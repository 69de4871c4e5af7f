//! A template on its way through its conventions.
//!
//! ```text
//!  start(template) ──▶ request(…) ──▶ webhook ──▶ record(answer) ──┐
//!                        ▲                                        │ the next convention sees what came of this one
//!                        └────────────────────────────────────────┘──▶ finish()
//! ```

use std::collections::BTreeMap;

use convention_protocol::{ImageConfig, PodConventionContext, PodTemplate};
use serde_json::Value;

use crate::answer::Answer;
use crate::quantity::keep_wording;
use crate::receipts::Receipts;
use crate::schema::shape::{Fault, POD_SPEC};

/// The most bytes of JSON that the template of the author and the one in status may have together. The PodIntent that
/// holds both may have half a mebibyte more, for all else that is in it.
pub const MOST_TEMPLATES_BYTES: usize = 1024 * 1024;

/// A template, and what was applied to it so far.
///
/// ```
/// use conventions::answer::read;
/// use conventions::chain::Chain;
///
/// let template = serde_json::from_str(r#"{"spec": {"containers": [{"name": "web"}]}}"#)?;
/// let mut chain = Chain::start(template);
/// let request = chain.request("app", "add-env", Vec::new());
/// assert_eq!(request.metadata.name, "app-add-env");
///
/// let answer = read(br#"{"status": {"appliedConventions": ["env"], "template":
///     {"spec": {"containers": [{"name": "web", "env": [{"name": "A", "value": "b"}]}]}}}}"#)?;
/// chain.record("add-env", answer)?;
/// let enriched = serde_json::to_value(chain.finish()?)?;
/// assert_eq!(enriched["metadata"]["annotations"]["conventions.carto.run/applied-conventions"], "add-env/env");
///
/// let mut chain = Chain::start(serde_json::from_str(r#"{"spec": {"containers": [{"name": "web"}]}}"#)?);
/// let nothing = read(br#"{"status": {"template": {"spec": {"containers": null}}}}"#)?;
/// assert_eq!(chain.record("broken", nothing).unwrap_err().field, "spec.containers");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chain {
    template: PodTemplate,
    receipts: Receipts,
    /// How many bytes the template may have.
    room: usize,
}

impl Chain {
    /// Begins with the template as its author wrote it.
    pub fn start(template: PodTemplate) -> Self {
        Self {
            receipts: Receipts::of(&template),
            room: MOST_TEMPLATES_BYTES.saturating_sub(size(&template)),
            template,
        }
    }

    /// The template as it is now.
    pub fn template(&self) -> &PodTemplate {
        &self.template
    }

    /// Gives images the texts that they are resolved to, by the text that each has now.
    pub fn resolve(&mut self, images: &BTreeMap<String, String>) {
        self.template.replace_images(images);
    }

    /// What the next convention is asked, for the template as it is now.
    pub fn request(
        &self,
        intent: &str,
        convention: &str,
        images: Vec<ImageConfig>,
    ) -> PodConventionContext {
        let name = format!("{intent}-{convention}");
        PodConventionContext::request(name, self.template.clone(), images)
    }

    /// Takes the answer of a convention over.
    ///
    /// # Errors
    ///
    /// The template of the answer is none, or none that an API server would store. Then all stays as it was.
    pub fn record(&mut self, convention: &str, answer: Answer) -> Result<(), Fault> {
        let missing = || Fault {
            field: "status.template".to_owned(),
            problem: "Required value".to_owned(),
        };
        let mut template = answer.template.ok_or_else(missing)?;
        template.spec = template.spec.map(without_nulls);
        // What Go writes for a template that has no spec.
        template.spec = template.spec.filter(|spec| !spec.is_empty());
        storable(&self.template, &template)?;
        keep_wording(&self.template, &mut template);
        let mut receipts = self.receipts.clone();
        receipts.add(convention, &answer.applied);
        receipts.write(&mut template);
        self.fits(&template)?;
        (self.template, self.receipts) = (template, receipts);
        Ok(())
    }

    /// The template after all conventions. Without any it is the author's, word for word.
    ///
    /// # Errors
    ///
    /// The author's template is so large that it cannot be stored a second time.
    pub fn finish(self) -> Result<PodTemplate, Fault> {
        self.fits(&self.template)?;
        Ok(self.template)
    }

    fn fits(&self, template: &PodTemplate) -> Result<(), Fault> {
        let (has, room) = (size(template), self.room);
        if has <= room {
            return Ok(());
        }
        Err(Fault {
            field: "status.template".to_owned(),
            problem: format!("Too long: may not be more than {room} bytes, and has {has}"),
        })
    }
}

fn size(template: &PodTemplate) -> usize {
    serde_json::to_vec(template).map_or(0, |json| json.len())
}

/// The API server drops a field that is `null`, and so would any client in Go.
fn without_nulls(fields: serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    fields.map(|(name, value)| (name, pruned(value))).collect()
}

fn pruned(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(without_nulls(fields)),
        Value::Array(items) => items.into_iter().map(pruned).collect(),
        other => other,
    }
}

fn storable(before: &PodTemplate, after: &PodTemplate) -> Result<(), Fault> {
    let fault = |problem: &str| Fault {
        field: "spec.containers".to_owned(),
        problem: problem.to_owned(),
    };
    let had_containers = before.containers() > 0;
    match &after.spec {
        None if had_containers => Err(fault("Required value")),
        None => Ok(()),
        Some(spec) => {
            POD_SPEC.check(&Value::Object(spec.clone()), "spec")?;
            if had_containers && after.containers() == 0 {
                return Err(fault("Required value: the template had containers before"));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
