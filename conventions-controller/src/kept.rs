//! Passes whose status could not be written: the write is tried again, and for that no webhook is
//! asked again.

use std::collections::HashMap;

use controller_kit::stamped::ObjectKey;
use conventions::outcome::{Failure, Pass};
use parking_lot::Mutex;

use crate::again::Again;
use crate::report::Subject;

/// The most bytes of templates that are kept. Who has no room is decorated anew.
const MOST_BYTES: usize = 16 << 20;

/// What is kept.
#[derive(Default)]
pub(crate) struct KeptPasses(Mutex<HashMap<ObjectKey, KeptPass>>);

struct KeptPass {
    made: MadePass,
    bytes: usize,
}

/// A pass, and what it was made for and from.
#[derive(Clone)]
pub(crate) struct MadePass {
    pub(crate) uid: String,
    pub(crate) inputs_digest: String,
    pub(crate) pass: Pass,
    /// When what was left out, or failed, is tried again.
    pub(crate) again: Again,
}

impl MadePass {
    /// One that ended before any convention was asked.
    pub(crate) fn unasked(of: Subject<'_>, failure: Failure) -> Self {
        Self {
            uid: of.uid().to_owned(),
            inputs_digest: String::new(),
            pass: Pass::failed(failure, of.before),
            again: Again::Backoff,
        }
    }
}

impl KeptPasses {
    /// Keeps a pass, if there is room.
    pub(crate) fn keep(&self, intent: &ObjectKey, made: MadePass) {
        let bytes = size(&made.pass);
        let mut kept = self.0.lock();
        kept.remove(intent);
        let taken: usize = kept.values().map(|kept| kept.bytes).sum();
        if taken + bytes <= MOST_BYTES {
            kept.insert(intent.clone(), KeptPass { made, bytes });
        }
    }

    /// The pass that was made for this PodIntent from these inputs.
    pub(crate) fn get(
        &self,
        intent: &ObjectKey,
        uid: &str,
        inputs_digest: &str,
    ) -> Option<MadePass> {
        let kept = self.0.lock();
        let made = &kept.get(intent)?.made;
        (made.uid == uid && made.inputs_digest == inputs_digest).then(|| made.clone())
    }

    /// It is written, or of no use any more.
    pub(crate) fn forget(&self, intent: &ObjectKey) {
        self.0.lock().remove(intent);
    }
}

/// About what it takes. What is said of conventions and images is little beside a template.
fn size(pass: &Pass) -> usize {
    const LEAST: usize = 4 << 10;
    let template = pass.outcome.as_ref().ok();
    let template = template.and_then(|template| serde_json::to_vec(template).ok());
    LEAST + template.map_or(0, |json| json.len())
}

#[cfg(test)]
mod tests {
    use conventions::PodIntentStatus;

    use super::*;

    fn made(inputs_digest: &str, annotation: usize) -> MadePass {
        let template =
            serde_json::json!({"metadata": {"annotations": {"a": "b".repeat(annotation)}}});
        let cause = String::new();
        let failed = Pass::failed(Failure::Credentials { cause }, &PodIntentStatus::default());
        MadePass {
            uid: "u".to_owned(),
            inputs_digest: inputs_digest.to_owned(),
            pass: Pass {
                outcome: Ok(serde_json::from_value(template).unwrap()),
                ..failed
            },
            again: Again::Backoff,
        }
    }

    #[test]
    fn a_pass_is_for_the_same_object_and_inputs_and_what_is_kept_is_bounded() {
        let kept = KeptPasses::default();
        let key = |name: usize| ObjectKey::new("dev", &name.to_string());
        kept.keep(&key(0), made("d", 1));
        assert!(kept.get(&key(0), "u", "d").is_some());
        assert!(kept.get(&key(0), "other", "d").is_none());
        assert!(kept.get(&key(0), "u", "other").is_none());
        kept.forget(&key(0));
        assert!(kept.get(&key(0), "u", "d").is_none());
        for name in 0..100 {
            kept.keep(&key(name), made("d", 1 << 20));
        }
        let has = |name: &usize| kept.get(&key(*name), "u", "d").is_some();
        assert_eq!((0..100).filter(has).count(), 15);
        // What is kept anew takes the place of what was kept for it.
        kept.keep(&key(0), made("e", 1 << 20));
        assert!(kept.get(&key(0), "u", "e").is_some());
    }
}
