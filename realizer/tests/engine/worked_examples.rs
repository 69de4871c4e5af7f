//! The worked examples of spec appendix A.

use serde_json::json;

use crate::scenario::Scenario;

const SMALLEST: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: src}
spec:
  urlPath: .spec.value.url
  revisionPath: .spec.value.rev
  params: [{name: rev, default: main}]
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(workload.metadata.name)$-src}
    spec:
      value: {url: $(workload.spec.source.git.url)$, rev: $(params.rev)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: sink}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-sink}
    data: {url: $(source.url)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
    - name: publish
      templateRef: {kind: ClusterTemplate, name: sink}
      sources: [{resource: fetch, name: code}]
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web}}
spec: {serviceAccountName: sa, source: {git: {url: https://git.example/app}}}
";

#[test]
fn smallest_supply_chain_reaches_its_steady_state() {
    let mut scenario = Scenario::new(SMALLEST);
    let outcome = scenario.reconcile();
    println!("{:#}", scenario.owner["status"]);
    assert_eq!(outcome.reason, "Ready");
    assert!(!scenario.reconcile().changed);
    assert_eq!(
        scenario.cluster.object("app-src")["metadata"]["labels"],
        json!({
            "carto.run/workload-name": "app",
            "carto.run/workload-namespace": "ns",
            "carto.run/supply-chain-name": "chain",
            "carto.run/resource-name": "fetch",
            "carto.run/template-kind": "ClusterSourceTemplate",
            "carto.run/cluster-template-name": "src",
            "carto.run/template-lifecycle": "mutable",
        })
    );
}
