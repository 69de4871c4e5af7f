//! The inputs of a step, whichever list they stand in.

use super::BlueprintResource;
use crate::templates::TemplateKind;

/// The lists in which inputs stand. What goes by kind of input asks here; a new kind is a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InputSlot {
    /// `sources`: url and revision.
    Source,
    /// `images`.
    Image,
    /// `deployment`: url and revision of what goes into an environment. It has no local name.
    Deployment,
    /// `configs`.
    Config,
    /// `dependsOn`: that the step is good, and nothing else. It has no local name, and templates do not see it.
    Success,
}

impl InputSlot {
    /// The field of the blueprint, which is also the name in the context of a template that sees it.
    ///
    /// ```
    /// use api_types::InputSlot;
    ///
    /// assert_eq!(InputSlot::Image.list(), "images");
    /// assert_eq!(InputSlot::Deployment.list(), "deployment");
    /// ```
    pub fn list(self) -> &'static str {
        match self {
            Self::Source => "sources",
            Self::Image => "images",
            Self::Deployment => "deployment",
            Self::Config => "configs",
            Self::Success => "dependsOn",
        }
    }

    /// One of them: the name in a template's context for the only one there is (docs/behaviour/context.md#shortcuts).
    pub fn singular(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Image => "image",
            Self::Deployment => "deployment",
            Self::Config => "config",
            Self::Success => "success",
        }
    }

    /// How messages call one of its inputs.
    pub fn name_of(self, local_name: &str) -> &str {
        match self {
            Self::Deployment | Self::Success => self.singular(),
            Self::Source | Self::Image | Self::Config => local_name,
        }
    }

    /// The slot whose inputs a template of this kind hands through, if it hands any through
    /// (docs/behaviour/selection.md#options).
    pub fn of_pass_through(kind: TemplateKind) -> Option<Self> {
        match kind {
            TemplateKind::Source => Some(Self::Source),
            TemplateKind::Image => Some(Self::Image),
            TemplateKind::Config => Some(Self::Config),
            TemplateKind::Deployment | TemplateKind::Validation => Some(Self::Deployment),
            TemplateKind::Plain => None,
        }
    }
}

/// One input that a step declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredInput<'s> {
    /// Which list it stands in.
    pub slot: InputSlot,
    /// Name by which the template refers to it; empty for the deployment and for the success of a step.
    pub name: &'s str,
    /// Name of the step that provides it.
    pub resource: &'s str,
}

impl BlueprintResource {
    /// All inputs, in the order of status entries: sources, images, deployment, configs, dependsOn
    /// (docs/behaviour/kinds.md#step-status).
    ///
    /// ```
    /// use api_types::{BlueprintResource, InputSlot};
    ///
    /// let step: BlueprintResource = serde_json::from_value(serde_json::json!({
    ///     "configs": [{"name": "pods", "resource": "conventions"}],
    ///     "sources": [{"name": "code", "resource": "fetch"}],
    /// }))?;
    /// let inputs: Vec<_> = step.inputs().map(|input| (input.slot, input.resource)).collect();
    /// assert_eq!(inputs, [(InputSlot::Source, "fetch"), (InputSlot::Config, "conventions")]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn inputs(&self) -> impl Iterator<Item = DeclaredInput<'_>> {
        let named = [
            (InputSlot::Source, &self.sources),
            (InputSlot::Image, &self.images),
            (InputSlot::Config, &self.configs),
        ];
        let named = named.map(|(slot, references)| {
            references.iter().map(move |reference| DeclaredInput {
                slot,
                name: &reference.name,
                resource: &reference.resource,
            })
        });
        let deployment = self.deployment.iter().map(|reference| DeclaredInput {
            slot: InputSlot::Deployment,
            name: "",
            resource: &reference.resource,
        });
        let [sources, images, configs] = named;
        let depends_on = self.depends_on.iter().map(|dependency| DeclaredInput {
            slot: InputSlot::Success,
            name: "",
            resource: &dependency.resource,
        });
        let values = sources.chain(images).chain(deployment).chain(configs);
        values.chain(depends_on)
    }
}
