//! What the convention does to pods, and what it leaves alone.

use convention_webhook_sdk::testing::{check, given};
use security_baseline::security_baseline;

const WEB: &str = "spec: {containers: [{name: web, image: web}]}";

#[tokio::test]
async fn a_pod_whose_image_has_a_user_by_number_is_made_safe() {
    let pod = given(WEB).image("web", "{config: {User: '1000:1000'}}");
    let done = pod.run(&security_baseline).await;
    done.expect(
        r#"
        + spec.containers[web].securityContext.allowPrivilegeEscalation: false
        + spec.containers[web].securityContext.capabilities.drop[0]: "ALL"
        + spec.containers[web].securityContext.readOnlyRootFilesystem: true
        + spec.containers[web].securityContext.runAsNonRoot: true
        + spec.containers[web].volumeMounts[/tmp].mountPath: "/tmp"
        + spec.containers[web].volumeMounts[/tmp].name: "security-baseline-tmp"
        + spec.securityContext.seccompProfile.type: "RuntimeDefault"
        + spec.volumes[security-baseline-tmp].emptyDir: {}
        + spec.volumes[security-baseline-tmp].name: "security-baseline-tmp"
        "#,
    );
    done.expect_applied([
        "seccomp/pod",
        "no-privilege-escalation/web",
        "drop-all-capabilities/web",
        "run-as-non-root/web",
        "read-only-root/web",
    ]);
    check(&security_baseline).on(&pod).await;
}

#[tokio::test]
async fn what_would_keep_a_container_from_starting_is_left_alone_with_a_reason() {
    for (config, why) in [
        ("{config: {}}", "its image runs as root"),
        ("{config: {User: root}}", "its image runs as root"),
        ("{config: {User: '0:1000'}}", "its image runs as root"),
        (
            "{config: {User: www-data}}",
            "the user of its image is a name, not a number",
        ),
    ] {
        let pod = given(WEB).image("web", config);
        let done = pod.run(&security_baseline).await;
        let names = [
            format!("skipped/drop-all-capabilities/web: {why}"),
            format!("skipped/run-as-non-root/web: {why}"),
            format!("skipped/read-only-root/web: {why}"),
        ];
        assert!(
            names.iter().all(|name| done.applied().contains(name)),
            "{:?}",
            done.applied()
        );
        assert!(!done.difference().contains("runAsNonRoot"), "{config}");
        assert!(
            !done.difference().contains("readOnlyRootFilesystem"),
            "{config}"
        );
        check(&security_baseline).on(&pod).await;
    }
}

#[tokio::test]
async fn an_image_that_nobody_looked_up_may_be_anything() {
    let done = given(WEB).run(&security_baseline).await;
    let why = "nothing is known of its image";
    let name = format!("skipped/run-as-non-root/web: {why}");
    assert!(done.applied().contains(&name), "{:?}", done.applied());
}

#[tokio::test]
async fn an_image_that_keeps_data_may_write_to_its_root() {
    let pod = given(WEB).image(
        "web",
        "{config: {User: '70', Volumes: {/var/lib/data: {}}}}",
    );
    let done = pod.run(&security_baseline).await;
    let name = "skipped/read-only-root/web: its image keeps data at /var/lib/data";
    assert!(
        done.applied().contains(&name.to_owned()),
        "{:?}",
        done.applied()
    );
    assert!(done.difference().contains("runAsNonRoot: true"));
    check(&security_baseline).on(&pod).await;
}

#[tokio::test]
async fn what_the_template_says_stays_and_is_told() {
    let pod = given(
        "
        spec:
          securityContext: {seccompProfile: {type: Unconfined}}
          containers:
          - name: web
            image: web
            volumeMounts: [{name: scratch, mountPath: /tmp}]
            securityContext:
              allowPrivilegeEscalation: true
              readOnlyRootFilesystem: false
              runAsNonRoot: false
              capabilities: {drop: [NET_RAW], add: [NET_BIND_SERVICE]}
          - name: agent
            image: web
            securityContext: {privileged: true}
          - name: root
            image: web
            securityContext: {runAsUser: 0}
        ",
    )
    .image("web", "{config: {User: '1000'}}");
    let done = pod.run(&security_baseline).await;
    done.expect_applied([
        "skipped/seccomp/pod: the template says otherwise",
        "skipped/no-privilege-escalation/web: the template says otherwise",
        "skipped/drop-all-capabilities/web: the template says otherwise",
        "skipped/run-as-non-root/web: the template says otherwise",
        "skipped/read-only-root/web: the template says otherwise",
        "skipped/all/agent: it is privileged on purpose",
        "no-privilege-escalation/root",
        "skipped/drop-all-capabilities/root: the template wants root",
        "skipped/run-as-non-root/root: the template wants root",
        "skipped/read-only-root/root: the template wants root",
    ]);
    check(&security_baseline).on(&pod).await;
}

#[tokio::test]
async fn what_the_api_server_would_refuse_is_not_given() {
    let pod = given(
        "
        spec:
          containers:
          - name: web
            image: web
            securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}}
        ",
    )
    .image("web", "{config: {User: '1000'}}");
    let done = pod.run(&security_baseline).await;
    assert!(!done.difference().contains("allowPrivilegeEscalation"));
    let name = "skipped/no-privilege-escalation/web: it wants SYS_ADMIN";
    assert!(
        done.applied().contains(&name.to_owned()),
        "{:?}",
        done.applied()
    );
    let windows = given("spec: {os: {name: windows}, containers: [{name: web}]}");
    let done = windows.run(&security_baseline).await;
    done.expect("")
        .expect_applied(["skipped/all/pod: it is for Windows"]);
}

#[tokio::test]
async fn what_the_pod_says_of_its_user_holds_for_its_containers() {
    let of = async |context: &str| {
        let pod = format!(
            "spec: {{securityContext: {context}, containers: [{{name: web, image: web}}]}}"
        );
        let pod = given(&pod).image("web", "{config: {}}");
        check(&security_baseline).on(&pod).await;
        pod.run(&security_baseline).await.applied().join(" ")
    };
    assert!(
        of("{runAsUser: 1000}")
            .await
            .contains(" drop-all-capabilities/web run-as-non-root/web read-only-root/web")
    );
    let told = of("{runAsNonRoot: false}").await;
    assert!(
        told.contains("skipped/run-as-non-root/web: the template says otherwise"),
        "{told}"
    );
    assert!(
        !of("{runAsNonRoot: true, runAsUser: 1}")
            .await
            .contains("run-as-non-root")
    );
}

#[tokio::test]
async fn what_is_of_another_type_is_an_error_with_its_place() {
    let pod = given("spec: {containers: [{name: web, securityContext: none}]}");
    let error = pod.try_run(&security_baseline).await.unwrap_err();
    assert_eq!(
        error.text(),
        "spec.containers[web].securityContext is a text, not an object"
    );
}
