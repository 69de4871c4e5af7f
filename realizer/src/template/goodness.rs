//! When an object is good, so that its step hands on what is read
//! (docs/behaviour/attribution.md#rules, docs/behaviour/deployments.md#rules).
//!
//! What is read and when it is good are two things: any kind of output may wait until its object is good. Kubernetes has no
//! common way to say so, which is why a template says what to look at ([`Readiness`]). A validation is judged for each arrival
//! ([`Judgement`]).

mod completion;
mod condition;
mod dependence;
mod evidence;
mod pair;

use api_types::Template;
use api_types::templates::{InputOnStatus, OtherObject, SuccessRules};
use serde_json::{Value, json};

use self::completion::{Completion, Generation};
use self::condition::Condition;
use self::pair::PathPair;

pub(crate) use self::evidence::{Evidence, RuleInputs, Unknown};

use crate::template::judgement::Judgement;
use crate::template::others::NamedObject;
use crate::template::outputs::ReadError;
use crate::values::canonical;
use crate::values::field_path::{FieldPath, PathProblem};
use crate::values::redaction::{REDACTED, Taint, Veil};
use template_language::go_format;
use template_language::interpolate::Compiled;

/// When an object is good.
#[derive(Clone, Debug)]
pub(crate) enum Goodness {
    /// As soon as it is there.
    Always,
    /// Once it says that it is done.
    Done(Box<Readiness>),
    /// Once it has a verdict on what was deployed. Reading does not ask for it: the walk does, for each arrival.
    Verdict(Box<Judgement>),
}

impl Goodness {
    pub(crate) fn new(template: &Template) -> Self {
        match template {
            Template::Source(template) => Self::of(&template.spec.success),
            Template::Image(template) => Self::of(&template.spec.success),
            Template::Config(template) => Self::of(&template.spec.success),
            Template::Plain(template) => Self::of(&template.spec.success),
            Template::Deployment(template) => Self::Done(Box::new(Readiness::of_deployment(
                &template.spec.success,
                template.spec.success.are_attributed(),
            ))),
            Template::Validation(template) => {
                Self::Verdict(Box::new(Judgement::new(&template.spec)))
            }
        }
    }

    fn of(rules: &SuccessRules) -> Self {
        if rules.given() == 0 {
            return Self::Always;
        }
        let wording = Wording {
            subject: "",
            reads_scalars: true,
        };
        Self::Done(Box::new(Readiness::new(rules, wording)))
    }

    /// Whether what is read on the object may be handed on, as far as the rules can say. `inputs` is what all inputs of the
    /// step taint with.
    pub(crate) fn check(
        &self,
        object: Option<&Value>,
        inputs: &Taint,
        given: RuleInputs<'_>,
        is_run: bool,
    ) -> Result<(), ReadError> {
        match self {
            Self::Always | Self::Verdict(_) => Ok(()),
            Self::Done(readiness) => {
                let object = object.ok_or(ReadError::NoObject)?;
                if given.are_as_when_good {
                    return Ok(());
                }
                let evidence = Evidence::of(object, inputs, given.others);
                Ok(if is_run {
                    readiness.check_run(evidence)
                } else {
                    readiness.check(evidence, given.wanted)
                }?)
            }
        }
    }

    /// Whether it depends on the other objects whether an object is good or has failed. If not, they need not be read.
    pub(crate) fn needs_others(&self, object: &Value, is_run: bool) -> bool {
        let readiness = self.readiness().filter(|it| !it.others.is_empty());
        readiness.is_some_and(|readiness| readiness.needs_others(object, is_run))
    }

