//! Admission of presets themselves: what the CRDs cannot decide.

use std::sync::Arc;

use controller_kit::webhook::{Admit, Answer, Judges, Operation, Review};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use pod_presets::{FieldError, Options, validate, warnings};

use crate::args::PresetArgs;

/// Refuses presets that could not be applied.
pub(super) struct Rules {
    options: Options,
    judges: Judges,
}

impl Rules {
    pub(super) fn new(args: &PresetArgs) -> Self {
        let mutable = args.mutable_presets;
        Self {
            options: Options { mutable },
            judges: Judges::new(),
        }
    }
}

impl Admit for Rules {
    fn admit(&self, review: Arc<Review>) -> BoxFuture<'_, Option<Answer>> {
        let options = self.options;
        self.judges
            .do_aside(move || judge(&review, options))
            .boxed()
    }
}

fn judge(review: &Review, options: Options) -> Answer {
    if !matches!(review.operation, Operation::Create | Operation::Update) {
        return Answer::default();
    }
    let object = match &review.object {
        Ok(object) => object,
        Err(text) => return Answer::denied(text),
    };
    let old = match review.operation {
        // What nobody can read may be mended.
        Operation::Update => review.old_object().ok(),
        _ => None,
    };
    let errors = validate(object, old.as_ref(), options);
    Answer {
        error: (!errors.is_empty()).then(|| FieldError::all(&errors)),
        warnings: warnings(object),
        ..Answer::default()
    }
}
