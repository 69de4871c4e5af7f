//! The paths on which the engine says something, with somebody on each who quotes all secrets.

use realizer::{RenderFailure, SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use crate::canary::Canaries;
use crate::scenario::{Scenario, condition};
use crate::stage::{Stage, template};

const CHAIN: &str = "
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: secret}
spec:
  configPath: .data
  healthRule:
    multiMatch:
      healthy: {matchFields: [{key: data.entry-1, operator: Exists, messagePath: .data.entry-0}]}
      unhealthy: {matchFields: [{key: data.broken, operator: Exists}]}
  ytt: x
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: copy}
spec:
  configPath: .data
  healthRule:
    multiMatch:
      healthy: {matchFields: [{key: data.one, operator: Exists, messagePath: .data.two}]}
      unhealthy: {matchFields: [{key: data.broken, operator: Exists}]}
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: copy}
    data: {all: $(config)$, one: 'a $(config.entry-1)$ b', two: '$(config.entry-0)$'}
---
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: from-copy}
spec:
  imagePath: .spec.image
  template:
    apiVersion: test.run/v1
    kind: Test
    metadata: {name: from-copy}
    spec: {image: 'registry/$(config.two)$'}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: rendered}
spec: {ytt: x}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: refused}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: $(labels['carto\\.run/resource-name'])$
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: half}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: half}
    data: {broken: 'x $(config.entry-1.a[?(@.b==1)])$'}
---
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: conditions}
spec:
  imagePath: '.status.text[?(@.a==1)]'
  healthRule:
    multiMatch:
      healthy: {matchConditions: [{type: Good, status: 'True'}]}
      unhealthy: {matchConditions: [{type: Bad, status: 'True'}]}
  template:
    apiVersion: test.run/v1
    kind: Test
    metadata: {name: conditions}
    spec: {config: $(config)$}
---
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: run}
spec:
  lifecycle: tekton
  imagePath: .status.image
  template:
    apiVersion: test.run/v1
    kind: Run
    metadata: {generateName: run-}
    spec: {config: $(config)$}
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: always}
spec:
  configPath: .data
  alwaysSuccessful: true
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: always}
    data: {all: $(config)$, one: 'a $(config.entry-1)$ b'}
---
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: compared}
spec:
  imagePath: .spec.image
  observedCompletion:
    succeeded: {anyOf: [{key: .status.text, value: x}, {not: {key: .spec.image, value: w}}]}
    failed: {allOf: [{key: '.status.text[0].a', value: x}, {key: .spec.image, value: w}]}
  template:
    apiVersion: test.run/v1
    kind: Test
    metadata: {name: compared}
    spec: {image: 'registry/$(config.one)$'}
---
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: reported}
spec:
  imagePath: .spec.image
  inputsOnStatus: [{templatingContextPath: config.one, objectPath: .status.text}]
  template:
    apiVersion: test.run/v1
    kind: Test
    metadata: {name: reported}
    spec: {image: 'registry/$(config.one)$'}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: make, templateRef: {kind: ClusterConfigTemplate, name: secret}}
  - {name: copy, templateRef: {kind: ClusterConfigTemplate, name: copy}, configs: [{name: c, resource: make}]}
  - {name: from-copy, templateRef: {kind: ClusterImageTemplate, name: from-copy}, configs: [{name: c, resource: copy}]}
  - {name: rendered, templateRef: {kind: ClusterTemplate, name: rendered}, configs: [{name: c, resource: copy}]}
  - {name: rejected, templateRef: {kind: ClusterTemplate, name: refused}, configs: [{name: c, resource: make}]}
  - {name: forbidden, templateRef: {kind: ClusterTemplate, name: refused}, configs: [{name: c, resource: copy}]}
  - {name: contested, templateRef: {kind: ClusterTemplate, name: refused}, configs: [{name: c, resource: copy}]}
  - {name: listed, templateRef: {kind: ClusterTemplate, name: refused}, configs: [{name: c, resource: copy}]}
  - {name: half, templateRef: {kind: ClusterTemplate, name: half}, configs: [{name: c, resource: make}]}
  - {name: conditions, templateRef: {kind: ClusterImageTemplate, name: conditions}, configs: [{name: c, resource: copy}]}
  - {name: run, templateRef: {kind: ClusterImageTemplate, name: run}, configs: [{name: c, resource: copy}]}
  - {name: always, templateRef: {kind: ClusterConfigTemplate, name: always}, configs: [{name: c, resource: make}]}
  - {name: compared, templateRef: {kind: ClusterImageTemplate, name: compared}, configs: [{name: c, resource: always}]}
  - {name: reported, templateRef: {kind: ClusterImageTemplate, name: reported}, configs: [{name: c, resource: always}]}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {}
