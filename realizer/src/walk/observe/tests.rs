use serde_json::{Value, json};

use super::*;
use crate::{Beside, Lifecycle, SubmitFailure, SubmitFailureKind};

fn template(yaml: &str) -> Template {
    let mut object: Value = serde_saphyr::from_str(yaml).unwrap();
    object["apiVersion"] = json!("carto.run/v1alpha1");
    object["metadata"] = json!({"name": "t"});
    Template::compile(&object).unwrap()
}

fn observed(object: Value, namespaced: bool) -> Observed {
    Observed {
        qualified_resource: Some("images.kpack.io".to_owned()),
        namespaced,
        ..Observed::of(object)
    }
}

fn submission(object: Value) -> Submission {
    Submission {
        resource: "build".into(),
        object,
        digest: String::new(),
        name_seed: None,
        basis: None,
        lifecycle: Lifecycle::Mutable,
        family: [("a", "b".parse().unwrap()), ("c", "d".parse().unwrap())].into(),
        reads: Vec::new().into(),
        precondition: crate::Precondition::None,
        recorded: crate::Recorded::default(),
        adopt: false,
        refuses_foreign_fields: false,
        asks_whose_values: false,
    }
}

fn observe(template: &Template, observation: Observation) -> StepEnd {
    let attributed = template.attribution.as_ref();
    let observing = Observing {
        blueprint: &"chain".parse().unwrap(),
        step: &"build".into(),
        template,
        deployment: None,
        taint: Taint::NONE,
        key: &StatusKey::NONE,
        previous: None,
        recorded: &[],
        basis: attributed.map(|_| Basis::default()),
        now: &Time(jiff::Timestamp::UNIX_EPOCH),
    };
    observing.observe(
        &submission(json!({"metadata": {"namespace": "ns", "name": "x"}})),
        observation,
    )
}

fn message(end: StepEnd) -> String {
    end.into_error().unwrap().to_string()
}

#[test]
fn missing_values_are_told_by_the_health_of_the_object() {
    let template = template(
        "{kind: ClusterImageTemplate, spec: {imagePath: .status.image, healthRule: {singleConditionType: Ready}}}",
    );
    let object = |status: &str| {
        json!({
            "apiVersion": "kpack.io/v1alpha2", "kind": "Image", "metadata": {"namespace": "ns", "name": "app"},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        })
    };
    let cases = [
        (
            "True",
            true,
            "cannot read value [.status.image] from healthy object [images.kpack.io/app] in namespace [ns], contact \
             Platform Eng",
        ),
        (
            "False",
            true,
            "cannot read value [.status.image] from unhealthy object [images.kpack.io/app] in namespace [ns], examine \
             object, particularly whether it is receiving proper inputs",
        ),
        (
            "Unknown",
            true,
            "waiting to read value [.status.image] from object [images.kpack.io/app] in namespace [ns]",
        ),
        (
            "Unknown",
            false,
            "waiting to read value [.status.image] from object [images.kpack.io/app]",
        ),
        (
            "True",
            false,
            "cannot read value [.status.image] from healthy object [images.kpack.io/app], contact Platform Eng",
        ),
    ];
    for (status, namespaced, expected) in cases {
        let observation = Observation::Object {
            observed: observed(object(status), namespaced),
            write: Write::Unchanged,
        };
        assert_eq!(message(observe(&template, observation)), expected);
    }
}

#[test]
fn an_unknown_plural_is_said_as_upstream_says_it() {
    let template = template("{kind: ClusterImageTemplate, spec: {imagePath: .status.image}}");
    let mut observed = observed(
        json!({"metadata": {"namespace": "ns", "name": "app"}}),
        true,
    );
    observed.qualified_resource = None;
    assert_eq!(
        message(observe(
            &template,
            Observation::Object {
                observed,
                write: Write::Created
            }
        )),
        "waiting to read value [.status.image] from object [could not fetch - see logs for 'failed to retrieve \
         qualified resource name'/app] in namespace [ns]"
    );
}

#[test]
fn failed_submissions_are_told_by_their_stage() {
    let template = template("{kind: ClusterTemplate, spec: {}}");
    let cases = [
        (
            SubmitFailureKind::Forbidden,
            "unable to apply object [ns/x] for resource [build] in supply chain [chain]: why",
        ),
        (
            SubmitFailureKind::Rejected,
            "unable to apply object [ns/x] for resource [build] in supply chain [chain]: why",
        ),
        (
            SubmitFailureKind::Contested,
            "unable to apply object [ns/x] for resource [build] in supply chain [chain]: why",
        ),
        (
            SubmitFailureKind::List,
            "unable to list objects in namespace [ns] with labels [map[a:b c:d]]: why",
        ),
    ];
    for (kind, expected) in cases {
        let failure = SubmitFailure {
            kind,
            message: "why".to_owned(),
        };
        assert_eq!(
            message(observe(&template, Observation::Failed(failure))),
            expected,
            "{kind:?}"
        );
    }
}