    /// The inputs that the rules compare with what the object reports.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = &ReportedInput> {
        let readiness = self.readiness().into_iter();
        readiness.flat_map(|readiness| &readiness.inputs)
    }

    /// The objects that the rules read beside the stamped one.
    pub(crate) fn others(&self) -> &[NamedObject] {
        self.readiness().map_or(&[], |readiness| &readiness.others)
    }

    /// Whether what `failed` says of an object may be about the spec before: of a kind that counts no generations.
    pub(crate) fn is_failure_untied(&self, object: &Value) -> bool {
        self.readiness().is_some_and(|readiness| {
            readiness.failed.is_some() && !readiness.generation.is_told(object)
        })
    }

    /// Whether the rules compare some fields with what the object reports, and do not ask about its whole spec.
    pub(crate) fn compares(&self) -> bool {
        self.readiness()
            .is_some_and(|it| !it.matches.is_empty() || !it.inputs.is_empty())
    }

    /// Digest of what the rules compare with what an object reports; none if they compare nothing. With these inputs, the
    /// object is good by them, whatever else is in its spec.
    pub(crate) fn compared(&self, object: &Value, wanted: &[Option<Value>]) -> Option<String> {
        let readiness = self.readiness().filter(|_| self.compares())?;
        Some(readiness.compared(object, wanted))
    }

    /// As [`Self::compared`], of the inputs of which an object says that it has made something.
    pub(crate) fn reported(&self, object: &Value) -> Option<String> {
        let readiness = self.readiness().filter(|_| self.compares())?;
        Some(readiness.reported(object))
    }

    /// Whether an object says that its status is about its present spec. One that tells its inputs may keep what it has made
    /// before, whichever generation it has observed.
    pub(crate) fn has_observed(&self, object: &Value) -> bool {
        self.readiness().is_some_and(|readiness| {
            readiness.inputs.is_empty() && readiness.generation.check(object).is_ok()
        })
    }

    fn readiness(&self) -> Option<&Readiness> {
        match self {
            Self::Done(readiness) => Some(readiness),
            Self::Always | Self::Verdict(_) => None,
        }
    }

    pub(crate) fn paths(&self) -> Vec<&FieldPath> {
        match self {
            Self::Always => Vec::new(),
            Self::Done(readiness) => readiness.paths(),
            Self::Verdict(judgement) => judgement.paths(),
        }
    }
}

/// How the rules of a kind of template are read and told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wording {
    /// What stands before "success condition".
    subject: &'static str,
    /// See [`condition::Expected`].
    reads_scalars: bool,
}

/// The rules of a template with their paths parsed. None given: done at once.
#[derive(Clone, Debug)]
pub(crate) struct Readiness {
    failed: Option<Condition>,
    matches: Vec<PathPair>,
    completion: Option<Completion>,
    inputs: Vec<ReportedInput>,
    others: Vec<NamedObject>,
    generation: Generation,
    /// Whether the object may say of which generation it speaks, and then has to speak of the present one.
    asks_generation: bool,
    wording: Wording,
}

/// An input that the object reports.
#[derive(Clone, Debug)]
pub(crate) struct ReportedInput {
    /// Its path in what the template sees.
    pub(crate) path: String,
    pub(crate) context: Compiled,
    object: FieldPath,
}

/// Why a deployment is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    /// Not yet.
    #[error("{0}")]
    Condition(String),
    /// Never, unless somebody corrects a path of the rules.
    #[error("{0}")]
    Hopeless(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// The owner's service account may not read another object of the rules.
    #[error("{0}")]
    Refused(String),
    /// The API server did not answer when it was asked for another object.
    #[error("{0}")]
    Unavailable(String),
    /// The object does not say which generation it speaks of.
    #[error("failed to evaluate status.observedGeneration: {problem}")]
    ObservedGeneration {
        /// Why it cannot be read.
        problem: PathProblem,
        /// Whether it has a status all the same, so that it may never say. Until then its controller has not come to it.
        has_status: bool,
    },
    /// A path cannot be evaluated.
    #[error("failed to evaluate json path '{path}': {cause}")]
    Path {
        /// The path.
        path: String,
        /// Why not; it may quote the object.
        cause: String,
        /// Whether only somebody who corrects the path can help.
        is_hopeless: bool,
    },
}

impl Readiness {
    /// Of a template that deploys or validates. Unless it is `attributed`, it is read as the Go controller reads it.
    pub(crate) fn of_deployment(rules: &SuccessRules, attributed: bool) -> Self {
        let wording = Wording {
            subject: "deployment ",
            reads_scalars: attributed,
        };
        Self {
            asks_generation: attributed,
            ..Self::new(rules, wording)
        }
    }

