//! The part of a walk that is about environments: looking before writing, and judging validations by arrival.
//!
//! ```text
//!  deployment step   rendering ─▶ Look ─▶ decide ─┬─▶ Submit, with the record of the arrival in it
//!                                                 └─▶ hold: what is deployed is read, nothing is written
//!  validation step   rendering ─▶ Look ─┬─▶ Submit, when its deployment is there
//!                                       └─▶ judged as it is, or not begun
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::labels;
use serde_json::json;

use crate::context::ResolvedInputs;
use crate::deployment::NotDone;
use crate::environment::{
    self, Decision, Incoming, Known, Live, Record, annotate, annotation_path,
};
use crate::error::StepError;
use crate::observe::Observing;
use crate::outputs::ReadError;
use crate::owner_status::object_ref;
use crate::prepare::{Asked, Withheld};
use crate::realization::Realization;
use crate::runs::{Due, Runs};
use crate::step_end::{StepEnd, StepResult};
use crate::{
    Lifecycle, Looked, Observation, Observed, Precondition, Step, Submission, Template, canonical,
    stamp,
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

/// Whoever keeps changing an environment between a look and the write after it is not answered for ever.
const REFUSALS: u8 = 3;

impl Stage {
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

/// What a deployment or validation step is about, beside its output: known before the output is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// The arrivals that are validated, by index of the environment's step: those reached through no other environment.
    pub(crate) nearest: BTreeMap<usize, Record>,
    /// All arrivals whose revision this is, by index of the environment's step.
    pub(crate) lineage: BTreeMap<usize, Record>,
}

/// What a walk found in an environment.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) record: Record,
    /// What waits for it.
    pub(crate) waiting: Option<Incoming>,
    /// Whether it is locked, as opposed to: the write did not take place for another reason.
    pub(crate) held: bool,
    /// Whether the deployment failed.
    pub(crate) failed: bool,
}