";

fn refused(kind: SubmitFailureKind, told: &str) -> SubmitFailure {
    SubmitFailure {
        kind,
        message: format!("create: {told}"),
    }
}

fn walk(scenario: &mut Scenario, canaries: &Canaries, place: &str) {
    let outcome = scenario.reconcile();
    canaries.assert_untold(&scenario.owner["status"], &outcome, place);
}

pub(crate) fn supply_chain(canaries: &Canaries) {
    let told = canaries.told_by_others();
    let mut scenario = Scenario::new(CHAIN);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": canaries.data()});
    let cluster = &mut scenario.cluster;
    cluster.ytt.insert("make".to_owned(), Ok(secret));
    cluster.ytt.insert(
        "rendered".to_owned(),
        Err(RenderFailure::from(format!("ytt: Error: {told}"))),
    );
    for (step, kind) in [
        ("rejected", SubmitFailureKind::Rejected),
        ("forbidden", SubmitFailureKind::Forbidden),
        ("contested", SubmitFailureKind::Contested),
        ("listed", SubmitFailureKind::List),
    ] {
        cluster
            .failing
            .insert(step.to_owned(), refused(kind, &told));
    }
    walk(&mut scenario, canaries, "of the first walk");
    for step in ["make", "copy", "from-copy"] {
        let output = &scenario.entry(step)["outputs"][0];
        assert_eq!(output["preview"], "<redacted>", "{step}");
    }

    let says = |type_: &str, status: &str| json!({"text": told, "image": told, "conditions": [{"type": type_, "status": status, "message": told}]});
    scenario.cluster.object("conditions")["status"] = says("Bad", "True");
    scenario.cluster.object("run-1")["status"] = says("Succeeded", "False");
    for name in ["compared", "reported"] {
        scenario.cluster.object(name)["metadata"]["generation"] = json!(1);
        scenario.cluster.object(name)["status"] = says("Ready", "True");
        scenario.cluster.object(name)["status"]["observedGeneration"] = json!(1);
    }
    walk(&mut scenario, canaries, "with objects that failed");
    // Of these a message would show what is compared.
    for step in ["always", "compared", "reported"] {
        let told = scenario.step_condition(step, "OutputsGood");
        assert!(!told.is_empty(), "{step}");
    }
    for (step, type_) in [
        ("rendered", "ResourceSubmitted"),
        ("rejected", "ResourceSubmitted"),
        ("forbidden", "ResourceSubmitted"),
        ("contested", "ResourceSubmitted"),
        ("listed", "ResourceSubmitted"),
        ("conditions", "Healthy"),
        ("run", "Healthy"),
    ] {
        let message = scenario.step_condition(step, type_);
        assert!(message.contains(&Canaries::harmless()), "{step}: {message}");
    }
    scenario.cluster.object("conditions")["status"] = says("Good", "True");
    scenario.cluster.object("run-1")["status"] = says("Succeeded", "True");
    scenario.cluster.tamper("always");
    scenario.cluster.undone.insert("always".to_owned());
    walk(&mut scenario, canaries, "with objects that succeeded");
    assert_eq!(scenario.entry("run")["outputs"][0]["preview"], "<redacted>");
    let forbidden = SubmitFailure {
        kind: SubmitFailureKind::Forbidden,
        message: told.clone(),
    };
    scenario
        .cluster
        .undeletable
        .insert("copy".to_owned(), forbidden);
    let chain = scenario.blueprints[0]["spec"]["resources"].as_array_mut();
    chain
        .unwrap()
        .retain(|step| step["name"] == "make" || step["name"] == "run");
    scenario.blueprints[0]["spec"]["resources"][1]["configs"][0]["resource"] = json!("make");
    walk(&mut scenario, canaries, "with an object that stays");
}

const DELIVERY: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: src}
spec:
  urlPath: .data.entry-0
  revisionPath: .data
  ytt: x
---
kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  observedMatches: [{input: .spec.revision, output: .status.revision}]
  healthRule: {singleConditionType: Deployed}
  template:
    apiVersion: test.run/v1
    kind: App
    metadata: {name: app}
    spec: {revision: $(deployment.revision)$, url: $(deployment.url)$}
---
kind: ClusterDeploymentValidationTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: test}
spec:
  lifecycle: tekton
  template:
    apiVersion: test.run/v1
    kind: Run
    metadata: {generateName: run-}
    spec: {revision: $(deployment.revision)$}
