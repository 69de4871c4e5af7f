//! What the convention does to pods.
//!
//! The bills of materials in `sbom/` were made by hand, in the form in which buildpacks store what
//! syft finds in an application's jar: CycloneDX 1.3, one component for each jar, with its purl.
//! They hold what the convention looks for, and not all that an application has.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use convention_webhook_sdk::testing::{Given, check, given};
use spring_boot_convention::spring_boot;

const PETCLINIC: &str = include_str!("sbom/petclinic.cdx.json");
const OLD: &str = include_str!("sbom/old.cdx.json");
const WORKER: &str = include_str!("sbom/worker.cdx.json");
const JRE: &str = include_str!("sbom/jre.cdx.json");

const WEB: &str = "spec: {containers: [{name: web, image: app}]}";

/// The pod, whose image has these bills of materials, as buildpacks name them.
fn with(pod: &str, boms: &[&str]) -> Given {
    let config =
        "{architecture: amd64, os: linux, config: {User: '1000:1000', Env: ['CNB_APP_DIR=/app']}}";
    let pod = given(pod).image("app", config);
    boms.iter().enumerate().fold(pod, |pod, (number, bom)| {
        let name = format!("cnb-app:/layers/sbom/launch/buildpack-{number}/sbom.cdx.json");
        pod.bom(&name, *bom)
    })
}

/// The lines about values that have this in their path.
async fn lines_about(pod: &Given, path: &str) -> Vec<String> {
    let done = pod.run(&spring_boot).await;
    check(&spring_boot)
        .may_change("spec.containers[web].env[JAVA_TOOL_OPTIONS].value")
        .on(pod)
        .await;
    let lines = done.difference();
    let lines = lines.lines().filter(|line| line.contains(path));
    lines.map(str::to_owned).collect()
}

async fn options_of(pod: &Given) -> String {
    let done = pod.run(&spring_boot).await;
    let container = done.template().container("web").unwrap();
    container
        .env("JAVA_TOOL_OPTIONS")
        .unwrap_or("none")
        .to_owned()
}

#[tokio::test]
async fn an_application_with_web_server_actuator_and_database_gets_all_of_it() {
    let pod = with(WEB, &[JRE, PETCLINIC]);
    let done = pod.run(&spring_boot).await;
    done.expect(
        r#"
        + metadata.annotations.boot.spring.io/actuator: "http://:8080/actuator"
        + metadata.annotations.boot.spring.io/version: "2.7.3"
        + metadata.annotations.services.conventions.carto.run/mysql: "mysql-connector-java/8.0.29"
        + metadata.labels.conventions.carto.run/framework: "spring-boot"
        + metadata.labels.services.conventions.carto.run/mysql: "web"
        + spec.containers[web].env[JAVA_TOOL_OPTIONS].name: "JAVA_TOOL_OPTIONS"
        + spec.containers[web].env[JAVA_TOOL_OPTIONS].value: "-Dmanagement.endpoints.web.base-path=/actuator -Dmanagement.health.probes.enabled=true -Dmanagement.server.port=8080 -Dserver.port=8080 -Dserver.shutdown.grace-period=24s"
        + spec.containers[web].livenessProbe.httpGet.path: "/actuator/health/liveness"
        + spec.containers[web].livenessProbe.httpGet.port: 8080
        + spec.containers[web].ports[8080].containerPort: 8080
        + spec.containers[web].ports[8080].protocol: "TCP"
        + spec.containers[web].readinessProbe.httpGet.path: "/actuator/health/readiness"
        + spec.containers[web].readinessProbe.httpGet.port: 8080
        + spec.containers[web].startupProbe.failureThreshold: 120
        + spec.containers[web].startupProbe.httpGet.path: "/actuator/health/liveness"
        + spec.containers[web].startupProbe.httpGet.port: 8080
        + spec.containers[web].startupProbe.initialDelaySeconds: 1
        + spec.containers[web].startupProbe.periodSeconds: 1
        + spec.terminationGracePeriodSeconds: 30
        "#,
    );
    done.expect_applied([
        "spring-boot",
        "spring-boot-graceful-shutdown",
        "spring-boot-web",
        "spring-boot-actuator",
        "spring-boot-actuator-probes",
        "service-intent-mysql",
    ]);
    check(&spring_boot).on(&pod).await;
}

