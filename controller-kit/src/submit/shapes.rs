//! What the server did not record as ours of earlier objects of a template: most likely the same of the next one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use api_types::{LabelValue, labels};
use realizer::Submission;

use crate::mapper::Kind;

type Template = (Kind, [Box<str>; 2]);

/// Templates remembered. Kinds may be named by owners, and templates come and go.
const REMEMBERED: usize = 4096;

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
        let template = template(kind, submission);
        if unowned.len() >= REMEMBERED && !unowned.contains_key(&template) {
            // Whichever: whoever has to guess anew sends one more apply, once.
            let dropped = unowned.keys().next().cloned();
            dropped.and_then(|dropped| unowned.remove(&dropped));
        }
        unowned.insert(template, annotation.map(Box::from));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use realizer::Lifecycle;
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_is_in_it() {
        let shapes = Shapes::default();
        let submission = Submission {
            resource: "step".into(),
            object: Value::Null,
            digest: String::new(),
            basis: None,
            lifecycle: Lifecycle::Mutable,
            family: BTreeMap::new(),
            reads: [].into(),
            precondition: realizer::Precondition::None,
        };
        for number in 0..REMEMBERED + 100 {
            let kind = Kind::new("g/v1", format!("K{number}"));
            shapes.learn(&kind, &submission, Some("[]"));
            assert!(shapes.expected(&kind, &submission).is_some());
        }
        assert_eq!(shapes.unowned.lock().unwrap().len(), REMEMBERED);
    }
}
