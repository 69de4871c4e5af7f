//! Templates, compiled once per resourceVersion: from inputs to an object, and from the object to outputs.
//!
//! Before the object is submitted: [`params`] and [`context`] build what a template sees, [`body`] renders it ([`ytt`]
//! describes the run of a ytt template), [`own_status`] tells whether it sees our own status writes, and [`stamp`] adds
//! namespace, owner and labels.
//!
//! When the object was observed: [`outputs`] are read from it, [`goodness`] says when they may be handed on, [`foreign`] refuses
//! those of objects in which others have set something, [`judgement`] says
//! to which verdict a validation came, and [`health`] how the object is. [`provenance`] ties outputs to what made them, and
//! [`updates`] are the renderings of a step that overtake one another. Of an immutable template there is a family of
//! objects: [`family_members`] orders them and says which may go, [`runs`] is what status remembers of them. [`time_limit`] is
//! that of validations and of updates.
//!
//! A new kind of output is a variant of [`OutputPaths`] and one of `outputs::OutputValues`, and usually an
//! [`InputSlot`](api_types::InputSlot) that takes it; a new rule of when outputs are handed on is a variant of
//! `goodness::Goodness`.

pub(crate) mod body;
pub(crate) mod context;
pub(crate) mod family_members;
pub(crate) mod foreign;
pub(crate) mod goodness;
pub(crate) mod health;
pub(crate) mod judgement;
pub(crate) mod others;
pub(crate) mod outputs;
pub(crate) mod own_status;
pub(crate) mod params;
pub(crate) mod provenance;
pub(crate) mod runs;
pub(crate) mod stamp;
pub(crate) mod time_limit;
pub(crate) mod updates;
pub(crate) mod ytt;

use std::sync::Arc;

use api_types::names::{NameError, ObjectName};
use api_types::{Lifecycle, RetentionPolicy, TemplateKind, TemplateParam};
use serde_json::{Value, json};

use crate::template::body::Body;
use crate::template::family_members::FamilyRule;
use crate::template::goodness::Goodness;
use crate::template::health::CompiledRule;
use crate::template::judgement::Judgement;
use crate::template::outputs::OutputValues;
use crate::template::updates::UpdateRule;
use crate::values::field_path::FieldPath;

/// A compiled template.
#[derive(Clone, Debug)]
pub struct Template {
    /// Which kind of template.
    pub kind: TemplateKind,
    /// `metadata.name`.
    pub name: ObjectName,
    pub(crate) params: Vec<TemplateParam>,
    pub(crate) body: Body,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) retention: RetentionPolicy,
    /// Whether objects that somebody else made are taken over.
    pub(crate) adopt: bool,
    pub(crate) health: CompiledRule,
    /// Which values are handed on.
    pub(crate) outputs: OutputPaths,
    /// When they are.
    pub(crate) goodness: Goodness,
    /// Set where outputs are tied to what made them.
    pub(crate) attribution: Option<Attribution>,
    /// Set where updates wait.
    pub(crate) updates: Option<UpdateRule>,
    /// Whether nothing is read while others have set fields that are not rendered.
    pub(crate) refuses_foreign_fields: bool,
    stamped_kind: Option<(String, String)>,
    reads: Arc<[Vec<String>]>,
}

/// What the provenance of outputs says of their template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribution {
    /// Digest of the spec.
    pub(crate) template: String,
    /// Digest of what the outputs are and where they are read.
    pub(crate) read_from: String,
    /// Digest of that and of the inputs that the object reports.
    pub(crate) watched: String,
}

/// What a step hands on, and where it is read on the object.
#[derive(Clone, Debug)]
pub(crate) enum OutputPaths {
    Source {
        url: FieldPath,
        revision: FieldPath,
    },
    Image(FieldPath),
    Config(FieldPath),
    Nothing,
    /// The deployment that comes in, as it is.
    IncomingDeployment,
}

