//! The part of a walk that is about what is in an environment: found, decided upon, and read.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::condition::whole_seconds;
use api_types::labels;

use crate::environment::site::{Flow, Site};
use crate::environment::{self, Decision, Incoming, Known, Live, Present, Record, annotate, said};
use crate::step::end::StepEnd;
use crate::step::error::StepError;
use crate::template::context::ResolvedInputs;
use crate::template::deployment::NotDone;
use crate::template::outputs::{Output, ReadError};
use crate::template::runs::Due;
use crate::template::stamp;
use crate::values::canonical;
use crate::walk::guarding::{Stage, has_failed};
use crate::walk::prepare::{Asked, Withheld};
use crate::walk::realization::Realization;
use crate::{Ask, Lifecycle, Observation, Observed, Position, Submission, Template};

/// Whoever keeps changing an environment between a look and the write after it is not answered for ever.
const REFUSALS: u8 = 3;

impl Realization<'_> {
    /// An environment that nothing is put into now: it hands on what is in it.
    pub(crate) fn stays(&mut self, step: usize, template: &Arc<Template>, found: &[Observed]) {
        let Some(observed) = found.first() else {
            return;
        };
        let said = said(&observed.object);
        match self.known(step).present(said, &whole_seconds(&self.now)) {
            Present::Nothing | Present::Either => {}
            Present::Unheard(digest) => self.sites[step] = Some(Site::disregarding(digest)),
            Present::Revision(record) => {
                let end = self.keep(step, template, observed, record, Site::default());
                self.outputs[step] = end.output().cloned();
                self.only_its_own(step);
            }
        }
    }

    /// Reads an environment that is not written. What may not be in it is not handed on.
    fn keep(
        &mut self,
        step: usize,
        template: &Template,
        observed: &Observed,
        record: Record,
        site: Site,
    ) -> StepEnd {
        let output = record.output().unwrap_or(Output::NOTHING);
        let mut end = self
            .observing(step, template)
            .held(observed.clone(), &output);
        if let StepEnd::Submitted(submitted) = &mut end
            && !record.proven
            && submitted.output.is_ok()
        {
            submitted.output = Err(self.awaits(step, "only its object says what is in it"));
        }
        let disregarded = self
            .known(step)
            .unless_deployed(said(&observed.object))
            .filter(|_| record.told.is_some());
        let site = Site {
            failed: has_failed(&end),
            disregarded,
            ..site
        };
        self.found_site(step, record, site);
        end
    }

    fn awaits(&self, step: usize, what: &str) -> StepError {
        let name = &self.blueprint.steps[step].name;
        let error = ReadError::NotDone(NotDone::Condition(what.to_owned()));
        let message = format!("resource [{name}] condition not met: {what}");
        StepError::Retrieve { error, message }
    }

    /// What status says of the environment of a step.
    fn known(&self, step: usize) -> Known<'_> {
        let validations = self.blueprint.validations(step);
        Known {
            status: self
                .owner
                .status
                .environment(&self.blueprint.steps[step].name),
            validations: validations
                .map(|validation| self.blueprint.steps[validation].name.as_str())
                .collect(),
            key: &self.key,
        }
    }

    pub(crate) fn found_environment(&mut self, step: usize, asked: Asked, found: &[Observed]) {
        let Stage::Searching {
            wanted,
            mut elsewhere,
            refused,
        } = asked.stage.clone()
        else {
            return;
        };
        let mut wanted = *wanted;
        let in_place = matches!(&asked.ask, Ask::Look(looked) if *looked == wanted);
        let live = self.environment_among(step, &asked, found, in_place);
        let live = live.map(|observed| Live { observed, in_place });
        if live.is_none() && !elsewhere.is_empty() {
            let next = elsewhere.remove(0);
            let stage = Stage::Searching {
                wanted: Box::new(wanted),
                elsewhere,
                refused,
            };
            self.ask_again(step, asked, Ask::Look(next), stage);
            return;
        }
        let incoming = self.incoming(step);
        let decision = environment::decide(
            &wanted.digest,
            &incoming,
            live.as_ref(),
            &self.known(step),
            self.now.0,
        );
        match decision {
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
                wanted.told.position =
                    self.next_object(step, &asked.template, found, &wanted.digest);
                let ask = Ask::Submit(wanted);
                self.ask_again(step, asked, ask, stage);
            }
            Decision::Hold {
                record,
                next,
                is_free,
            } => {
                let Some(live) = live else {
                    return;
                };
                let site = Site {
                    next: Some(next),
                    waiting: Some(incoming),
                    held: true,
                    is_free,
                    ..Site::default()
                };
                let end = self.keep(step, &asked.template, live.observed, record, site);
                self.end_step(step, &asked, end);
            }
            Decision::Announce {
                record,
                disregarded,
            } => {
                let end = StepEnd::Failed(self.awaits(step, &about_to_arrive(&record)));
                self.sites[step] = Some(Site {
                    next: Some(record),
                    disregarded,
                    ..Site::default()
                });
                self.end_step(step, &asked, end);
            }
            Decision::Keyless => {
                let template = asked.template;
                let inputs = ResolvedInputs::of(&self.blueprint.steps[step], &self.outputs);
                let withheld = Withheld {
                    error: self.preparing_with(step, inputs).keyless(&template),
                    wanted: stamp::reference(&wanted.object),
                };
                let found: Vec<Observed> =
                    live.into_iter().map(|live| live.observed.clone()).collect();
                self.stays(step, &template, &found);
                self.withhold_step(step, template, Box::new(withheld));
            }
            Decision::Disregard(digest) => {
                let what = "somebody else wrote what its object says of the environment";
                let end = StepEnd::Failed(self.awaits(step, what));
                self.sites[step] = Some(Site::disregarding(digest));
                self.end_step(step, &asked, end);
            }
        }
    }

    fn ask_again(&mut self, step: usize, asked: Asked, ask: Ask, stage: Stage) {
        let asked = Asked {
            ask,
            stage,
            ..asked
        };
        self.outstanding = Some((step, asked));
    }

    /// The object that is the environment: the only one, or the newest. Elsewhere it is the one that says what status says;
    /// where the step wrote last, it is that one whatever it says. Only if status knows of nothing, it is the newest of
    /// those that say so: one without a record was written before there were validations, and nothing keeps it.
    fn environment_among<'o>(
        &self,
        step: usize,
        asked: &Asked,
        found: &'o [Observed],
        in_place: bool,
    ) -> Option<&'o Observed> {
        if in_place {
            let newest = found.iter().rev().find(|member| !member.terminating);
            return newest.or_else(|| found.iter().rev().find(|member| !member.is_gone));
        }
        let known = self.known(step);
        let mut found = found.iter().filter(|member| !member.is_gone);
        if known.is_in_use() {
            let is_told =
                matches!(&asked.ask, Ask::Look(looked) if looked.lifecycle == Lifecycle::Mutable);
            return found.find(|member| is_told || known.recognises(said(&member.object)));
        }
        let newest =
            found.filter_map(
                |member| match known.present(said(&member.object), &self.now) {
                    Present::Revision(record) => Some((record.arrival.number, member)),
                    Present::Nothing | Present::Either | Present::Unheard(_) => None,
                },
            );
        let newest = newest.max_by_key(|(arrival, _)| *arrival);
        newest.map(|(_, member)| member)
    }

    /// Position of the object that an environment is to be: one that somebody deleted is made again, whatever it came to,
    /// because the environment is the object.
    fn next_object(
        &self,
        step: usize,
        template: &Template,
        found: &[Observed],
        digest: &str,
    ) -> Position {
        let taint = self.taint(step);
        match self.runs(step, template, found, &taint).decide(digest) {
            Due::Submit(position) => position,
            Due::Ended(run) => Position::to_be_made(run.sequence.saturating_add(1)),
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
        let ask = Ask::Look((**wanted).clone());
        self.ask_again(step, asked, ask, stage);
        None
    }

    /// Reads an environment that was written.
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
        let known = self.known(step);
        let said = said(&observed.object);
        let was_there = known.status.is_some_and(|status| {
            status.arriving.is_none()
                && (status.deployed.as_ref())
                    .is_some_and(|told| told.arrival == record.arrival.number)
        });
        let disregarded = known
            .unless_deployed(said)
            .filter(|_| said != Some(record.text.as_str()));
        if disregarded.is_some() && !was_there {
            // Another writer is in the way, or our own status changes the rendering again and again: it waits.
            return StepEnd::Failed(self.awaits(step, &about_to_arrive(record)));
        }
        let end = self.observing(step, template).observe_as(
            submission,
            observation,
            record.output().as_ref(),
        );
        let site = Site {
            failed: has_failed(&end),
            disregarded,
            ..Site::default()
        };
        self.found_site(step, record.clone(), site);
        end
    }

    fn incoming(&self, step: usize) -> Incoming {
        let inputs = ResolvedInputs::of(&self.blueprint.steps[step], &self.outputs);
        Incoming::of(inputs.deployment())
    }

    fn found_site(&mut self, step: usize, record: Record, site: Site) {
        let own = BTreeMap::from([(step, record.clone())]);
        let mut lineage = own.clone();
        if site.waiting.is_none() {
            lineage.extend(self.inbound(step).lineage);
        }
        self.prospects[step] = record.output();
        self.flows[step] = Some(Flow {
            nearest: own,
            lineage,
        });
        self.sites[step] = Some(Site {
            record: Some(record),
            ..site
        });
    }

    /// What is in the environment is not what comes in now.
    fn only_its_own(&mut self, step: usize) {
        if let Some(flow) = &mut self.flows[step] {
            flow.lineage.clone_from(&flow.nearest);
        }
    }
}

fn about_to_arrive(record: &Record) -> String {
    format!("revision [{}] is about to be deployed", record.revision())
}
