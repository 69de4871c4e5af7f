//! What stands below a step's object: the object of a Runnable or Deliverable, the Pods of a Job, and what each says of itself.
//! No I/O: objects in, lines out; [`crate::descend`] reads them.

mod pods;

use api_types::status::StampedRef;
use realizer::Family;
use serde::Serialize;
use serde_json::Value;

use super::{State, Tree, TreeError};

pub use pods::pods_of;

/// An object below a step, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Below {
    /// `<kind>/<name>`.
    pub object: String,
    /// Namespace of the object.
    pub namespace: String,
    /// How it does; absent when it could not be read or is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// What it says, on one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What to do about it, unless it is as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What stands below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Self>,
}

/// The kinds that are looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// A Workload or Deliverable that another owner's template stamps.
    Owner(Family),
    /// A Runnable.
    Runnable,
    /// A Job.
    Job,
    /// A Pod.
    Pod,
}

impl Depth {
    /// Of a reference; absent for a kind that is not looked into.
    pub fn of(object: &StampedRef) -> Option<Self> {
        let kind = object.kind.as_deref()?;
        let families = [Family::SupplyChain, Family::Delivery];
        match object.api_version.as_deref()? {
            api_types::API_VERSION if kind == realizer::runnable::KIND => Some(Self::Runnable),
            api_types::API_VERSION => {
                let mut families = families.into_iter();
                families
                    .find(|family| family.owner_kind() == kind)
                    .map(Self::Owner)
            }
            "batch/v1" if kind == "Job" => Some(Self::Job),
            "v1" if kind == "Pod" => Some(Self::Pod),
            _ => None,
        }
    }

    /// Group, version, kind and plural.
    pub fn resource(self) -> [&'static str; 4] {
        let ours = |kind, plural| [api_types::GROUP, api_types::VERSION, kind, plural];
        match self {
            Self::Owner(family) => ours(family.owner_kind(), family.owner_plural()),
            Self::Runnable => ours(realizer::runnable::KIND, "runnables"),
            Self::Job => ["batch", "v1", "Job", "jobs"],
            Self::Pod => ["", "v1", "Pod", "pods"],
        }
    }
}

/// What was found at a reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The object.
    Object(Value),
    /// There is none.
    Nothing,
    /// It could not be read; why.
    Unread(String),
}

impl Below {
    /// What an object says of itself.
    ///
    /// # Errors
    ///
    /// [`TreeError`] when an object of ours does not have the shape of its kind.
    pub fn read(depth: Depth, reference: &StampedRef, found: &Found) -> Result<Self, TreeError> {
        let mut below = Self::named(reference);
        let object = match found {
            Found::Object(object) => object,
            // No fault by itself: what a run came to is known also when the run is gone.
            Found::Nothing => {
                "is not there any more".clone_into(&mut below.text);
                return Ok(below);
            }
            Found::Unread(why) => {
                below.text = format!("could not be read: {why}");
                return Ok(below);
            }
        };
        match depth {
            Depth::Owner(family) => below.take_headline(Tree::read(family, object, None)?),
            Depth::Runnable => below.take_headline(Tree::read_runnable(object)?),
            Depth::Job => below.read_job(object),
            Depth::Pod => below.read_pod(object),
        }
        Ok(below)
    }

    fn named(reference: &StampedRef) -> Self {
        Self {
            object: format!(
                "{}/{}",
                reference.kind.as_deref().unwrap_or("?"),
                reference.name.as_deref().unwrap_or("?")
            ),
            namespace: reference.namespace.clone().unwrap_or_default(),
            state: None,
            text: String::new(),
            next: None,
            below: Vec::new(),
        }
    }

    fn take_headline(&mut self, tree: Tree) {
        self.state = Some(tree.headline.state);
        self.text = tree.headline.text;
        self.next = tree.headline.next;
    }

    fn say(&mut self, state: State, text: &str) {
        self.state = Some(state);
        self.text = first_line(text);
    }

    fn name(&self) -> &str {
        self.object.split_once('/').map_or("", |(_, name)| name)
    }

    /// What it says, with its name unless that is in it.
    pub(super) fn said(&self) -> String {
        if self.text.contains(self.name()) {
            self.text.clone()
        } else {
            format!("{}: {}", self.object, self.text)
        }
    }

    /// The deepest object that explains why this one is not as it should be; one that fails goes before one that waits.
    pub(super) fn cause(&self) -> Option<&Self> {
        let of = |state: State| {
            let mut below = self.below.iter();
            below.find(|it| it.state == Some(state)).or_else(|| {
                // What could not be read, or is well, may stand above what is not.
                self.below.iter().find(|it| it.holds(state))
            })
        };
        let deeper = of(State::Failing).or_else(|| of(State::Waiting));
        match deeper {
            Some(deeper) => deeper.cause().or(Some(deeper)),
            None => (self.state.is_some() && self.state != Some(State::Ready)).then_some(self),
        }
    }

    fn holds(&self, state: State) -> bool {
        self.state == Some(state) || self.below.iter().any(|below| below.holds(state))
    }
}

/// The objects that stand below one of these kinds by its status; the Pods of a Job are found by their controller.
pub fn referenced(depth: Depth, object: &Value) -> Vec<StampedRef> {
    let status = &object["status"];
    let reference = |value: &Value| serde_json::from_value::<StampedRef>(value.clone()).ok();
    match depth {
        Depth::Owner(_) => {
            let entries = status["resources"].as_array().into_iter().flatten();
            entries
                .filter_map(|entry| reference(entry.get("stampedRef")?))
                .filter(|object| Depth::of(object).is_some())
                .collect()
        }
        Depth::Runnable => status
            .get("stampedRef")
            .and_then(reference)
            .into_iter()
            .collect(),
        Depth::Job | Depth::Pod => Vec::new(),
    }
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().unwrap_or_default().to_owned()
}