    fn new(rules: &SuccessRules, wording: Wording) -> Self {
        let failed = rules.failed.as_ref();
        let completion = rules.observed_completion.as_ref();
        let (others, scalars) = (rules.other_objects(), wording.reads_scalars);
        let matches = rules.observed_matches.iter();
        let mut readiness = Self {
            failed: failed.map(|failed| Condition::new(failed, scalars, &others)),
            matches: matches.map(|pair| PathPair::new(pair, &others)).collect(),
            completion: completion.map(|it| Completion::new(it, scalars, &others)),
            others: Vec::new(),
            inputs: rules
                .inputs_on_status
                .iter()
                .map(ReportedInput::new)
                .collect(),
            generation: Generation::new(),
            asks_generation: true,
            wording,
        };
        let named = |(index, object): (usize, &&OtherObject)| {
            NamedObject::new(object, readiness.read_on(Some(index)))
        };
        readiness.others = others.iter().enumerate().map(named).collect();
        readiness
    }

    /// Whether a rule that a validation can have is given.
    pub(crate) fn is_given(&self) -> bool {
        !self.matches.is_empty() || self.completion.is_some()
    }

    /// Whether the object is done. Messages show no values under the veil. `wanted` are the values in the context of the
    /// inputs that it reports.
    pub(crate) fn check(
        &self,
        evidence: Evidence<'_>,
        wanted: &[Option<Value>],
    ) -> Result<(), NotDone> {
        self.check_failed(evidence)?;
        self.check_matches(evidence)?;
        if let Some(completion) = &self.completion {
            self.check_generation_of(completion, evidence.object, false)?;
            completion.check(evidence, self.wording)?;
        }
        self.check_inputs(evidence, wanted)
    }

    /// Every new object has no status at first. The Go controller, as which deployments are read, tells a fault of the template
    /// then: a condition that goes from False to True with each step of a chain, and a status write for each.
    fn check_generation(&self, object: &Value) -> Result<(), NotDone> {
        match self.generation.check(object) {
            Err(NotDone::ObservedGeneration {
                has_status: false, ..
            }) if self.asks_generation => Err(NotDone::Condition(
                "the object has no status yet".to_owned(),
            )),
            checked => checked,
        }
    }

    /// As [`Readiness::check`], for an object that is never changed: there is only one generation of it, so that one that
    /// does not say which it has observed is not waited for, and only one set of inputs.
    pub(crate) fn check_run(&self, evidence: Evidence<'_>) -> Result<(), NotDone> {
        self.check_failed(evidence)?;
        self.check_matches(evidence)?;
        self.completion.as_ref().map_or(Ok(()), |completion| {
            self.check_generation_of(completion, evidence.object, true)?;
            completion.check(evidence, self.wording)
        })
    }

    /// Whether an object has come to its present spec, as far as the conditions must know.
    fn check_generation_of(
        &self,
        completion: &Completion,
        object: &Value,
        is_run: bool,
    ) -> Result<(), NotDone> {
        if self.generation.is_told(object) {
            return self.generation.check(object);
        }
        if is_run || !completion.reads_stamped() {
            return Ok(());
        }
        self.check_generation(object)
    }

    /// Only what is said of the present spec counts.
    fn check_failed(&self, evidence: Evidence<'_>) -> Result<(), NotDone> {
        let failed = self.failed.as_ref();
        match failed.filter(|_| self.generation.is_current(evidence.object)) {
            Some(failed) => failed.check_failed(evidence, self.wording),
            None => Ok(()),
        }
    }

    fn reported(&self, object: &Value) -> String {
        let pairs = self.matches.iter().map(|pair| pair.output(object));
        let inputs = self.inputs.iter().map(|input| {
            let reported = input.object.read(object);
            json!(reported.ok())
        });
        let reported = Value::Array(pairs.chain(inputs).collect());
        canonical::short(&canonical::digest(&reported))
    }

    fn compared(&self, object: &Value, wanted: &[Option<Value>]) -> String {
        let pairs = self.matches.iter().map(|pair| pair.input(object));
        let wanted = wanted.iter().map(|value| json!(value));
        let compared = Value::Array(pairs.chain(wanted).collect());
        canonical::short(&canonical::digest(&compared))
    }

