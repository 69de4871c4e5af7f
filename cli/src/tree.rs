//! The tree of an owner, from what its status says. No I/O: objects in, lines or JSON out.
//!
//! ```text
//!  owner object ─────┐
//!                    ├─▶ Tree::read ─▶ Tree ─▶ render  ─▶ lines for people
//!  blueprint object ─┘        │          └───▶ serde   ─▶ JSON for scripts
//!  (if it may be read)        ├─ realizer::explanation: what holds the owner and its steps back
//!                             ├─ cause.rs: that as a sentence
//!                             └─ advice.rs: what to do about it, by the engine's table, with the commands
//! ```

mod advice;
mod below;
mod cause;
mod environment;
mod outputs;
mod render;
mod runnable;
mod step;

use api_types::status::StampedRef;
use api_types::{
    BlueprintRef, BlueprintSpec, Condition, ConditionStatus, ConditionType, EnvironmentStatus,
    OwnerSummary, ResourceStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use below::{Below, Depth, Found, pods_of, referenced};
pub use cause::{Headline, State};
use realizer::explanation::Explanation;
use realizer::{BlueprintError, Family};
pub use render::{Colors, render};
pub(crate) use render::{plain, short_hex};
pub use step::{Input, Output, Step};

/// Everything `carto tree` shows of one owner.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// Kind of the owner.
    pub kind: &'static str,
    /// Namespace of the owner.
    pub namespace: String,
    /// Name of the owner.
    pub name: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// The generation the status speaks of; absent until a controller has written one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready for the present generation.
    pub ready: bool,
    /// What holds the owner back, and what to do about it.
    pub headline: Headline,
    /// What an object below the step says that holds the owner back, or below the newest run of a Runnable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Conditions of the owner, as in its status.
    pub conditions: Vec<Condition>,
    /// The blueprint that was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<Blueprint>,
    /// The steps in the order in which they are submitted.
    pub steps: Vec<Step>,
    /// The environments that are validated, as in the status: what is in each, what waits, and what validations say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<EnvironmentStatus>,
    /// Objects that are no longer wanted and could not be deleted yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending_removals: Vec<StampedRef>,
}

/// The blueprint of an owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blueprint {
    /// Kind of the blueprint.
    pub kind: String,
    /// Name of the blueprint.
    pub name: String,
    /// Whether it could be read. If not, the order of steps and the local names of inputs are those of the status.
    pub known: bool,
}

