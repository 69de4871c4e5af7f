//! What one walk over a settled owner costs, for 1, 10 and 100 steps.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use api_types::TemplateKind;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use realizer::offline::{Answers, drive};
use realizer::{
    Blueprint, Family, FoundObject, KnownObject, Looked, ObjectQuery, Observation, Observed,
    Outcome, Owner, Realization, Rendered, Submission, Template, TemplateSource, TemplateState,
    Unread, Write, YttCall,
};
use serde_json::{Value, json};

struct Templates(Arc<Template>);

impl TemplateSource for Templates {
    fn template(&self, _: TemplateKind, _: &str) -> TemplateState {
        TemplateState::Found(Arc::clone(&self.0))
    }
}

/// The live objects by step, as a cache holds them: to find one costs next to nothing.
#[derive(Default)]
struct Cluster(HashMap<String, Observed>);

impl Answers for Cluster {
    fn rendered(&mut self, _: &YttCall) -> Rendered {
        Err("no ytt here".to_owned().into())
    }

    fn looked(&mut self, _: &Submission) -> Looked {
        Ok(Vec::new())
    }

    fn observed(&mut self, submission: &Submission) -> Observation {
        let held = self.0.entry(submission.resource.to_string());
        let held = held.or_insert_with(|| Observed {
            qualified_resource: Some("gitrepositories.source.toolkit.fluxcd.io".to_owned()),
            ..Observed::of(live(submission.object.clone()))
        });
        Observation::Object {
            observed: held.clone(),
            write: Write::Unchanged,
        }
    }

    fn read(&mut self, _: &ObjectQuery) -> FoundObject {
        Err(Unread::Missing).into()
    }
}

fn template() -> Templates {
    let object = json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "ClusterSourceTemplate", "metadata": {"name": "step"},
        "spec": {
            "urlPath": ".status.artifact.url", "revisionPath": ".status.artifact.revision",
            "healthRule": {"singleConditionType": "Ready"},
            "params": [{"name": "interval", "default": "1m"}],
            "template": {
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
                "metadata": {
                    "name": "$(workload.metadata.name)$-$(labels['carto\\.run/resource-name'])$",
                    "labels": {"app": "$(workload.metadata.labels['app'])$"},
                },
                "spec": {
                    "interval": "$(params.interval)$", "url": "$(workload.spec.source.git.url)$",
                    "ref": "$(workload.spec.source.git.ref)$", "inputs": "$(sources)$",
                },
            },
        },
    });
    Templates(Arc::new(
        Template::compile(&object).expect("the template has its shape"),
    ))
}

fn blueprint(steps: usize) -> Blueprint {
    let resources: Vec<Value> = (0..steps)
        .map(|step| {
            let sources = if step == 0 { json!([]) } else { json!([{"name": "in", "resource": format!("s{}", step - 1)}]) };
            json!({"name": format!("s{step}"), "templateRef": {"kind": "ClusterSourceTemplate", "name": "step"}, "sources": sources})
        })
        .collect();
    let object = json!({"metadata": {"name": "chain"}, "spec": {"selector": {"app": "x"}, "resources": resources}});
    Blueprint::compile(Family::SupplyChain, &object).expect("the blueprint has its shape")
}

fn owner(status: &Value) -> Owner {
    let object = json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
        "metadata": {"namespace": "dev", "name": "app", "uid": "u", "generation": 1, "labels": {"app": "x"}},
        "spec": {
            "source": {"git": {"url": "https://git.example/app", "ref": {"branch": "main"}}},
            "env": [{"name": "A", "value": "1"}], "params": [{"name": "interval", "value": "5m"}],
        },
        "status": status,
    });
    Owner::parse(Family::SupplyChain, Arc::new(object)).expect("the owner has its shape")
}

fn walk(
    owner: &Owner,
    blueprint: &Blueprint,
    templates: &Templates,
    cluster: &mut Cluster,
    known: &[KnownObject],
) -> Outcome {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let mut realization =
        Realization::new(owner, blueprint, templates, now, realizer::StatusKey::NONE);
    drive(&mut realization, cluster);
    realization.conclude(known).report(&[])
}

fn live(mut object: Value) -> Value {
    object["status"] = json!({
        "artifact": {"url": "http://source/app.tar.gz", "revision": "main@sha1:0123456789abcdef"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact"}],
    });
    object
}

fn settled(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("settled walk");
    for steps in [1, 10, 100] {
        let (blueprint, templates, mut cluster) =
            (blueprint(steps), template(), Cluster::default());
        let first = walk(
            &owner(&Value::Null),
            &blueprint,
            &templates,
            &mut cluster,
            &[],
        );
        let owner = owner(&first.status);
        assert!(
            !walk(&owner, &blueprint, &templates, &mut cluster, &[]).changed,
            "it is settled"
        );
        group.bench_function(BenchmarkId::from_parameter(steps), |bencher| {
            bencher.iter(|| black_box(walk(&owner, &blueprint, &templates, &mut cluster, &[])));
        });
    }
    group.finish();
}

criterion_group!(benches, settled);
criterion_main!(benches);
