//! The ClusterRunTemplates.

use std::sync::Arc;

use controller_kit::owner::TemplateEntry;
use controller_kit::reflect::Reflector;
use controller_kit::stamped::ObjectKey;
use realizer::runnable::{NotRun, RunTemplate};

/// All of them.
pub(crate) type RunTemplates = Arc<Reflector<TemplateEntry<RunTemplate>>>;

/// The template with this name.
pub(crate) fn template(templates: &RunTemplates, name: &str) -> Result<Arc<RunTemplate>, NotRun> {
    match templates.get(&ObjectKey::new("", name)) {
        Some(entry) => entry.0.clone().map_err(NotRun::TemplateUnreadable),
        None => Err(NotRun::TemplateMissing),
    }
}