/// An object that cannot be a template; the API server holds no such object.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The kind is none of [`TemplateKind`].
    #[error(transparent)]
    Kind(#[from] api_types::templates::UnknownTemplateKind),
    /// `metadata.name` is missing.
    #[error("object has no metadata.name")]
    NameMissing,
    /// `metadata.name` is none.
    #[error("metadata.name: {0}")]
    Name(#[from] NameError),
    /// The object does not have the shape of its kind.
    #[error("{kind} cannot be read: {source}")]
    Shape {
        /// The kind.
        kind: TemplateKind,
        /// What does not fit.
        source: serde_json::Error,
    },
}

/// What is known of a template.
#[derive(Clone, Debug)]
pub enum TemplateState {
    /// It exists.
    Found(Arc<Template>),
    /// It does not exist.
    Missing,
    /// It could not be read; why.
    Unreadable(String),
}

/// Where the engine finds templates; the shell's cache.
pub trait TemplateSource: Send + Sync {
    /// The template of this kind and name.
    fn template(&self, kind: TemplateKind, name: &str) -> TemplateState;
}

impl Template {
    /// Compiles a template. Wrong tags and paths are no error here: the step that uses them reports them.
    ///
    /// ```
    /// use realizer::Template;
    ///
    /// let template = Template::compile(&serde_json::json!({
    ///     "apiVersion": "carto.run/v1alpha1", "kind": "ClusterImageTemplate", "metadata": {"name": "build"},
    ///     "spec": {"imagePath": ".status.latestImage", "template": {
    ///         "apiVersion": "kpack.io/v1alpha2", "kind": "Image", "metadata": {"name": "$(workload.metadata.name)$"},
    ///     }},
    /// }))?;
    /// assert_eq!(template.stamped_kind(), Some(("kpack.io/v1alpha2", "Image")));
    /// assert_eq!(*template.reads(), [["status", "latestImage"]]);
    /// # Ok::<(), realizer::TemplateError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TemplateError`] when the object does not have the shape the schema asks for.
    pub fn compile(object: &Value) -> Result<Self, TemplateError> {
        let kind: TemplateKind = object["kind"].as_str().unwrap_or_default().parse()?;
        let typed = api_types::Template::from_value(kind, object.clone())
            .map_err(|source| TemplateError::Shape { kind, source })?;
        let name = typed.name();
        if name.is_empty() {
            return Err(TemplateError::NameMissing);
        }
        let name = ObjectName::try_from(name)?;
        let spec = typed.spec();
        let lifecycle = spec.lifecycle;
        let health = CompiledRule::new(spec.health_rule.as_ref(), lifecycle == Lifecycle::Tekton);
        let outputs = OutputPaths::new(&typed);
        let goodness = Goodness::new(&typed);
        let stamped_kind = spec.template.as_ref().and_then(literal_kind);
        let attribution = typed
            .is_attributed()
            .then(|| Attribution::new(object, stamped_kind.as_ref()));
        let updates = typed.update_policy().and_then(UpdateRule::of);
        let paths = outputs.paths().into_iter().chain(goodness.paths());
        let mut reads = prefixes(&health, paths);
        if attribution.is_some() {
            reads.push(MANAGED_FIELDS.map(str::to_owned).to_vec());
        }
        Ok(Self {
            kind,
            name,
            params: spec.params.clone(),
            body: Body::new(spec.template.as_ref(), spec.ytt.as_ref()),
            lifecycle,
            retention: spec.retention_policy.unwrap_or_default(),
            adopt: spec.adopt,
            stamped_kind,
            reads: reads.into(),
            health,
            outputs,
            goodness,
            attribution,
            updates,
            refuses_foreign_fields: typed.refuses_foreign_fields(),
        })
    }

    /// `apiVersion` and `kind` of the stamped object, when they stand literally in a simple template.
    pub fn stamped_kind(&self) -> Option<(&str, &str)> {
        let (api_version, kind) = self.stamped_kind.as_ref()?;
        Some((api_version, kind))
    }

    /// How the members of an immutable family are judged, and how many are kept.
    pub(crate) fn family_rule(&self) -> FamilyRule<'_> {
        FamilyRule {
            health: &self.health,
            kind: self.kind,
            retention: self.retention,
        }
    }

    /// Whether its outputs are tied to what made them.
    pub(crate) fn is_attributed(&self) -> bool {
        self.attribution.is_some()
    }

    /// Whether its outputs are judged as those of runs: of objects that are never changed.
    pub(crate) fn is_judged_as_run(&self) -> bool {
        self.is_attributed() && self.lifecycle.is_immutable()
    }

    /// How a validation is judged; none of other templates.
    pub(crate) fn judgement(&self) -> Option<&Judgement> {
        match &self.goodness {
            Goodness::Verdict(judgement) => Some(judgement),
            Goodness::Always | Goodness::Done(_) => None,
        }
    }

    /// The leading field names of every path that is read on the stamped object; an empty one means all of it. Where
    /// [`MANAGED_FIELDS`] are among them, what it holds beside the rendering is asked for.
    pub fn reads(&self) -> Arc<[Vec<String>]> {
        Arc::clone(&self.reads)
    }
}