/// Why objects cannot be shown as a tree: another program than the API server made them.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The owner does not have the shape of its kind.
    #[error("the {kind} does not have the shape of its kind")]
    Owner {
        /// Kind of the owner.
        kind: &'static str,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// The blueprint does not have the shape of its kind.
    #[error(transparent)]
    Blueprint(#[from] realizer::BlueprintError),
}

impl Tree {
    /// Reads the tree of a Runnable.
    ///
    /// # Errors
    ///
    /// [`TreeError`] when the object is no Runnable.
    pub fn read_runnable(object: &Value) -> Result<Self, TreeError> {
        runnable::read(object)
    }

    /// Reads the tree from the owner and, if at hand, its blueprint.
    ///
    /// # Errors
    ///
    /// [`TreeError`] when an object is not of the kind that `family` says.
    pub fn read(
        family: Family,
        object: &Value,
        blueprint: Option<&Value>,
    ) -> Result<Self, TreeError> {
        let owner = OwnerView::read(family, object).map_err(|source| TreeError::Owner {
            kind: family.owner_kind(),
            source,
        })?;
        let known = blueprint
            .map(|object| declared(family, object))
            .transpose()?;
        let (compiled, spec) = known.unzip();
        let explanation = Explanation::of_status(family, &object["status"], compiled.as_ref());
        let steps = step::steps(&explanation, spec.as_ref());
        let headline = cause::headline(family, &owner, spec.as_ref(), &explanation, &steps);
        Ok(Self {
            kind: family.owner_kind(),
            blueprint: owner.blueprint(family, spec.is_some()),
            generation: owner.metadata.generation,
            observed_generation: owner.status.observed_generation,
            ready: owner.is_ready(),
            headline,
            because: None,
            steps,
            namespace: owner.metadata.namespace,
            name: owner.metadata.name,
            conditions: owner.status.conditions,
            environments: owner.status.environments,
            pending_removals: owner.status.pending_removals,
        })
    }
}

impl Tree {
    /// Takes what was found below the object of each step, in their order. What explains the headline best goes into it.
    pub fn put_below(&mut self, found: Vec<Option<Below>>) {
        for (step, below) in self.steps.iter_mut().zip(found) {
            step.below = below;
        }
        let is_cause = |step: &&Step| match &self.headline.step {
            Some(name) => step.name == *name,
            None => self.kind == realizer::runnable::KIND,
        };
        let mut explained = self.steps.iter().filter(is_cause);
        let cause = explained.find_map(|step| step.below.as_ref()?.cause());
        if let Some(cause) = cause.filter(|_| self.headline.state != State::Ready) {
            self.because = Some(cause.said());
            if let Some(next) = &cause.next {
                self.headline.next = Some(next.clone());
            }
        }
    }

    /// Whether an object of a step is of a kind that is looked into.
    pub fn may_descend(&self) -> bool {
        let objects = self.steps.iter().filter_map(|step| step.object.as_ref());
        objects
            .into_iter()
            .any(|object| Depth::of(object).is_some())
    }
}

/// What is read of an owner, of either kind.
#[derive(Debug, Deserialize)]
struct OwnerView {
    metadata: MetadataView,
    #[serde(default)]
    spec: SpecView,
    #[serde(default)]
    status: StatusView,
    #[serde(skip)]
    chosen: BlueprintRef,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetadataView {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    generation: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecView {
    service_account_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusView {
    observed_generation: Option<i64>,
    conditions: Vec<Condition>,
    environments: Vec<EnvironmentStatus>,
    pending_removals: Vec<StampedRef>,
}

/// The blueprint as the engine reads it, and as it stands there.
fn declared(
    family: Family,
    object: &Value,
) -> Result<(realizer::Blueprint, BlueprintSpec), BlueprintError> {
    let compiled = realizer::Blueprint::compile(family, object)?;
    let spec = BlueprintSpec::deserialize(&object["spec"]);
    let spec = spec.map_err(|source| BlueprintError::Shape {
        name: compiled.name.clone(),
        source,
    })?;
    Ok((compiled, spec))
}

impl OwnerView {
    fn read(family: Family, object: &Value) -> Result<Self, serde_json::Error> {
        let mut view = Self::deserialize(object)?;
        // The engine passes over what it cannot read of a status; whoever looks for a cause must know of it.
        if let Some(entries) = object["status"].get("resources") {
            Vec::<ResourceStatus>::deserialize(entries)?;
        }
        if let Some(summary) = object["status"].get("summary") {
            Option::<OwnerSummary>::deserialize(summary)?;
        }
        if let Some(chosen) = object["status"].get(family.status_ref_field()) {
            view.chosen = BlueprintRef::deserialize(chosen)?;
        }
        Ok(view)
    }

    fn condition(&self, type_: ConditionType) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.is(type_))
    }

    /// The status speaks of the spec as it is now.
    fn is_current(&self) -> bool {
        self.status
            .observed_generation
            .is_some_and(|observed| observed >= self.metadata.generation)
    }

    fn is_ready(&self) -> bool {
        let ready = self.condition(ConditionType::Ready);
        self.is_current()
            && ready.is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    fn blueprint(&self, family: Family, known: bool) -> Option<Blueprint> {
        let name = self.chosen.name.clone()?;
        let kind = self
            .chosen
            .kind
            .clone()
            .unwrap_or_else(|| family.blueprint_kind().to_owned());
        Some(Blueprint { kind, name, known })
    }
}