#[tokio::test]
async fn an_image_without_spring_boot_is_left_alone() {
    for boms in [
        &[][..],
        &[JRE],
        &["no bill of materials"],
        &["{\"bomFormat\": \"CycloneDX\"}"],
    ] {
        let pod = with(WEB, boms);
        pod.run(&spring_boot).await.expect("").expect_applied([]);
    }
    let unknown = given(WEB);
    unknown
        .run(&spring_boot)
        .await
        .expect("")
        .expect_applied([]);
}

#[tokio::test]
async fn before_2_3_there_is_no_graceful_end_and_probes_ask_for_the_info() {
    let pod = with(WEB, &[OLD]);
    let done = pod.run(&spring_boot).await;
    done.expect_applied([
        "spring-boot",
        "spring-boot-web",
        "spring-boot-actuator",
        "spring-boot-actuator-probes",
    ]);
    assert_eq!(
        lines_about(&pod, "Probe.httpGet.path").await,
        ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| format!(
            "+ spec.containers[web].{probe}.httpGet.path: \"/actuator/info\""
        ))
    );
}

#[tokio::test]
async fn an_actuator_without_a_web_server_is_asked_at_its_default_port() {
    let pod = with(WEB, &[WORKER]);
    let done = pod.run(&spring_boot).await;
    done.expect_applied([
        "spring-boot",
        "spring-boot-actuator",
        "spring-boot-actuator-probes",
        "service-intent-postgres",
        "service-intent-mongodb",
        "service-intent-rabbitmq",
        "service-intent-redis",
        "service-intent-kafka",
        "service-intent-kafka-streams",
    ]);
    assert_eq!(
        lines_about(&pod, "boot.spring.io/actuator").await,
        ["+ metadata.annotations.boot.spring.io/actuator: \"http://:8080/actuator\""]
    );
    assert_eq!(
        lines_about(&pod, "annotations.services.conventions.carto.run/postgres").await,
        [
            "+ metadata.annotations.services.conventions.carto.run/postgres: \"r2dbc-postgresql/0.8.12.RELEASE\""
        ]
    );
}

#[tokio::test]
async fn properties_of_the_template_hold_and_other_options_stay_in_front() {
    let pod = with(
        "
        spec:
          terminationGracePeriodSeconds: 61
          containers:
          - name: web
            image: app
            env:
            - name: JAVA_TOOL_OPTIONS
              value: -Dserver.port=9090 -Xmx1g -Dmanagement.server.port=9091 -Dmanagement.server.ssl.enabled=true -Dmanagement.endpoints.web.base-path=/ops/
        ",
        &[PETCLINIC],
    );
    assert_eq!(
        options_of(&pod).await,
        "-Xmx1g -Dmanagement.endpoints.web.base-path=/ops/ -Dmanagement.health.probes.enabled=true \
         -Dmanagement.server.port=9091 -Dmanagement.server.ssl.enabled=true -Dserver.port=9090 -Dserver.shutdown.grace-period=48s"
    );
    assert_eq!(
        lines_about(&pod, "boot.spring.io/actuator").await,
        ["+ metadata.annotations.boot.spring.io/actuator: \"https://:9091/ops\""]
    );
    assert_eq!(
        lines_about(&pod, "livenessProbe").await,
        [
            "+ spec.containers[web].livenessProbe.httpGet.path: \"/ops/health/liveness\"",
            "+ spec.containers[web].livenessProbe.httpGet.port: 9091",
            "+ spec.containers[web].livenessProbe.httpGet.scheme: \"HTTPS\"",
        ]
    );
    assert_eq!(
        lines_about(&pod, "ports[9090].containerPort").await.len(),
        1
    );
}

