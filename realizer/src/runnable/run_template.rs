//! ClusterRunTemplates, compiled once per resourceVersion.

use std::sync::Arc;

use api_types::names::{NameError, ObjectName};
use api_types::{ClusterRunTemplate, HealthRule, RetentionPolicy, TemplateKind};
use serde_json::Value;

use crate::template::body::Body;
use crate::template::family_members::FamilyRule;
use crate::template::health::CompiledRule;
use crate::template::{literal_kind, prefixes};
use crate::values::field_path::FieldPath;

/// A compiled ClusterRunTemplate.
#[derive(Clone, Debug)]
pub struct RunTemplate {
    /// `metadata.name`.
    pub name: ObjectName,
    pub(super) body: Body,
    /// When a run has succeeded.
    pub(super) health: CompiledRule,
    /// Whether the template gives the rule itself.
    pub(super) has_own_rule: bool,
    /// By name.
    pub(super) outputs: Vec<(String, FieldPath)>,
    reads: Arc<[Vec<String>]>,
    stamped_kind: Option<(String, String)>,
}

/// An object that cannot be a ClusterRunTemplate; the API server holds no such object.
#[derive(Debug, thiserror::Error)]
pub enum RunTemplateError {
    /// `metadata.name` is missing.
    #[error("object has no metadata.name")]
    NameMissing,
    /// `metadata.name` is none.
    #[error("metadata.name: {0}")]
    Name(#[from] NameError),
    /// The object does not have the shape of its kind.
    #[error("ClusterRunTemplate cannot be read: {0}")]
    Shape(#[from] serde_json::Error),
}

impl RunTemplate {
    /// Compiles a template. Wrong tags and paths are no error here: the Runnable that uses them reports them.
    ///
    /// ```
    /// use realizer::runnable::RunTemplate;
    ///
    /// let template = RunTemplate::compile(&serde_json::json!({
    ///     "apiVersion": "carto.run/v1alpha1", "kind": "ClusterRunTemplate", "metadata": {"name": "unit-tests"},
    ///     "spec": {"outputs": {"url": "spec.params[0].value"}, "template": {
    ///         "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"generateName": "test-"}, "spec": {}}},
    /// }))?;
    /// let reads = template.reads();
    /// assert_eq!(*reads, [vec!["spec", "params"], vec!["status", "conditions"]]);
    /// # Ok::<(), realizer::runnable::RunTemplateError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RunTemplateError`] when the object does not have the shape the schema asks for.
    pub fn compile(object: &Value) -> Result<Self, RunTemplateError> {
        let typed: ClusterRunTemplate = serde_json::from_value(object.clone())?;
        let name = typed.metadata.name.filter(|name| !name.is_empty());
        let spec = typed.spec;
        let outputs: Vec<_> = spec
            .outputs
            .into_iter()
            .map(|(name, path)| (name, FieldPath::new(&path)))
            .collect();
        // Without a rule it is the one of Tekton's runs, which is all that the Go controller knows.
        let health = CompiledRule::new(spec.health_rule.as_ref(), true);
        let paths = outputs.iter().map(|(_, path)| path);
        Ok(Self {
            name: ObjectName::try_from(name.ok_or(RunTemplateError::NameMissing)?)?,
            body: Body::new(spec.template.as_ref(), spec.ytt.as_ref()),
            reads: prefixes(&health, paths).into(),
            stamped_kind: spec.template.as_ref().and_then(literal_kind),
            has_own_rule: spec.health_rule.as_ref().is_some_and(is_given),
            health,
            outputs,
        })
    }

    /// `apiVersion` and `kind` of the run, when they stand literally in a simple template.
    pub fn stamped_kind(&self) -> Option<(&str, &str)> {
        let (api_version, kind) = self.stamped_kind.as_ref()?;
        Some((api_version, kind))
    }

    /// The leading field names of every path that is read on a run; an empty one means all of it.
    pub fn reads(&self) -> Arc<[Vec<String>]> {
        Arc::clone(&self.reads)
    }

    /// How runs are judged; how many are kept is the Runnable's to say.
    pub(super) fn rule(&self, retention: RetentionPolicy) -> FamilyRule<'_> {
        FamilyRule {
            health: &self.health,
            kind: TemplateKind::Plain,
            retention,
        }
    }
}

/// Admission asks for exactly one field; past it, an empty rule is none, and an empty type of a condition is no field.
fn is_given(rule: &HealthRule) -> bool {
    let type_ = rule.single_condition_type.as_deref().unwrap_or_default();
    !type_.is_empty() || rule.always_healthy.is_some() || rule.multi_match.is_some()
}
