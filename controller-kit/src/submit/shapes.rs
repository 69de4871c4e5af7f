//! What the server did not record as ours of earlier objects of a template: most likely the same of the next one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use api_types::{LabelValue, labels};
use realizer::Submission;

use crate::mapper::Kind;

type Template = (Kind, [Box<str>; 2]);

/// Annotation `carto.run/unowned` per template, as the last apply left it.
///
/// With the right value in the first apply there is no second one to write it down. Only a guess: a wrong one costs the
/// second apply, as no guess does.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    unowned: Mutex<HashMap<Template, Option<Box<str>>>>,
}

impl Shapes {
    /// The likely annotation; `None` when nothing is known yet.
    #[expect(
        clippy::option_option,
        reason = "not known; known to be absent; known text"
    )]
    pub(super) fn expected(
        &self,
        kind: &Kind,
        submission: &Submission,
    ) -> Option<Option<Box<str>>> {
        let unowned = self.unowned.lock().unwrap_or_else(PoisonError::into_inner);
        unowned.get(&template(kind, submission)).cloned()
    }

    /// Takes note of what an apply came to.
    pub(super) fn learn(&self, kind: &Kind, submission: &Submission, annotation: Option<&str>) {
        let mut unowned = self.unowned.lock().unwrap_or_else(PoisonError::into_inner);
        unowned.insert(template(kind, submission), annotation.map(Box::from));
    }
}

fn template(kind: &Kind, submission: &Submission) -> Template {
    let label = |key: &str| {
        submission
            .family
            .get(key)
            .map_or("", LabelValue::as_str)
            .into()
    };
    let name = [
        label(labels::TEMPLATE_KIND),
        label(labels::CLUSTER_TEMPLATE_NAME),
    ];
    (kind.clone(), name)
}