    fn check_matches(&self, evidence: Evidence<'_>) -> Result<(), NotDone> {
        self.check_generation_of_pairs(evidence.object)?;
        // What is told of the stamped object comes first: others are not read before.
        let reading = |others: bool| {
            let pairs = self.matches.iter();
            pairs.filter(move |pair| pair.reads_others() == others)
        };
        let mut pairs = reading(false).chain(reading(true));
        pairs.try_for_each(|pair| pair.check(evidence))
    }

    fn check_generation_of_pairs(&self, object: &Value) -> Result<(), NotDone> {
        let asks = self.asks_generation && !self.matches.is_empty();
        if asks && self.generation.is_told(object) {
            return self.generation.check(object);
        }
        Ok(())
    }

    fn check_inputs(
        &self,
        evidence: Evidence<'_>,
        wanted: &[Option<Value>],
    ) -> Result<(), NotDone> {
        let mut wanted = wanted.iter();
        self.inputs.iter().try_for_each(|input| {
            let wanted = wanted.next().and_then(Option::as_ref);
            input.check(evidence.object, wanted, evidence.veil)
        })
    }

    /// What is read on the stamped object.
    pub(crate) fn paths(&self) -> Vec<&FieldPath> {
        let mut paths: Vec<&FieldPath> = self.read_on(None).collect();
        paths.extend(self.inputs.iter().map(|input| &input.object));
        let asks = self.asks_generation && !self.matches.is_empty();
        let is_asked = asks || !self.inputs.is_empty();
        if is_asked || self.failed.is_some() || self.completion.is_some() {
            paths.extend(self.generation.paths());
        }
        paths
    }

    /// What conditions and pairs read on the stamped object, or on one of the others.
    fn read_on(&self, on: Option<usize>) -> impl Iterator<Item = &FieldPath> {
        let pairs = self.matches.iter();
        let pairs = pairs.flat_map(move |pair| pair.paths(on));
        let completion = self.completion.iter();
        let completion = completion.flat_map(move |completion| completion.paths(on));
        let failed = self.failed.iter();
        let failed = failed.flat_map(move |failed| failed.paths(on));
        pairs.chain(completion).chain(failed)
    }
}

/// Where an object is among those that a template reads beside the stamped one.
fn position(others: &[&OtherObject], object: &OtherObject) -> usize {
    let found = others.iter().position(|other| **other == *object);
    found.unwrap_or(usize::MAX)
}

impl ReportedInput {
    fn new(input: &InputOnStatus) -> Self {
        Self {
            path: input.templating_context_path.clone(),
            context: Compiled::compile(&Value::String(input.tag())),
            object: FieldPath::new(&input.object_path),
        }
    }

    fn check(&self, object: &Value, wanted: Option<&Value>, veil: Veil<'_>) -> Result<(), NotDone> {
        let (path, reported) = (&self.path, self.object.text());
        let Some(wanted) = wanted else {
            return Err(NotDone::Condition(format!(
                "input [{path}] has no value for this template"
            )));
        };
        let found = self.object.read(object).map_err(|problem| {
            let text = format!(
                "could not find input [{path}] on [{reported}]: {}",
                shown_problem(&problem, veil.hides_all())
            );
            NotDone::unread(&problem, text)
        })?;
        if *found == *wanted {
            return Ok(());
        }
        let hidden = veil.hides([wanted, &found]);
        Err(NotDone::Condition(format!(
            "object reports at [{reported}] another input than [{path}]: {} != {}",
            shown(&found, hidden),
            shown(wanted, hidden)
        )))
    }
}

impl NotDone {
    /// A path of the rules has no value.
    fn unread(problem: &PathProblem, text: String) -> Self {
        match problem {
            PathProblem::Absent(_) | PathProblem::EmptyList(_) => Self::Condition(text),
            PathProblem::Broken(_) => Self::Hopeless(text),
        }
    }
}

/// A path that does not fit the data quotes the data.
fn shown_problem(problem: &PathProblem, secret: bool) -> String {
    match problem {
        PathProblem::EmptyList(_) | PathProblem::Broken(_) if secret => REDACTED.to_owned(),
        PathProblem::Absent(text) | PathProblem::EmptyList(text) | PathProblem::Broken(text) => {
            text.clone()
        }
    }
}

fn shown(value: &Value, secret: bool) -> String {
    if secret {
        REDACTED.to_owned()
    } else {
        go_format::display(value)
    }
}

#[cfg(test)]
mod tests;