impl Realization<'_> {
    /// Looks first, where a write depends on what is there.
    pub(crate) fn guarded(&self, step: usize, asked: Asked) -> Asked {
        let Step::Submit(mut submission) = asked.ask else {
            return asked;
        };
        if self.is_environment(step) {
            // What is there counts, with whatever arrival.
            let mut reads = submission.reads.to_vec();
            reads.push(annotation_path());
            submission.reads = reads.into();
            return Asked {
                ask: Step::Look(submission.clone()),
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
                ask: Step::Look(submission),
                stage: Stage::Validating,
                ..asked
            };
        }
        if submission.lifecycle.is_immutable() {
            return Asked {
                ask: Step::Look(submission),
                stage: Stage::Family,
                ..asked
            };
        }
        Asked {
            ask: Step::Submit(submission),
            ..asked
        }
    }

    pub(crate) fn is_environment(&self, step: usize) -> bool {
        !self.blueprint.downstream[step].is_empty()
    }

    /// A template may render another name, or another kind, for each revision; the environment is then where the step
    /// wrote last.
    fn other_places(&self, step: usize, submission: &Submission) -> Vec<Submission> {
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

    /// Answers [`Step::Look`]; without one outstanding, nothing happens.
    pub fn record_looked(&mut self, looked: Looked) {
        let Some((step, asked)) = self
            .outstanding
            .take_if(|(_, asked)| matches!(asked.ask, Step::Look(_)))
        else {
            return;
        };
        let Step::Look(submission) = &asked.ask else {
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
    ) -> Runs<'s> {
        let spec = &self.blueprint.steps[step];
        Runs {
            template,
            found,
            told: self
                .owner
                .status
                .runs_of(self.blueprint, &spec.name, template),
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
            .runs(step, &asked.template, found)
            .decide(&submission.digest)
        {
            Due::Submit(sequence) => {
                submission.told.sequence = sequence;
                let ask = Step::Submit(submission);
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
        let ask = Step::Look(Submission {
            resource: self.blueprint.steps[step].name.clone(),
            digest: canonical::digest(&object),
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

    /// An environment that nothing is put into now: it hands on what is in it.
    fn stays(&mut self, step: usize, template: &Arc<Template>, found: &[Observed]) {
        let Some((observed, record)) = found
            .first()
            .and_then(|observed| Some((observed, Record::of(&observed.object)?)))
        else {
            return;
        };
        let end = self
            .observing(step, template)
            .held(observed.clone(), &record.output());
        self.outputs[step] = end.output().cloned();
        let failed = has_failed(&end);
        let own = BTreeMap::from([(step, record.clone())]);
        self.prospects[step] = Some(record.output());
        self.flows[step] = Some(Flow {
            nearest: own.clone(),
            lineage: own,
        });
        self.sites[step] = Some(Site {
            record,
            waiting: None,
            held: false,
            failed,
        });
    }

    fn found_environment(&mut self, step: usize, asked: Asked, found: &[Observed]) {
        let Stage::Searching {
            wanted,
            mut elsewhere,
            refused,
        } = asked.stage.clone()
        else {
            return;
        };
        let mut wanted = *wanted;
        let in_place = matches!(&asked.ask, Step::Look(looked) if *looked == wanted);
        let live = environment_among(found, in_place).map(|observed| Live { observed, in_place });
        if live.is_none() && !elsewhere.is_empty() {
            let next = elsewhere.remove(0);
            let stage = Stage::Searching {
                wanted: Box::new(wanted),
                elsewhere,
                refused,
            };
            self.outstanding = Some((
                step,
                Asked {
                    ask: Step::Look(next),
                    stage,
                    ..asked
                },
            ));
            return;
        }
        let name = &self.blueprint.steps[step].name;
        let validations: Vec<&str> = self
            .blueprint
            .validations(step)
            .map(|validation| self.blueprint.steps[validation].name.as_str())
            .collect();
        let known = Known {
            status: self.owner.status.environment(name),
            validations: &validations,
        };
        let incoming = self.incoming(step);
        match environment::decide(&wanted.digest, &incoming, live.as_ref(), known, self.now.0) {
            Decision::Submit {
                record,
                precondition,
            } => {
                let stage = Stage::Deploying {
                    record: Box::new(record.clone()),
                    wanted: Box::new(wanted.clone()),
                    refused,
                };
                annotate(&mut wanted, labels::ENVIRONMENT, &record.text);
                wanted.digest = canonical::digest(&wanted.object);
                wanted.precondition = precondition;
                wanted.told.sequence =
                    self.next_object(step, &asked.template, found, &wanted.digest);
                self.outstanding = Some((
                    step,
                    Asked {
                        ask: Step::Submit(wanted),
                        stage,
                        ..asked
                    },
                ));
            }
            Decision::Hold(record) => {
                let Some(live) = live else {
                    return;
                };
                let end = self
                    .observing(step, &asked.template)
                    .held(live.observed.clone(), &record.output());
                self.found_site(
                    step,
                    Site {
                        record,
                        waiting: Some(incoming),
                        held: true,
                        failed: has_failed(&end),
                    },
                );
                self.end_step(step, &asked, end);
            }
        }
    }

    /// Position of the object that an environment is to be: one that somebody deleted is made again, whatever it came to,
    /// because the environment is the object.
    fn next_object(
        &self,
        step: usize,
        template: &Template,
        found: &[Observed],
        digest: &str,
    ) -> u64 {
        match self.runs(step, template, found).decide(digest) {
            Due::Submit(sequence) => sequence,
            Due::Ended(run) => run.sequence.saturating_add(1),
        }
    }

    /// Somebody changed the environment after it was looked at, another process or a person: nothing is wrong, but what was
    /// decided no longer holds. Decides again; gives the question back when that was done often enough.
    pub(crate) fn decide_again(&mut self, step: usize, asked: Asked) -> Option<Asked> {
        let Stage::Deploying {
            wanted, refused, ..
        } = &asked.stage
        else {
            return Some(asked);
        };
        if *refused >= REFUSALS {
            return Some(asked);
        }
        let stage = Stage::Searching {
            wanted: wanted.clone(),
            elsewhere: self.other_places(step, wanted),
            refused: refused + 1,
        };
        let ask = Step::Look((**wanted).clone());
        self.outstanding = Some((
            step,
            Asked {
                ask,
                stage,
                ..asked
            },
        ));
        None
    }

    /// Reads an environment that was written, by what it says of itself: another writer may have been in the way.
    pub(crate) fn deployed(
        &mut self,
        step: usize,
        template: &Arc<Template>,
        submission: &Submission,
        record: &Record,
        observation: Observation,
    ) -> StepEnd {
        let (Observation::Object { observed, .. }
        | Observation::Family {
            submitted: observed,
            ..
        }) = &observation
        else {
            return self
                .observing(step, template)
                .observe(submission, observation);
        };
        let present = Record::of(&observed.object).unwrap_or_else(|| record.clone());
        let waiting = (present.text != record.text).then(|| self.incoming(step));
        let end = self.observing(step, template).observe_as(
            submission,
            observation,
            Some(&present.output()),
        );
        self.found_site(
            step,
            Site {
                record: present,
                waiting,
                held: false,
                failed: has_failed(&end),
            },
        );
        end
    }

    fn incoming(&self, step: usize) -> Incoming {
        let inputs = ResolvedInputs::of(&self.blueprint.steps[step], &self.outputs);
        Incoming::of(inputs.deployment())
    }

    fn found_site(&mut self, step: usize, site: Site) {
        let own = BTreeMap::from([(step, site.record.clone())]);
        let mut lineage = own.clone();
        if site.waiting.is_none() {
            lineage.extend(self.inbound(step).lineage);
        }
        self.prospects[step] = Some(site.record.output());
        self.flows[step] = Some(Flow {
            nearest: own,
            lineage,
        });
        self.sites[step] = Some(site);
    }

    pub(crate) fn observing<'s>(&'s self, step: usize, template: &'s Template) -> Observing<'s> {
        let spec = &self.blueprint.steps[step];
        Observing {
            blueprint: &self.blueprint.name,
            step: &spec.name,
            template,
            inputs: ResolvedInputs::of(spec, &self.outputs),
            previous: self.owner.status.resource(&spec.name),
            told: self
                .owner
                .status
                .runs_of(self.blueprint, &spec.name, template),
        }
    }

    pub(crate) fn end_step(&mut self, step: usize, asked: &Asked, end: StepEnd) {
        self.outputs[step] = end.output().cloned();
        let (Step::Look(submission) | Step::Submit(submission)) = &asked.ask else {
            return;
        };
        self.results[step] = Some(StepResult {
            template: Some(Arc::clone(&asked.template)),
            end,
            wanted: stamp::reference(&submission.object),
        });
    }
}

/// The object that is the environment: the only one, or the newest of those that say so. Elsewhere, one without a record
/// is none: it was written before there were validations, and nothing keeps it.
fn environment_among(found: &[Observed], in_place: bool) -> Option<&Observed> {
    if in_place {
        let newest = found.iter().rev().find(|member| !member.terminating);
        return newest.or_else(|| found.iter().rev().find(|member| !member.is_gone));
    }
    found
        .iter()
        .filter_map(|observed| Some((Record::of(&observed.object)?.arrival.number, observed)))
        .max_by_key(|(arrival, _)| *arrival)
        .map(|(_, observed)| observed)
}

fn has_failed(end: &StepEnd) -> bool {
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
