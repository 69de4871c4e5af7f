use std::sync::Arc;

use api_types::TemplateKind;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;
use crate::environment::{self, Decision, Incoming, Known};
use crate::step::end::StepEnd;
use crate::step::error::StepError;
use crate::step::state::Steps;
use crate::walk::prepare::StartOutcome;
use crate::{
    Blueprint, Family, Owner, StatusKey, SubmitFailure, SubmitFailureKind, Template,
    TemplateSource, TemplateState,
};

struct Templates(Arc<Template>);

impl TemplateSource for Templates {
    fn template(&self, _: TemplateKind, _: &str) -> TemplateState {
        TemplateState::Found(Arc::clone(&self.0))
    }
}

/// Looks, and lets pass what was looked at.
struct Looks;

/// Lets pass, bound to what is there.
struct Binds;

/// Holds everything.
struct Holds;

/// Leaves everything as it is.
struct Suspends;

/// The rendering with the name of a gate that it came to.
fn marked(mut rendering: Submission, gate: &str) -> Submission {
    rendering.digest = format!("{} {gate}", rendering.digest);
    rendering
}

impl Gate for Looks {
    fn approached(&self, _: &mut Walk<'_>, _: &At, rendering: Submission) -> Ruling {
        Ruling::Look(marked(rendering, "look"), Box::new(Self))
    }
}

impl AfterLook for Looks {
    fn found(
        self: Box<Self>,
        _: &mut Walk<'_>,
        _: &At,
        place: Submission,
        _: Vec<Observed>,
    ) -> Ruling {
        Ruling::Pass(marked(place, "seen"), Reading::Outputs)
    }
}

impl Gate for Binds {
    fn approached(&self, _: &mut Walk<'_>, _: &At, rendering: Submission) -> Ruling {
        let reading = Reading::Arrival(Box::new(arrival()));
        Ruling::Pass(marked(rendering, "bound"), reading)
    }
}

impl Gate for Holds {
    fn approached(&self, _: &mut Walk<'_>, at: &At, rendering: Submission) -> Ruling {
        let resource = rendering.resource.clone();
        let end = StepEnd::Failed(StepError::NotReached { resource });
        Ruling::Hold(at.ended(end, &rendering))
    }
}

impl Gate for Suspends {
    fn approached(&self, _: &mut Walk<'_>, _: &At, rendering: Submission) -> Ruling {
        let resource = rendering.resource;
        let error = StepError::NotReached { resource };
        Ruling::Withhold(Box::new(HeldStep {
            error,
            target: None,
        }))
    }
}

fn arrival() -> Record {
    let known = Known {
        status: None,
        validations: Vec::new(),
        key: &StatusKey::NONE,
    };
    let incoming = Incoming::of(None);
    let decision = environment::decide("digest", &incoming, None, &known, Timestamp::UNIX_EPOCH);
    let Decision::Announce { record, .. } = decision else {
        panic!("{decision:?}");
    };
    record
}

/// Calls `then` with a walk, its one step and the rendering of that, known by the digest `rendered`.
fn with_rendering<T>(then: impl FnOnce(&mut Walk<'_>, At, Submission) -> T) -> T {
    let template = Template::compile(&json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "sink"},
        "spec": {"template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sink"}}},
    }));
    let blueprint = json!({"metadata": {"name": "chain"}, "spec": {"resources": [
        {"name": "publish", "templateRef": {"kind": "ClusterTemplate", "name": "sink"}}]}});
    let blueprint = Blueprint::compile(Family::SupplyChain, &blueprint).unwrap();
    let owner = json!({"metadata": {"namespace": "dev", "name": "app", "uid": "u"}});
    let owner = Owner::parse(Family::SupplyChain, Arc::new(owner)).unwrap();
    let mut walk = Walk {
        owner: &owner,
        blueprint: &blueprint,
        templates: &Templates(Arc::new(template.unwrap())),
        now: Time(Timestamp::UNIX_EPOCH),
        key: StatusKey::NONE,
        steps: Steps::new(&blueprint),
        artifacts: crate::KnownArtifacts::default(),
        is_status_behind: false,
    };
    let StartOutcome::Rendered(template, mut rendering) = walk.preparing(0).start() else {
        panic!("the template renders");
    };
    rendering.digest = "rendered".to_owned();
    then(&mut walk, At { step: 0, template }, *rendering)
}