#[test]
fn a_family_without_healthy_member_has_no_object_to_read() {
    let member = || {
        observed(
            json!({"metadata": {"namespace": "ns", "name": "run-1"}}),
            true,
        )
    };
    let family = || Observation::Family {
        submitted: member(),
        members: vec![member()],
        write: Write::Unchanged,
    };
    let image = template(
        "{kind: ClusterImageTemplate, spec: {imagePath: .status.image, lifecycle: tekton}}",
    );
    assert_eq!(
        message(observe(&image, family())),
        "waiting to read value [.status.image] from object [images.kpack.io/run-1] in namespace [ns]"
    );
    let deployment = template("{kind: ClusterDeploymentTemplate, spec: {lifecycle: tekton}}");
    assert_eq!(
        message(observe(&deployment, family())),
        "unable to retrieve outputs from stamped object [ns/run-1] of type [images.kpack.io] for resource [build] in \
         supply chain [chain]: failed to evaluate path of empty object"
    );
}

/// What is said where the object holds this beside the rendering; or what of others it was accepted with.
fn told_beside(foreign_fields: &str, beside: Option<Beside>) -> Result<Vec<String>, String> {
    let template = template(&format!(
        "{{kind: ClusterConfigTemplate, spec: {{configPath: .data.a, alwaysSuccessful: true, foreignFields: {foreign_fields}}}}}"
    ));
    let object =
        json!({"metadata": {"namespace": "ns", "name": "x", "uid": "u"}, "data": {"a": "1"}});
    let observation = Observation::Object {
        observed: Observed {
            digest: Some(String::new()),
            beside,
            ..observed(object, true)
        },
        write: Write::Unchanged,
    };
    let end = observe(&template, observation);
    match end.output().and_then(|output| output.provenance.clone()) {
        Some(provenance) => Ok(provenance.foreign_fields.clone()),
        None => Err(message(end)),
    }
}

#[test]
fn foreign_fields_are_named_or_refused_as_the_template_says() {
    let beside = |expected| {
        Some(Beside {
            values: vec!["here".to_owned()],
            named: vec!["data.b".to_owned()],
            expected,
        })
    };
    let named = Ok(vec!["data.b".to_owned()]);
    assert_eq!(told_beside("Allow", beside(None)), named);
    assert_eq!(told_beside("Allow", None), Ok(Vec::new()));
    assert_eq!(
        told_beside(
            "Refuse",
            beside(Some(Ok(vec!["there".to_owned(), "here".to_owned()])))
        ),
        named
    );
    let refused = "resource [build] condition not met: others have set fields of object [ns/x] that are not rendered: data.b; \
                   remove them from the object, or render them, or set spec.foreignFields of the template to Allow";
    let other = || beside(Some(Ok(vec!["there".to_owned()])));
    assert_eq!(told_beside("Refuse", other()), Err(refused.to_owned()));
    let hidden = other().map(|beside| Beside {
        named: Vec::new(),
        ..beside
    });
    let unnamed = refused.replace("data.b", "managed fields do not say which");
    assert_eq!(told_beside("Refuse", hidden), Err(unnamed));
    for (beside, why) in [
        (
            beside(Some(Err("dry run: forbidden".to_owned()))),
            "dry run: forbidden",
        ),
        (beside(None), "it was not asked for"),
        (None, "nothing is known of its fields"),
    ] {
        let told = format!(
            "resource [build] condition not met: whether others have set fields of object [ns/x] is found by an apply as dry \
             run, and that failed: {why}"
        );
        assert_eq!(told_beside("Refuse", beside), Err(told));
    }
}

#[test]
fn deployments_that_are_not_done_say_so() {
    let observation = |status: Value| Observation::Object {
        observed: observed(
            json!({"metadata": {"namespace": "ns", "name": "x", "generation": 1}, "status": status}),
            true,
        ),
        write: Write::Unchanged,
    };
    let template = template(
        "{kind: ClusterDeploymentTemplate, spec: {observedCompletion: {
           succeeded: {key: status.phase, value: Done}, failed: {key: status.phase, value: Broken}}}}",
    );
    let cases = [
        (
            json!({"observedGeneration": 1, "phase": "Busy"}),
            "resource [build] condition not met: deployment success condition [status.phase] was: Busy, expected: Done",
        ),
        (
            json!({"observedGeneration": 1, "phase": "Broken"}),
            "resource [build] failed condition met: deployment failure condition [status.phase] was: Broken",
        ),
        (
            json!({"phase": "Done"}),
            "resource [build] cannot satisfy observedCompletion without observedGeneration in object status",
        ),
        (
            json!({"observedGeneration": 1, "phase": "Done"}),
            "unable to retrieve outputs from stamped object [ns/x] of type [images.kpack.io] for resource [build] in \
             supply chain [chain]: deployment not found in upstream template",
        ),
    ];
    for (status, expected) in cases {
        assert_eq!(message(observe(&template, observation(status))), expected);
    }
}