/// The field of an object that says who has set which of its fields.
///
/// ```
/// use realizer::{MANAGED_FIELDS, Template};
///
/// let template = Template::compile(&serde_json::json!({
///     "apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "config"},
///     "spec": {"alwaysSuccessful": true, "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}},
/// }))?;
/// assert!(template.reads().iter().any(|path| *path == MANAGED_FIELDS));
/// # Ok::<(), realizer::TemplateError>(())
/// ```
pub const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// The fields of templates that say where outputs are read.
const PATH_FIELDS: [&str; 4] = ["urlPath", "revisionPath", "imagePath", "configPath"];

impl Attribution {
    fn new(template: &Value, stamped_kind: Option<&(String, String)>) -> Self {
        let paths = PATH_FIELDS.map(|field| &template["spec"][field]);
        let group = stamped_kind.map(|(api_version, kind)| {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            (group, kind)
        });
        let read_from = json!([template["kind"], template["metadata"]["name"], paths, group]);
        let read_from = provenance::digest(&read_from);
        let watched = json!([read_from, template["spec"]["inputsOnStatus"]]);
        Self {
            template: provenance::digest(&template["spec"]),
            watched: provenance::digest(&watched),
            read_from,
        }
    }
}

impl OutputPaths {
    fn new(template: &api_types::Template) -> Self {
        match template {
            api_types::Template::Source(template) => Self::Source {
                url: FieldPath::new(&template.spec.url_path),
                revision: FieldPath::new(&template.spec.revision_path),
            },
            api_types::Template::Image(template) => {
                Self::Image(FieldPath::new(&template.spec.image_path))
            }
            api_types::Template::Config(template) => {
                Self::Config(FieldPath::new(&template.spec.config_path))
            }
            api_types::Template::Plain(_) => Self::Nothing,
            api_types::Template::Deployment(_) | api_types::Template::Validation(_) => {
                Self::IncomingDeployment
            }
        }
    }

    /// The values that were kept, by their names; none unless all of them were.
    pub(crate) fn kept(&self, value: impl Fn(&str) -> Option<Value>) -> Option<OutputValues> {
        Some(match self {
            Self::Nothing => OutputValues::Nothing,
            Self::Image(_) => OutputValues::Image(value("image")?),
            Self::Config(_) => OutputValues::Config(value("config")?),
            Self::Source { .. } | Self::IncomingDeployment => OutputValues::Source {
                url: value("url")?,
                revision: value("revision")?,
            },
        })
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    fn paths(&self) -> Vec<&FieldPath> {
        match self {
            Self::Source { url, revision } => vec![url, revision],
            Self::Image(path) | Self::Config(path) => vec![path],
            Self::Nothing | Self::IncomingDeployment => Vec::new(),
        }
    }
}

pub(crate) fn literal_kind(template: &Value) -> Option<(String, String)> {
    let literal = |field: &str| {
        let text = template.get(field)?.as_str()?;
        (!text.is_empty() && !text.contains("$(")).then(|| text.to_owned())
    };
    Some((literal("apiVersion")?, literal("kind")?))
}

/// The leading field names of all that is read on an object: its conditions if a rule asks for them, and the paths.
pub(crate) fn prefixes<'p>(
    health: &'p CompiledRule,
    paths: impl Iterator<Item = &'p FieldPath>,
) -> Vec<Vec<String>> {
    let mut prefixes: Vec<Vec<String>> = paths
        .chain(health.paths())
        .filter_map(FieldPath::prefix)
        .collect();
    if !health.is_always_healthy() {
        prefixes.push(vec!["status".to_owned(), "conditions".to_owned()]);
    }
    prefixes.sort();
    prefixes.dedup();
    prefixes
}

#[cfg(test)]
mod tests;
