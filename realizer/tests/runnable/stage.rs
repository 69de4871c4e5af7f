//! A Runnable, its template, and a cluster in memory.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use realizer::offline::{Answers, Cluster, drive};
use realizer::runnable::{Run, RunTemplate, Runnable, SelectError, Selected};
use realizer::{
    FoundObject, Looked, ObjectQuery, Observation, Observed, Outcome, Removal, Rendered, StatusKey,
    Submission, SubmitFailure, SubmitFailureKind, Write, YttCall,
};
use serde_json::{Value, json};

pub(crate) struct Stage {
    pub(crate) runnable: Value,
    pub(crate) template: Value,
    pub(crate) selected: Result<Option<Value>, SelectError>,
    /// The runs.
    pub(crate) cluster: Cluster,
    pub(crate) now: Timestamp,
    pub(crate) key: StatusKey,
    /// How many runs were ever created.
    pub(crate) created: usize,
    /// The most runs there ever were at the same time that had not ended.
    pub(crate) most_going: usize,
    pub(crate) fails: Option<SubmitFailure>,
    /// Why no deletion is carried out.
    pub(crate) undeletable: Option<SubmitFailure>,
    /// Deleted objects stay, terminating.
    pub(crate) has_finalizers: bool,
    pub(crate) rendered: Rendered,
    /// Of each submission.
    pub(crate) bases: Vec<Option<String>>,
}

impl Stage {
    /// `spec` of the Runnable, beside the reference to the template `tests`.
    pub(crate) fn new(spec: Value) -> Self {
        let mut runnable = json!({
            "apiVersion": "carto.run/v1alpha1", "kind": "Runnable",
            "metadata": {"namespace": "dev", "name": "app", "uid": "u-1", "generation": 1},
            "spec": {"runTemplateRef": {"name": "tests"},
                     "inputs": {"revision": "a"},
                     "retentionPolicy": {"maxFailedRuns": 10, "maxSuccessfulRuns": 10}},
        });
        for (key, value) in spec.as_object().unwrap() {
            runnable["spec"][key] = value.clone();
        }
        Self {
            runnable,
            template: template(json!({"out": ".status.result"})),
            selected: Ok(None),
            cluster: Cluster::default(),
            now: Timestamp::from_second(1_700_000_000).unwrap(),
            key: StatusKey::new(b"the key of the installation"),
            created: 0,
            most_going: 0,
            fails: None,
            undeletable: None,
            has_finalizers: false,
            rendered: Err("no ytt".to_owned().into()),
            bases: Vec::new(),
        }
    }

    pub(crate) fn input(&mut self, revision: &str) {
        self.runnable["spec"]["inputs"]["revision"] = json!(revision);
        let generation = self.runnable["metadata"]["generation"].as_i64().unwrap();
        self.runnable["metadata"]["generation"] = json!(generation + 1);
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// One reconcile, whatever comes of it.
    pub(crate) fn walk(&mut self) {
        let _ = self.outcome();
    }

    /// One reconcile; the status is kept.
    pub(crate) fn outcome(&mut self) -> Outcome {
        let runnable = Runnable::parse(Arc::new(self.runnable.clone())).unwrap();
        let template = RunTemplate::compile(&self.template).unwrap();
        let selected: Selected = self.selected.clone().map(|it| it.map(Arc::new));
        let mut run = Run::new(&runnable, &template, selected, self.now, self.key.clone());
        self.cluster.now = self.now;
        drive(&mut run, self);
        let conclusion = run.conclude();
        let failed = if let Some(why) = &self.undeletable {
            let removals = conclusion.removals().iter();
            removals.map(|it| (it.clone(), why.clone())).collect()
        } else {
            self.remove(conclusion.removals());
            Vec::new()
        };
        let outcome = conclusion.report(&failed);
        assert_eq!(
            outcome.changed,
            self.runnable.get("status") != Some(&outcome.status)
        );
        self.runnable["status"] = outcome.status.clone();
        outcome
    }

    fn remove(&mut self, removals: &[Removal]) {
        for removal in removals {
            if self.has_finalizers {
                self.run(&removal.object.name).terminating = true;
            } else {
                self.cluster.delete(&removal.object);
            }
        }
    }

    fn run(&mut self, name_: &str) -> &mut Observed {
        let mut runs = self.cluster.objects.iter_mut();
        runs.find(|run| name(run) == name_).unwrap()
    }

    /// A run says how it ended, at the present time.
    pub(crate) fn end(&mut self, name_: &str, status: &str, result: &str) {
        let now = self.now.to_string();
        self.run(name_).object["status"] = json!({"result": result, "conditions": [
            {"type": "Succeeded", "status": status, "message": format!("{name_} says {status}"), "lastTransitionTime": now},
        ]});
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.cluster.objects.iter().map(name).collect()
    }

    /// Status, reason and message of a condition.
    pub(crate) fn condition(&self, type_: &str) -> Option<[String; 3]> {
        let conditions = self.runnable["status"]["conditions"].as_array()?;
        let condition = conditions.iter().find(|it| it["type"] == type_)?;
        Some(["status", "reason", "message"].map(|it| condition[it].as_str().unwrap().to_owned()))
    }
}

impl Answers for Stage {
    fn rendered(&mut self, _: &YttCall) -> Rendered {
        self.rendered.clone()
    }

    fn looked(&mut self, submission: &Submission) -> Looked {
        assert_eq!(submission.family.len(), 1, "listed by the Runnable alone");
        match &self.fails {
            Some(failure) if failure.kind == SubmitFailureKind::List => Err(failure.clone()),
            _ => self.cluster.looked(submission),
        }
    }

    fn observed(&mut self, submission: &Submission) -> Observation {
        self.bases.push(submission.basis.clone());
        if let Some(failure) = &self.fails {
            return Observation::Failed(failure.clone());
        }
        let observation = self.cluster.observed(submission);
        if let Observation::Family {
            write: Write::Created,
            members,
            ..
        } = &observation
        {
            self.created += 1;
            let going =
                |run: &&Observed| run.object.pointer("/status/conditions/0/status").is_none();
            self.most_going = self.most_going.max(members.iter().filter(going).count());
        }
        observation
    }

    fn read(&mut self, query: &ObjectQuery) -> FoundObject {
        panic!("a Runnable asks for no other object: {query:?}")
    }
}

pub(crate) fn name(run: &Observed) -> String {
    run.object["metadata"]["name"].as_str().unwrap().to_owned()
}

pub(crate) fn template(outputs: Value) -> Value {
    json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterRunTemplate", "metadata": {"name": "tests"},
        "spec": {"outputs": outputs, "template": {
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"generateName": "run-"},
            "spec": {"revision": "$(runnable.spec.inputs.revision)$"}}}})
}