#[tokio::test]
async fn probes_of_the_template_stay_and_the_startup_probe_asks_as_the_liveness_probe_does() {
    let pod = with(
        "
        spec:
          containers:
          - name: web
            image: app
            livenessProbe: {exec: {command: [alive]}}
            readinessProbe: {periodSeconds: 7}
        ",
        &[PETCLINIC],
    );
    assert_eq!(
        lines_about(&pod, "Probe").await,
        [
            "+ spec.containers[web].readinessProbe.httpGet.path: \"/actuator/health/readiness\"",
            "+ spec.containers[web].readinessProbe.httpGet.port: 8080",
            "+ spec.containers[web].startupProbe.exec.command[0]: \"alive\"",
            "+ spec.containers[web].startupProbe.failureThreshold: 120",
            "+ spec.containers[web].startupProbe.initialDelaySeconds: 1",
            "+ spec.containers[web].startupProbe.periodSeconds: 1",
        ]
    );
}

/// A pod whose container has these options.
fn with_options(options: &str) -> Given {
    let env = format!("[{{name: JAVA_TOOL_OPTIONS, value: '{options}'}}]");
    let pod = format!("spec: {{containers: [{{name: web, image: app, env: {env}}}]}}");
    with(&pod, &[PETCLINIC])
}

#[tokio::test]
async fn probes_that_are_turned_off_are_not_given() {
    let pod = with_options("-Dmanagement.health.probes.enabled=false");
    assert_eq!(lines_about(&pod, "Probe").await, Vec::<String>::new());
    let done = pod.run(&spring_boot).await;
    assert!(
        !done
            .applied()
            .contains(&"spring-boot-actuator-probes".to_owned())
    );
}

#[tokio::test]
async fn a_port_that_nobody_knows_is_not_written_anywhere() {
    for options in ["-Dserver.port=0", "-Dserver.port=-1"] {
        let pod = with_options(options);
        for path in ["ports", "Probe", "boot.spring.io/actuator"] {
            assert_eq!(
                lines_about(&pod, path).await,
                Vec::<String>::new(),
                "{options}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_port_is_an_error_that_says_where_it_stands() {
    for (property, value) in [("server.port", "http"), ("management.server.port", "65536")] {
        let pod = with_options(&format!("-D{property}={value}"));
        let error = pod.try_run(&spring_boot).await.unwrap_err();
        let expected = format!(
            "container web: property {property} of JAVA_TOOL_OPTIONS is \"{value}\", not a port"
        );
        assert_eq!(error.text(), expected);
    }
}

#[tokio::test]
async fn a_port_that_another_container_has_is_an_error() {
    let pod = with(
        "spec: {containers: [{name: proxy, ports: [{containerPort: 8080}]}, {name: web, image: app}]}",
        &[PETCLINIC],
    );
    let error = pod.try_run(&spring_boot).await.unwrap_err();
    assert_eq!(
        error.text(),
        "container web: port 8080 is that of container proxy already; set -Dserver.port in JAVA_TOOL_OPTIONS"
    );
}

#[tokio::test]
async fn options_that_come_from_somewhere_else_stay_there() {
    let pod = with(
        "
        spec:
          containers:
          - name: web
            image: app
            env: [{name: JAVA_TOOL_OPTIONS, valueFrom: {secretKeyRef: {name: options, key: java}}}]
        ",
        &[PETCLINIC],
    );
    let done = pod.run(&spring_boot).await;
    done.expect_applied(["spring-boot", "service-intent-mysql"]);
    assert_eq!(lines_about(&pod, "spec.").await, Vec::<String>::new());
}

#[tokio::test]
async fn options_of_the_image_are_not_lost() {
    let config =
        "{config: {Env: ['JAVA_TOOL_OPTIONS=-XX:+ExitOnOutOfMemoryError -Dserver.port=9000']}}";
    let pod = given(WEB).image("app", config).bom("a", PETCLINIC);
    let options = options_of(&pod).await;
    assert!(
        options.starts_with("-XX:+ExitOnOutOfMemoryError -Dmanagement."),
        "{options}"
    );
    assert!(options.contains(" -Dserver.port=9000 "), "{options}");
}
