//! A template on its way through the conventions that match.

use std::time::Duration;

use controller_kit::stamped::ObjectKey;
use convention_client::{CallError, CallErrorKind, RequestBody, Target};
use conventions::answer::Answer;
use conventions::authority::AuthorityError;
use conventions::chain::Chain;
use conventions::credentials::Keyring;
use conventions::inputs::template_digest;
use conventions::outcome::{Failure, Pass};
use conventions::{ConsideredConvention, ConventionWebhook, FailurePolicy, PodIntentStatus};
use tokio::time::Instant;
use tracing::{Instrument as _, debug_span};

use crate::again::Again;
use crate::authority::Authority;
use crate::conclusion::{Outcome, concluded, is_made_from};
use crate::controller::IntentController;
use crate::entries::ConventionEntry;
use crate::fault::{Fault, Stop};
use crate::images::KnownImages;
use crate::log;
use crate::patience::Turn;
use crate::plan::{Mechanism, Plan, PlannedCall};
use crate::presets::Selected;
use crate::remembered::{Answers, Heard};
use crate::report::Subject;

/// What is said of a convention that is left out without a call. It tells nothing of other
/// tenants' calls.
const SPARED: &str = "it does not answer in time, and is not asked for the moment";

/// What is said of a convention that applies presets where nobody knows any.
const NOT_SERVED: &str = "it applies pod presets, and the controller runs without --pod-presets";

/// One pass over a PodIntent.
struct Run<'r> {
    key: &'r ObjectKey,
    /// The status as it is.
    before: &'r PodIntentStatus,
    plan: &'r Plan,
    chain: Chain,
    images: KnownImages,
    /// Read when the first image is resolved.
    keyring: Option<Keyring>,
    /// When what was left out, or failed, is tried again.
    again: Again,
    /// What the last try was answered, if it came to nothing.
    earlier: Answers,
    /// What this one was.
    answers: Answers,
}

impl Run<'_> {
    /// Takes over what a convention made of the template.
    fn record(
        &mut self,
        convention: &str,
        answer: Answer,
        told: &mut ConsideredConvention,
    ) -> Result<(), Failure> {
        let before = self.chain.template().clone();
        let receipts = answer.applied.clone();
        let recorded = self.chain.record(convention, answer);
        recorded.map_err(|fault| Failure::NotStorable {
            convention: convention.to_owned(),
            fault,
        })?;
        log::applied(convention, &before, self.chain.template());
        told.receipts = receipts;
        told.output_digest = template_digest(self.chain.template());
        Ok(())
    }
}

impl IntentController {
    /// Asks each convention in its order. Returns also when what was left out, or failed, is tried
    /// again.
    pub(crate) async fn realize(&self, of: Subject<'_>, plan: Plan) -> Result<(Pass, Again), Stop> {
        let mut run = Run {
            key: of.key,
            before: of.before,
            plan: &plan,
            chain: Chain::start(of.intent.spec.template.clone()),
            images: KnownImages::default(),
            keyring: None,
            again: Again::Backoff,
            earlier: self.remembered.of(of.key, of.uid()),
            answers: Answers::default(),
        };
        let outcome = self.ask_all(&mut run).await;
        // The next try asks only those who did not answer.
        if outcome.as_ref().is_ok_and(Outcome::is_whole) {
            self.remembered.forget(of.key);
        } else {
            let answers = std::mem::take(&mut run.answers);
            self.remembered.keep(of.key, of.uid(), answers);
        }
        let images = run.images.status();
        let again = run.again.max(run.images.again());
        let pass = concluded(of.before, &plan, run.chain, images, outcome?);
        Ok((pass, again))
    }

    /// Asks one convention, unless one before it has failed.
    async fn take_turn(
        &self,
        run: &mut Run<'_>,
        call: &PlannedCall,
        mut told: ConsideredConvention,
        outcome: &mut Outcome,
    ) -> Result<(), Stop> {
        if outcome.is_open() {
            // A line of the log has the fields of the innermost span alone.
            let (podintent, convention) = (run.key, &*call.entry.name);
            let span = debug_span!("convention", %podintent, convention);
            let applied = self.apply(run, call, &mut told).instrument(span).await;
            if let Some(failure) = failure_of(applied)? {
                told.error = failure.to_string();
                if is_ignored(call, &failure) {
                    outcome.went_without = true;
                    outcome.stays = is_made_from(run.before, run.plan, &run.images.status());
                } else {
                    outcome.failure = Some(failure);
                }
            }
        }
        outcome.considered.push(told);
        Ok(())
    }

