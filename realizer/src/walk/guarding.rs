//! The part of a walk that is about environments: looking before writing, and judging validations by arrival.
//!
//! ```text
//!  deployment step   rendering ─▶ Look ─▶ decide ─┬─▶ Submit, with the record of the arrival that status announced
//!                                                 ├─▶ hold: what is deployed is read, nothing is written
//!                                                 └─▶ nothing: status has to say first what comes, or what is disregarded
//!  validation step   rendering ─▶ Look ─┬─▶ Submit, when status says that its deployment is there
//!                                       └─▶ judged as it is, or not begun
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::environment::site::Flow;
use crate::environment::{Record, annotation_path};
use crate::owner::owner_status::object_ref;
use crate::step::end::{StepEnd, StepResult};
use crate::step::error::StepError;
use crate::template::context::ResolvedInputs;
use crate::template::deployment::NotDone;
use crate::template::outputs::ReadError;
use crate::template::runs::{self, Due, Runs};
use crate::template::stamp;
use crate::values::canonical;
use crate::values::redaction::Taint;
use crate::walk::observe::Observing;
use crate::walk::prepare::{Asked, Withheld};
use crate::walk::realization::Realization;
use crate::{
    Ask, Lifecycle, Looked, Observation, Observed, Precondition, Submission, SubmitFailureKind,
    Template,
};

/// What is being asked about a step, as far as environments are concerned.
#[derive(Clone, Debug, Default)]
pub(crate) enum Stage {
    /// Nothing in particular.
    #[default]
    Plain,
    /// Where the environment is, for this rendering; with the other places to look.
    Searching {
        wanted: Box<Submission>,
        elsewhere: Vec<Submission>,
        /// How often the write was refused, because the environment had changed.
        refused: u8,
    },
    /// What is in the environment, though nothing can be put into it now, and why not.
    Staying(Box<Withheld>),
    /// The environment is written with this arrival.
    Deploying {
        record: Box<Record>,
        /// The rendering without the record.
        wanted: Box<Submission>,
        refused: u8,
    },
    /// A validation.
    Validating,
    /// An object of an immutable template, not yet looked for.
    Family,
}

impl Stage {
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

impl Realization<'_> {
    /// Looks first, where a write depends on what is there.
    pub(crate) fn guarded(&self, step: usize, asked: Asked) -> Asked {
        let Ask::Submit(mut submission) = asked.ask else {
            return asked;
        };
        if self.is_environment(step) {
            // What is there counts, with whatever arrival.
            let mut reads = submission.reads.to_vec();
            reads.push(annotation_path());
            submission.reads = reads.into();
            return Asked {
                ask: Ask::Look(submission.clone()),
                stage: Stage::Searching {
                    elsewhere: self.other_places(step, &submission),
                    wanted: Box::new(submission),
                    refused: 0,
                },
                ..asked
            };
        }
        if self.blueprint.steps[step].validates() {
            self.tie(step, &mut submission);
            return Asked {
                ask: Ask::Look(submission),
                stage: Stage::Validating,
                ..asked
            };
        }
        if submission.lifecycle.is_immutable() {
            return Asked {
                ask: Ask::Look(submission),
                stage: Stage::Family,
                ..asked
            };
        }
        Asked {
            ask: Ask::Submit(submission),
            ..asked
        }
    }

    pub(crate) fn is_environment(&self, step: usize) -> bool {
        !self.blueprint.downstream[step].is_empty()
    }

    /// A template may render another name, or another kind, for each revision; the environment is then where the step
    /// wrote last.
    pub(crate) fn other_places(&self, step: usize, submission: &Submission) -> Vec<Submission> {
        let mut places = Vec::new();
        if submission.lifecycle == Lifecycle::Mutable {
            places.push(Submission {
                lifecycle: Lifecycle::Immutable,
                ..submission.clone()
            });
        }
        let name = &self.blueprint.steps[step].name;
        let told = self.owner.status.resource(name);
        let told = told.and_then(|entry| object_ref(entry.stamped_ref.as_ref()?));
        let here = stamp::reference(&submission.object);
        let is_elsewhere = |told: &crate::ObjectRef| {
            here.as_ref().is_some_and(|here| {
                (&here.api_version, &here.kind, &here.name)
                    != (&told.api_version, &told.kind, &told.name)
            })
        };
        if let Some(told) = told.filter(is_elsewhere) {
            places.push(Submission {
                object: self.stand_in(&told),
                lifecycle: Lifecycle::Mutable,
                ..submission.clone()
            });
        }
        places
    }

    /// What goes into a step from the environments before it.
    pub(crate) fn inbound(&self, step: usize) -> Flow {
        let mut inbound = Flow::default();
        for provider in self.blueprint.steps[step].deployment_providers() {
            if let Some(flow) = &self.flows[provider] {
                inbound.nearest.extend(flow.nearest.clone());
                inbound.lineage.extend(flow.lineage.clone());
            }
        }
        inbound
    }