---
kind: ClusterDelivery
apiVersion: carto.run/v1alpha1
metadata: {name: delivery}
spec:
  selector: {app: web}
  resources:
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - name: deployer
    templateRef: {kind: ClusterDeploymentTemplate, name: deploy}
    deployment: {resource: fetch}
  - name: tester
    templateRef: {kind: ClusterDeploymentValidationTemplate, name: test}
    deployment: {resource: deployer}
---
kind: Deliverable
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {app: web}}
spec: {}
";

pub(crate) fn delivery(canaries: &Canaries) {
    let told = canaries.told_by_others();
    let mut scenario = Scenario::new(DELIVERY);
    let secret = |data: Value| {
        Ok(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "src"}, "data": data}))
    };
    let ytt = |scenario: &mut Scenario, rendered| {
        scenario.cluster.ytt.insert("fetch".to_owned(), rendered);
    };
    ytt(&mut scenario, secret(canaries.data()));
    walk(&mut scenario, canaries, "of what is about to be deployed");
    walk(&mut scenario, canaries, "of what is being deployed");
    let says = |type_: &str, status: &str, revision: Value| json!({"revision": revision, "conditions": [{"type": type_, "status": status, "message": told}]});
    scenario.cluster.object("app")["status"] = says("Deployed", "False", json!(told));
    walk(&mut scenario, canaries, "before it is deployed");
    scenario.cluster.object("app")["status"] = says("Deployed", "True", canaries.data());
    walk(&mut scenario, canaries, "while it is tested");
    // Another revision waits, from a Secret that has none of the former texts.
    ytt(
        &mut scenario,
        secret(json!({"entry-0": "other-url", "rest": "other-value"})),
    );
    scenario.cluster.object("run-1")["status"] = says("Succeeded", "Unknown", json!(told));
    walk(&mut scenario, canaries, "while another one waits");
    let app = scenario.cluster.object("app")["metadata"]["annotations"].to_string();
    assert!(!canaries.is_told_in(&app), "{app}");
    let waits = condition(&scenario.entry("deployer")["conditions"], "UpdateHeld");
    assert!(waits.starts_with("True/ValidationRunning/"), "{waits}");
    scenario.cluster.object("run-1")["status"] = says("Succeeded", "False", json!(told));
    walk(&mut scenario, canaries, "when the test has failed");
    let validation = &scenario.owner["status"]["environments"][0]["validations"][0];
    let message = validation["message"].as_str().unwrap();
    assert!(message.contains(&Canaries::harmless()), "{message}");
}

pub(crate) fn runnable(canaries: &Canaries) {
    let told = canaries.told_by_others();
    let mut stage = Stage::new(json!({}));
    stage.template =
        template(json!({"out": ".status.result", "broken": ".status.result[?(@.a==1)]"}));
    stage.template["spec"]["template"]["spec"]["all"] = json!("$(selected.data)$");
    stage.selected = Ok(Some(
        json!({"apiVersion": "v1", "kind": "Secret", "data": canaries.data()}),
    ));
    let walk = |stage: &mut Stage, place: &str| {
        let outcome = stage.outcome();
        canaries.assert_untold(&stage.runnable["status"], &outcome, place);
    };
    walk(&mut stage, "of the first walk");
    for (status, place) in [
        ("False", "of a run that failed"),
        ("True", "of a run that succeeded"),
    ] {
        stage.end("run-1", status, &told);
        stage.cluster.objects[0].object["status"]["conditions"][0]["message"] = json!(told);
        walk(&mut stage, place);
        let [_, _, message] = stage.condition("StampedObjectCondition").unwrap();
        assert!(message.contains(&Canaries::harmless()), "{message}");
    }
    assert_eq!(stage.runnable["status"].get("outputs"), None);
    let kinds = [
        SubmitFailureKind::Rejected,
        SubmitFailureKind::Forbidden,
        SubmitFailureKind::Contested,
        SubmitFailureKind::List,
    ];
    stage.fails = Some(refused(*canaries.one_of(&kinds), &told));
    walk(&mut stage, "of a run that was refused");
    let [_, _, message] = stage.condition("RunTemplateReady").unwrap();
    assert!(message.contains(&Canaries::harmless()), "{message}");
    stage.fails = None;
    stage.template["spec"] = json!({"ytt": "x"});
    stage.rendered = Err(RenderFailure::from(format!("ytt: Error: {told}")));
    walk(&mut stage, "of a rendering that failed");
    let [_, _, message] = stage.condition("RunTemplateReady").unwrap();
    assert!(message.contains(&Canaries::harmless()), "{message}");
}
