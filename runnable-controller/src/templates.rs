//! The ClusterRunTemplates, compiled once per resourceVersion.

use std::collections::BTreeSet;
use std::sync::Arc;

use controller_kit::cluster::chain;
use controller_kit::mapper::Kind;
use controller_kit::reflect::{Entry, Reflector, version_of};
use controller_kit::stamped::{ObjectKey, Projection};
use realizer::runnable::{NotRun, RunTemplate};
use serde_json::Value;

/// A template, or what is wrong with it.
pub(crate) struct RunTemplateEntry {
    version: u64,
    template: Result<Arc<RunTemplate>, String>,
}

impl Entry for RunTemplateEntry {
    fn build(object: Value, _: Option<&Self>) -> Self {
        Self {
            version: version_of(&object),
            template: RunTemplate::compile(&object)
                .map(Arc::new)
                .map_err(|error| chain(&error)),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct RunTemplates(Arc<Reflector<RunTemplateEntry>>);

impl RunTemplates {
    pub(crate) fn store(&self) -> &Arc<Reflector<RunTemplateEntry>> {
        &self.0
    }

    /// The template with this name.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<RunTemplate>, NotRun> {
        match self.0.get(&ObjectKey::new("", name)) {
            Some(entry) => entry.template.clone().map_err(NotRun::TemplateUnreadable),
            None => Err(NotRun::TemplateMissing),
        }
    }

    /// The kinds that stand literally in simple templates.
    pub(crate) fn stamped_kinds(&self) -> BTreeSet<Kind> {
        let templates = self.0.all().into_iter();
        let templates = templates.filter_map(|(_, entry)| entry.template.as_ref().ok().cloned());
        templates
            .filter_map(|template| {
                let (api_version, kind) = template.stamped_kind()?;
                Some(Kind::new(api_version, kind))
            })
            .collect()
    }

    /// Every path that some template reads on objects of this kind, so that a watch is started once with all of them.
    pub(crate) fn reads(&self, kind: &Kind) -> Projection {
        let mut projection = Projection::default();
        for (_, entry) in self.0.all() {
            if let Ok(template) = &entry.template
                && template.stamped_kind() == Some((&*kind.api_version, &*kind.kind))
            {
                projection.grow(&Projection::new(template.reads().iter().cloned()));
            }
        }
        projection
    }
}
