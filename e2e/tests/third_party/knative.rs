//! Services of Knative.

use e2e::third_party::KnativeServing;

use crate::chain::{Chain, NAMESPACE};

const TEMPLATE: &str = r#"
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {name: step}
spec:
  configPath: .status.latestReadyRevisionName
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Ready")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type=="Ready")].status', value: 'False'}
  updatePolicy: {whenReconciling: Wait}
  template:
    apiVersion: serving.knative.dev/v1
    kind: Service
    metadata: {name: $(workload.metadata.name)$}
    spec:
      template:
        spec:
          containers: [{name: user-container, image: $(workload.spec.image)$}]
      traffic: [{latestRevision: true, percent: 100}]
"#;

/// Its image is looked up in no registry, as it is one of a digest.
fn there(digit: char) -> String {
    let digest = digit.to_string().repeat(64);
    format!("registry.example/app@sha256:{digest}")
}

/// Nothing serves this port.
const NOT_THERE: &str = "127.0.0.1:1/app:latest";

#[tokio::test]
async fn a_knative_service_hands_on_its_ready_revision_and_keeps_it_while_an_image_is_not_there() {
    let chain = Chain::new().await;
    let mut knative = KnativeServing::start(&chain.plane).await.unwrap();
    let scenario = async {
        let notes = chain.notes().await;
        chain.hand_in(TEMPLATE, &there('1')).await;
        let is = |revision: &'static str| move |told: &str| told == revision;
        chain.comes_to("Good", is("app-00001")).await;
        chain.changes_to(&there('2')).await;
        let good = chain.comes_to("Good", is("app-00002")).await;
        chain.changes_to(NOT_THERE).await;
        let failed = chain.comes_to("Failed", is("app-00002")).await;
        let (before, now) = (&good["outputs"][0], &failed["outputs"][0]);
        assert_eq!(now["current"], false, "{failed}");
        assert_eq!(now["provenance"], before["provenance"]);
        chain.changes_to(&there('4')).await;
        chain.comes_to("Good", is("app-00004")).await;
        let told = chain.told(notes).await;
        assert_eq!(told, ["app-00001", "app-00002", "app-00004"]);
    };
    tokio::select! {
        () = scenario => {}
        ended = knative.serves(chain.client.clone(), NAMESPACE) => panic!("{ended:?}"),
    }
    chain.nothing_was_forbidden();
}