    async fn apply(
        &self,
        run: &mut Run<'_>,
        call: &PlannedCall,
        told: &mut ConsideredConvention,
    ) -> Result<(), Stop> {
        let authority = match &call.mechanism {
            Mechanism::PodPresets(presets) => return inject(run, call, presets.as_ref(), told),
            Mechanism::Webhook { authority } => authority,
        };
        self.resolve_images(run).await?;
        let name = &*call.entry.name;
        let before = run.chain.template().clone();
        let question = call.called().digest_with(&before);
        let heard = match run.earlier.get(&question).cloned() {
            Some(heard) => heard,
            None => self.ask(run, call, authority, told).await?,
        };
        told.boms_left_out.clone_from(&heard.boms_left_out);
        run.record(name, heard.answer.clone(), told)?;
        run.answers.insert(question, heard, &run.earlier);
        Ok(())
    }

    async fn resolve_images(&self, run: &mut Run<'_>) -> Result<(), Stop> {
        if run.chain.template().images().is_empty() {
            return Ok(());
        }
        if run.keyring.is_none() {
            let keyring = self.keyring(&run.key.namespace, &run.plan.secrets).await?;
            run.keyring = Some(keyring);
        }
        let keyring = run.keyring.get_or_insert_default();
        let resolving = run.images.resolve(&mut run.chain, &self.images, keyring);
        resolving.await
    }

    /// The answer of a webhook, or why there is none. It is measured, and one that does not answer
    /// is spared: whoever cannot go on without it is put off.
    async fn ask(
        &self,
        run: &mut Run<'_>,
        call: &PlannedCall,
        authority: &Result<Authority, AuthorityError>,
        told: &mut ConsideredConvention,
    ) -> Result<Heard, Stop> {
        let name = &*call.entry.name;
        let failed = |cause| webhook_failed(name, cause);
        if matches!(authority, Err(AuthorityError::Forbidden { .. })) {
            run.again = run.again.max(Again::WithinAMinute);
        }
        let most_bytes = self.options.most_request_bytes;
        let (target, body) = prepared(run, call, authority, most_bytes).map_err(failed)?;
        let boms_left_out = body.left_out().to_vec();
        let version = call.entry.version();
        let Some(turn) = self.patience.enter(name, version, run.key) else {
            return Err(match call.entry.failure_policy() {
                FailurePolicy::Ignore => failed(SPARED.to_owned()),
                FailurePolicy::Fail => Stop::PutOff,
            });
        };
        let _room = self.answers.take().await;
        let started = Instant::now();
        let answered = self.clients.call(&target, call.budget(), &body).await;
        let took = started.elapsed();
        told.duration_millis = i64::try_from(took.as_millis()).ok();
        // The webhook has nothing to do with files of ours.
        if !matches!(answered, Err(CallError::Request { .. })) {
            self.metrics.called(name, took, answered.is_ok());
        }
        match &answered {
            Err(CallError::TimedOut { .. }) => self.timed_out(&call.entry, turn),
            Err(CallError::Request { .. }) => drop(turn),
            _ => self.wake_in_turn(turn.answered().into_iter().collect()),
        }
        let answer = answered.map_err(|error| {
            run.again = run.again.max(Again::asked(error.retry_after()));
            unanswered(name, &error)
        })?;
        Ok(Heard {
            answer,
            boms_left_out,
        })
    }

    /// Asks each convention in its order, and resolves images.
    async fn ask_all(&self, run: &mut Run<'_>) -> Result<Outcome, Stop> {
        let mut outcome = Outcome::default();
        for call in &run.plan.calls {
            let told = call.considered.clone();
            self.take_turn(run, call, told, &mut outcome).await?;
        }
        if outcome.is_open() && self.options.resolve_at_end {
            outcome.failure = failure_of(self.resolve_images(run).await)?;
        }
        Ok(outcome)
    }