/// Where a rendering comes to, in short.
fn shown(progress: &Progress) -> String {
    match progress {
        Progress::Look(place, _) => format!("look: {}", place.digest),
        Progress::Submit(submission) => format!("submit: {}", submission.digest),
        Progress::Held(_) => "held".to_owned(),
        Progress::Withheld(because) => format!("withheld: {}", because.error),
    }
}

/// Goes through gates, with the same answer to every look.
fn through(gates: Vec<&'static dyn Gate>, found: &Looked) -> Vec<String> {
    with_rendering(|walk, at, rendering| {
        let mut passage = Passage::through(gates, at, &rendering);
        let mut progress = passage.approach(walk, rendering);
        let mut seen = vec![shown(&progress)];
        while let Progress::Look(place, then) = progress {
            progress = passage.found(walk, then, place, found.clone());
            seen.push(shown(&progress));
        }
        seen
    })
}

#[test]
fn a_step_without_gates_is_submitted_as_it_is_rendered() {
    assert_eq!(through(Vec::new(), &Ok(Vec::new())), ["submit: rendered"]);
}

#[test]
fn what_one_gate_lets_pass_comes_to_the_next() {
    assert_eq!(
        through(vec![&Looks, &Binds, &Looks], &Ok(Vec::new())),
        [
            "look: rendered look",
            "look: rendered look seen bound look",
            "submit: rendered look seen bound look seen"
        ]
    );
}

#[test]
fn what_one_gate_holds_comes_to_no_other() {
    let found = Ok(Vec::new());
    assert_eq!(through(vec![&Holds, &Looks], &found), ["held"]);
    assert_eq!(
        through(vec![&Looks, &Holds, &Looks], &found),
        ["look: rendered look", "held"]
    );
    let unseen = Err(SubmitFailure {
        kind: SubmitFailureKind::Forbidden,
        message: "no".to_owned(),
    });
    assert_eq!(
        through(vec![&Looks, &Looks], &unseen),
        ["look: rendered look", "held"]
    );
}

#[test]
fn a_rendering_that_is_bound_begins_again_at_the_first_gate_three_times() {
    with_rendering(|walk, at, rendering| {
        let mut passage = Passage::through(vec![&Binds, &Binds], at, &rendering);
        let first = shown(&passage.approach(walk, rendering));
        assert_eq!(first, "submit: rendered bound bound");
        for _ in 0..MOST_REFUSALS {
            let again = passage.begin_again(walk).as_ref().map(shown);
            assert_eq!(again, Some(first.clone()));
        }
        assert!(passage.begin_again(walk).is_none());
    });
}

#[test]
fn a_rendering_that_is_not_bound_does_not_begin_again() {
    with_rendering(|walk, at, rendering| {
        let mut passage = Passage::through(vec![&Looks], at, &rendering);
        let Progress::Look(place, then) = passage.approach(walk, rendering) else {
            panic!("the gate looks");
        };
        let progress = passage.found(walk, then, place, Ok(Vec::new()));
        assert_eq!(shown(&progress), "submit: rendered look seen");
        assert!(passage.begin_again(walk).is_none());
    });
}

#[test]
fn a_step_that_is_suspended_at_the_first_gate_is_seen_by_no_other() {
    let reason = "withheld: resource [publish] was not reached";
    let found = Ok(Vec::new());
    assert_eq!(through(vec![&Suspends, &Looks, &Binds], &found), [reason]);
}
