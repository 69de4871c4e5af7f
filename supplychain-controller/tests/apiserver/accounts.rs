//! Which service accounts are taken: the default of the operator, and none that is lent if the operator says so.

use serde_json::Value;
use test_support::eventually;
use test_support::stage::Particulars;

use crate::immutable::WORKLOAD;
use crate::stage::{NOTHING, PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$}
data: {branch: $(workload.spec.source.git.ref.branch)$}
";

/// A Workload of this name that names no account.
fn nameless(name: &str) -> String {
    let workload = WORKLOAD.replace("serviceAccountName: sa, ", "");
    workload.replace("name: app", &format!("name: {name}"))
}

async fn is_made_by(stage: &Stage, name: &str, account: &str) {
    eventually(&format!("{name} is there"), PATIENCE, async || {
        stage.get("v1", "ConfigMap", name).await
    })
    .await;
    stage.idle().await;
    let written = stage.audited().into_iter().filter(|event| {
        let object = event.object_ref.as_ref();
        event.is_write()
            && object.is_some_and(|object| &*object.name == name && object.resource == "configmaps")
    });
    let by: Vec<String> = written.map(|event| event.user.username).collect();
    assert!(
        !by.is_empty() && by.iter().all(|user| user == account),
        "{by:?}"
    );
}

#[tokio::test]
async fn the_default_account_is_the_one_of_the_flag_and_a_lent_one_can_be_refused() {
    let mut stage = Stage::set().await;
    let namespace = stage.namespace.clone();
    let elsewhere = stage.plane.create_namespace("elsewhere").await.unwrap();
    stage.start_controller_with(&Particulars {
        flags: &["--default-service-account=sa", "--no-lent-accounts"],
        ..Particulars::default()
    });
    let chain = blueprint_of(&[("config", CONFIG)]);
    stage.apply(&chain).await;
    stage.apply(&nameless("app")).await;
    is_made_by(
        &stage,
        "app",
        &format!("system:serviceaccount:{namespace}:sa"),
    )
    .await;
    stage.ready("app", "True", "Ready").await;

    // The same account, by its namespace: it is not lent.
    let lends = |namespace: &str| {
        let lent = format!(
            "spec:\n  serviceAccountRef: {{name: sa, namespace: {namespace}}}\n  selector: {{type: web}}"
        );
        chain.replace("spec:\n  selector: {type: web}", &lent)
    };
    stage.apply(&lends(&namespace)).await;
    stage.apply(&nameless("near")).await;
    stage.ready("near", "True", "Ready").await;

    stage.apply(&lends(&elsewhere)).await;
    let refused = stage.ready("near", "False", "LentAccountRefused").await;
    let message = condition(&refused["status"], "ResourcesSubmitted")["message"].clone();
    let said = format!(
        "nothing is stamped, because supply chain [chain] lends service account [sa] of namespace [{elsewhere}]"
    );
    assert!(message.as_str().unwrap().starts_with(&said), "{message}");
    assert_ne!(
        refused["status"]["resources"],
        Value::Null,
        "what was there stays"
    );
    stage.settle("near").await;
    assert_eq!(stage.requests_of_reconciles("near", 2).await, NOTHING);
    assert!(stage.get("v1", "ConfigMap", "near").await.is_some());
    // Whoever names an account borrows none.
    stage
        .apply(&WORKLOAD.replace("name: app", "name: own"))
        .await;
    stage.ready("own", "True", "Ready").await;
}