    /// Nobody answered in time. Of a convention that was corrected since, that tells nothing.
    fn timed_out(&self, asked: &ConventionEntry, turn: Turn<'_>) {
        let key = ObjectKey::new("", &asked.name);
        let now = self.stores.conventions.get(&key);
        let is_same = |now: &ConventionEntry| now.version() == asked.version();
        if now.is_some_and(|now| is_same(&now.0)) {
            self.wake_in_turn(turn.timed_out().into_iter().collect());
        }
    }
}

fn webhook_failed(convention: &str, cause: String) -> Stop {
    Stop::Failure(Failure::Webhook {
        convention: convention.to_owned(),
        cause,
    })
}

/// What follows from a call without an answer. A file of ours that cannot be read is no failure of
/// the convention, and so never ignored.
fn unanswered(convention: &str, error: &CallError) -> Stop {
    match error.kind() {
        CallErrorKind::Request => Stop::Fault(Fault::Files(error.to_string())),
        CallErrorKind::Webhook | CallErrorKind::Connection => {
            webhook_failed(convention, error.to_string())
        }
    }
}

/// Presets are added by ourselves, and nobody is asked. Those that conflict are no failure: the
/// template is as it was, as a pod would be.
fn inject(
    run: &mut Run<'_>,
    call: &PlannedCall,
    presets: Option<&Selected>,
    told: &mut ConsideredConvention,
) -> Result<(), Stop> {
    let name = &*call.entry.name;
    let presets = presets.ok_or_else(|| webhook_failed(name, NOT_SERVED.to_owned()))?;
    let decorated = presets.apply(run.chain.template());
    let decorated = decorated.map_err(|cause| webhook_failed(name, cause))?;
    told.error = decorated.conflict;
    let answer = Answer {
        template: Some(decorated.template),
        applied: decorated.applied,
    };
    Ok(run.record(name, answer, told)?)
}

/// Who is called, and with what.
fn prepared(
    run: &Run<'_>,
    call: &PlannedCall,
    authority: &Result<Authority, AuthorityError>,
    most_bytes: u64,
) -> Result<(Target, RequestBody), String> {
    if let Some(cause) = &call.entry.unreadable {
        return Err(format!("it cannot be read: {cause}"));
    }
    let authority = authority.as_ref().map_err(ToString::to_string)?;
    let webhook = call.entry.convention.spec.webhook.as_ref();
    let config = webhook
        .map(|it| it.client_config.clone())
        .unwrap_or_default();
    let target = Target::of(&config, authority.as_deref()).map_err(|error| error.to_string())?;
    let (configs, boms) = run.images.told(&run.chain);
    let name = &run.key.name;
    let context = run.chain.request(name, &call.entry.name, configs);
    let body =
        RequestBody::within(most_bytes, &context, &boms).map_err(|error| error.to_string())?;
    Ok((target, body))
}

impl PlannedCall {
    /// How long the call may take.
    fn budget(&self) -> Duration {
        let webhook = self.entry.convention.spec.webhook.as_ref();
        let usual = || ConventionWebhook::default().budget();
        webhook.map_or_else(usual, ConventionWebhook::budget)
    }
}

/// What stands in the status; no other cause does.
fn failure_of(done: Result<(), Stop>) -> Result<Option<Failure>, Stop> {
    match done {
        Ok(()) => Ok(None),
        Err(Stop::Failure(failure)) => Ok(Some(failure)),
        Err(stop @ (Stop::Fault(_) | Stop::PutOff)) => Err(stop),
    }
}

/// Whether the template goes on without a convention that failed in this way.
fn is_ignored(call: &PlannedCall, failure: &Failure) -> bool {
    let is_its_own = matches!(
        failure,
        Failure::Webhook { .. } | Failure::NotStorable { .. }
    );
    is_its_own && call.entry.failure_policy() == FailurePolicy::Ignore
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_ours_that_cannot_be_read_is_no_failure_of_the_convention() {
        let (url, cause) = (|| "https://hook".to_owned(), || "why".to_owned());
        let ours = CallError::Request {
            url: url(),
            cause: cause(),
        };
        assert!(matches!(
            unanswered("a", &ours),
            Stop::Fault(Fault::Files(_))
        ));
        let answer = CallError::Answer {
            url: url(),
            cause: cause(),
        };
        let connection = CallError::Connection {
            url: url(),
            cause: cause(),
        };
        for theirs in [answer, connection] {
            let stop = unanswered("a", &theirs);
            assert!(matches!(stop, Stop::Failure(Failure::Webhook { .. })));
        }
    }
}
