//! Rules that only look at an object, and say yes or no.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

use super::judges::Judges;
use super::{Admit, Answer, Operation, Review};

/// Decides about objects. Pure: no clock, no request.
pub trait Validate: Send + Sync + 'static {
    /// The verdict on an object that is about to be created or updated. `object` is what the user sent,
    /// defaults filled in; it may be any JSON.
    fn validate(&self, kind: &str, object: &Value, operation: Operation) -> Answer;
}

/// Admits what the rules admit. They run aside: a large object takes them a while.
pub struct Validating {
    rules: Arc<dyn Validate>,
    judges: Judges,
}

impl Validating {
    /// By these rules.
    pub fn new(rules: impl Validate) -> Self {
        Self::by(Arc::new(rules))
    }

    pub(super) fn by(rules: Arc<dyn Validate>) -> Self {
        Self {
            rules,
            judges: Judges::new(),
        }
    }
}

impl Admit for Validating {
    fn admit(&self, review: Arc<Review>) -> BoxFuture<'_, Option<Answer>> {
        let rules = self.rules.clone();
        self.judges
            .do_aside(move || decide(&*rules, &review))
            .boxed()
    }
}

/// Only what is created or changed is looked at.
fn decide(rules: &dyn Validate, review: &Review) -> Answer {
    if !matches!(review.operation, Operation::Create | Operation::Update) {
        return Answer::default();
    }
    match &review.object {
        Ok(object) => rules.validate(review.kind, object, review.operation),
        Err(text) => Answer::denied(text),
    }
}
