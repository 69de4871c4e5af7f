//! Templates, compiled once per resourceVersion: those that blueprints name, and those of Runnables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_types::TemplateKind;
use realizer::runnable::RunTemplate;
use realizer::{Template, TemplateSource, TemplateState};
use serde_json::Value;

use crate::cluster::chain;
use crate::mapper::Kind;
use crate::reflect::{Entry, Reflector};
use crate::stamped::{ObjectKey, Projection};

/// What all sorts of templates have in common.
pub trait Compiled: Send + Sync + Sized + 'static {
    /// Compiles an object.
    ///
    /// # Errors
    /// What is wrong with it.
    fn compile(object: &Value) -> Result<Self, String>;

    /// The kind of what is stamped, if it stands literally in a simple template.
    fn stamped_kind(&self) -> Option<(&str, &str)>;

    /// The leading field names of every path that is read on it.
    fn reads(&self) -> Arc<[Vec<String>]>;
}

macro_rules! compiled {
    ($($template:ty),+) => {$(
        impl Compiled for $template {
            fn compile(object: &Value) -> Result<Self, String> {
                <$template>::compile(object).map_err(|error| chain(&error))
            }

            fn stamped_kind(&self) -> Option<(&str, &str)> {
                <$template>::stamped_kind(self)
            }

            fn reads(&self) -> Arc<[Vec<String>]> {
                <$template>::reads(self)
            }
        }
    )+};
}

compiled!(Template, RunTemplate);

/// A template, or what is wrong with it.
pub struct TemplateEntry<T>(pub Result<Arc<T>, String>);

impl<T: Compiled> Entry for TemplateEntry<T> {
    fn build(object: Value) -> Self {
        Self(T::compile(&object).map(Arc::new))
    }
}

impl<T: Compiled> Reflector<TemplateEntry<T>> {
    fn compiled(&self) -> impl Iterator<Item = Arc<T>> {
        let entries = self.all().into_iter();
        entries.filter_map(|(_, entry)| entry.0.as_ref().ok().cloned())
    }

    /// The kinds that stand literally in simple templates.
    pub fn stamped_kinds(&self) -> BTreeSet<Kind> {
        let kind = |template: Arc<T>| {
            let (api_version, kind) = template.stamped_kind()?;
            Some(Kind::new(api_version, kind))
        };
        self.compiled().filter_map(kind).collect()
    }

    /// Every path that some template reads on objects of this kind, so that a watch is started once with
    /// all of them instead of growing template by template.
    pub fn reads(&self, kind: &Kind) -> Projection {
        let mut projection = Projection::default();
        for template in self.compiled() {
            if template.stamped_kind() == Some((&*kind.api_version, &*kind.kind)) {
                projection.grow(&Projection::new(template.reads().iter().cloned()));
            }
        }
        projection
    }
}

/// The templates of all kinds that one controller uses.
pub struct Templates {
    kinds: BTreeMap<TemplateKind, Arc<Reflector<TemplateEntry<Template>>>>,
}

impl Templates {
    /// A store per kind.
    pub fn new(kinds: &[TemplateKind]) -> Self {
        Self {
            kinds: kinds.iter().map(|kind| (*kind, Arc::default())).collect(),
        }
    }

    /// The stores.
    pub(crate) fn stores(
        &self,
    ) -> impl Iterator<Item = (TemplateKind, &Arc<Reflector<TemplateEntry<Template>>>)> {
        self.kinds.iter().map(|(kind, store)| (*kind, store))
    }

    /// The kinds that stand literally in simple templates.
    pub(crate) fn stamped_kinds(&self) -> BTreeSet<Kind> {
        let stores = self.kinds.values();
        stores.flat_map(|store| store.stamped_kinds()).collect()
    }

    /// Every path that some template reads on objects of this kind.
    pub fn reads(&self, kind: &Kind) -> Projection {
        let mut projection = Projection::default();
        for store in self.kinds.values() {
            projection.grow(&store.reads(kind));
        }
        projection
    }
}

impl TemplateSource for Templates {
    fn template(&self, kind: TemplateKind, name: &str) -> TemplateState {
        let Some(store) = self.kinds.get(&kind) else {
            return TemplateState::Missing;
        };
        match store.get(&ObjectKey::new("", name)) {
            Some(entry) => match &entry.0 {
                Ok(template) => TemplateState::Found(template.clone()),
                Err(error) => TemplateState::Unreadable(error.clone()),
            },
            None => TemplateState::Missing,
        }
    }
}