    /// Answers [`Ask::Look`]; without one outstanding, nothing happens.
    pub(crate) fn looked_at(&mut self, looked: Looked) {
        let Some((step, asked)) = self
            .outstanding
            .take_if(|(_, asked)| matches!(asked.ask, Ask::Look(_)))
        else {
            return;
        };
        let Ask::Look(submission) = &asked.ask else {
            return;
        };
        match (looked, asked.stage.clone()) {
            (looked, Stage::Staying(withheld)) => {
                self.stays(step, &asked.template, &looked.unwrap_or_default());
                self.withhold_step(step, asked.template, withheld);
            }
            (Ok(found), Stage::Searching { .. }) => self.found_environment(step, asked, &found),
            (Ok(found), Stage::Family) => {
                let submission = submission.clone();
                self.found_family(step, asked, submission, &found);
            }
            // Where it was is somebody else's now, so it is not there any more.
            (Err(failure), Stage::Searching { wanted, .. })
                if failure.kind == SubmitFailureKind::Contested && *wanted != *submission =>
            {
                self.found_environment(step, asked, &[]);
            }
            (Ok(found), _) => {
                let submission = submission.clone();
                self.found_run(step, asked, submission, &found);
            }
            (Err(failure), _) => {
                let end = self
                    .observing(step, &asked.template)
                    .observe(submission, Observation::Failed(failure));
                self.end_step(step, &asked, end);
            }
        }
    }

    /// What status remembers of the objects of a step, with those that were found.
    pub(crate) fn runs<'s>(
        &'s self,
        step: usize,
        template: &'s Template,
        found: &'s [Observed],
        taint: &'s Taint,
    ) -> Runs<'s> {
        let spec = &self.blueprint.steps[step];
        Runs {
            taint,
            template,
            found,
            told: runs::told_of(&self.owner.status, self.blueprint, &spec.name, template),
            deployment: ResolvedInputs::of(spec, &self.outputs).deployment(),
        }
    }

    fn found_family(
        &mut self,
        step: usize,
        asked: Asked,
        mut submission: Submission,
        found: &[Observed],
    ) {
        match self
            .runs(step, &asked.template, found, &self.taint(step))
            .decide(&submission.digest)
        {
            Due::Submit(position) => {
                submission.told.position = position;
                let ask = Ask::Submit(submission);
                let stage = Stage::Plain;
                self.outstanding = Some((
                    step,
                    Asked {
                        ask,
                        stage,
                        ..asked
                    },
                ));
            }
            Due::Ended(run) => {
                let end = self
                    .observing(step, &asked.template)
                    .ended(&submission, &run, found);
                self.prospects[step] = end.output().cloned();
                self.end_step(step, &asked, end);
            }
        }
    }

    /// Ends a step that submits nothing. What is in an environment is looked at all the same: its validations go on, and
    /// what they say must not wait for the next revision.
    pub(crate) fn leave_step(
        &mut self,
        step: usize,
        template: Arc<Template>,
        withheld: Box<Withheld>,
    ) {
        let told = self.owner.status.resource(&self.blueprint.steps[step].name);
        let told = told.and_then(|entry| object_ref(entry.stamped_ref.as_ref()?));
        let Some(told) = told.filter(|_| self.is_environment(step)) else {
            self.withhold_step(step, template, withheld);
            return;
        };
        let mut reads = template.reads().to_vec();
        reads.push(annotation_path());
        let object = self.stand_in(&told);
        let ask = Ask::Look(Submission {
            resource: self.blueprint.steps[step].name.clone(),
            digest: canonical::digest(&object),
            name_seed: None,
            basis: None,
            object,
            lifecycle: Lifecycle::Mutable,
            family: BTreeMap::new(),
            reads: reads.into(),
            precondition: Precondition::None,
            told: crate::Told::default(),
            adopt: false,
        });
        let asked = Asked {
            template,
            labels: BTreeMap::new(),
            ask,
            stage: Stage::Staying(withheld),
        };
        self.outstanding = Some((step, asked));
    }

    /// Enough of an object to look at it.
    fn stand_in(&self, told: &crate::ObjectRef) -> serde_json::Value {
        json!({
            "apiVersion": told.api_version,
            "kind": told.kind,
            "metadata": {"namespace": self.owner.namespace, "name": told.name},
        })
    }

    /// What of the inputs of a step came from Secrets: of those that are there, and for a validation of those that it would
    /// have. What is in an environment stays secret while something else waits for it.
    pub(crate) fn taint(&self, step: usize) -> Taint {
        let spec = &self.blueprint.steps[step];
        let mut taint = ResolvedInputs::of(spec, &self.outputs).taint();
        if spec.validates() {
            taint = taint.and(&ResolvedInputs::of(spec, &self.prospects).taint());
        }
        let record = self.sites[step]
            .as_ref()
            .and_then(|site| site.record.as_ref());
        match record.and_then(Record::output) {
            Some(output) => taint.and(&output.taint),
            None => taint,
        }
    }

    pub(crate) fn observing<'s>(&'s self, step: usize, template: &'s Template) -> Observing<'s> {
        let spec = &self.blueprint.steps[step];
        Observing {
            blueprint: &self.blueprint.name,
            step: &spec.name,
            template,
            inputs: ResolvedInputs::of(spec, &self.outputs),
            taint: self.taint(step),
            key: &self.key,
            previous: self.owner.status.resource(&spec.name),
            told: runs::told_of(&self.owner.status, self.blueprint, &spec.name, template),
        }
    }

    pub(crate) fn end_step(&mut self, step: usize, asked: &Asked, end: StepEnd) {
        self.outputs[step] = end.output().cloned();
        let (Ask::Look(submission) | Ask::Submit(submission)) = &asked.ask else {
            return;
        };
        self.results[step] = Some(StepResult {
            template: Some(Arc::clone(&asked.template)),
            end,
            wanted: stamp::reference(&submission.object),
        });
    }
}

pub(crate) fn has_failed(end: &StepEnd) -> bool {
    match end {
        StepEnd::Submitted(submitted) => matches!(
            &submitted.output,
            Err(StepError::Retrieve {
                error: ReadError::NotDone(NotDone::Failed(_)),
                ..
            })
        ),
        StepEnd::PassedThrough(_) | StepEnd::Failed(_) => false,
    }
}
