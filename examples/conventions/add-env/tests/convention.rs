//! What the convention does to pods.

use add_env::add_env;
use convention_webhook_sdk::testing::{check, given};

#[tokio::test]
async fn every_container_gets_the_variable() {
    let pod = given(
        "
        spec:
          initContainers: [{name: prepare, image: web}]
          containers: [{name: web, image: web}, {name: no-image}]
        ",
    );
    let done = pod.run(&add_env).await;
    done.expect(
        r#"
        + spec.containers[no-image].env[CONVENTION_SERVER].name: "CONVENTION_SERVER"
        + spec.containers[no-image].env[CONVENTION_SERVER].value: "HELLO FROM CONVENTION"
        + spec.containers[web].env[CONVENTION_SERVER].name: "CONVENTION_SERVER"
        + spec.containers[web].env[CONVENTION_SERVER].value: "HELLO FROM CONVENTION"
        "#,
    );
    done.expect_applied(["add-env-var"]);
    check(&add_env).on(&pod).await;
}

#[tokio::test]
async fn a_variable_of_this_name_stays_and_there_is_no_receipt() {
    let pod = given(
        "
        spec:
          containers:
          - name: web
            env: [{name: CONVENTION_SERVER, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        ",
    );
    pod.run(&add_env).await.expect("").expect_applied([]);
    check(&add_env).on(&pod).await;
}
