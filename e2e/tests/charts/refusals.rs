//! Values that are refused, by what their author reads.

use std::fs;

use e2e::Helm;
use e2e::helm::chart;

use crate::values;

const IMAGE: &str = "image: {repository: a, tag: b}\n";
const PEM: &str = "\"-----BEGIN CERTIFICATE-----\"";

/// What helm says of values.
fn refusal(name: &str, values: &str) -> String {
    values::are_up_to_date();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    fs::write(&file, values).unwrap();
    let made = Helm::new().unwrap().render(&chart(name), "platform", &file);
    made.expect_err(values).to_string()
}

fn assert_refused(values: &str, texts: &[&str]) {
    assert_refused_by("convention-webhook", values, texts);
}

fn assert_refused_by(chart: &str, values: &str, texts: &[&str]) {
    let told = refusal(chart, values);
    for text in texts {
        assert!(told.contains(text), "{values}\nis refused with\n{told}");
    }
}

#[test]
fn an_image_that_is_not_named_is_told() {
    assert_refused(
        "{}",
        &["image.repository is missing", "--set image.repository="],
    );
    assert_refused(
        "image: {repository: a}",
        &["image.tag is missing", "image.digest"],
    );
}

#[test]
fn a_value_that_does_not_exist_is_told_by_its_name() {
    for (values, texts) in [
        ("replica: 3", ["replica", "not allowed"]),
        ("image: {repo: a}", ["/image", "'repo' not allowed"]),
        (
            "conventions: [{paths: /}]",
            ["/conventions/0", "'paths' not allowed"],
        ),
        (
            "conventions: [{selectors: [{matchLabel: {}}]}]",
            ["/selectors/0", "matchLabel"],
        ),
        (
            "certificate: {issuerRef: {nam: x}}",
            ["/certificate/issuerRef", "'nam' not allowed"],
        ),
    ] {
        assert_refused(&format!("{values}\n"), &texts);
    }
}

#[test]
fn a_value_of_the_wrong_sort_is_told_with_what_it_may_be() {
    for (values, texts) in [
        ("replicas: two", ["/replicas", "want integer"]),
        ("replicas: 0", ["/replicas", "minimum: got 0, want 1"]),
        ("port: 443", ["/port", "want 1,024"]),
        ("runAsUser: 0", ["/runAsUser", "want 1"]),
        (
            "conventions: [{priority: early}]",
            ["/priority", "'Early', 'Normal', 'Late'"],
        ),
        (
            "conventions: [{timeoutSeconds: 31}]",
            ["/timeoutSeconds", "want 30"],
        ),
        (
            "conventions: [{path: early}]",
            ["/conventions/0/path", "pattern"],
        ),
        (
            "image: {digest: 'sha256:12'}",
            ["/image/digest", "sha256:[0-9a-f]{64}"],
        ),
        (
            "certificate: {caBundle: LS0tLS1CRUdJTg==}",
            ["/certificate/caBundle", "BEGIN CERTIFICATE"],
        ),
        ("nameOverride: Time_Zone", ["/nameOverride", "pattern"]),
        ("commonLabels: {a: 1}", ["/commonLabels/a", "want string"]),
        (
            "extraManifests: [1]",
            ["/extraManifests/0", "want string or object"],
        ),
    ] {
        assert_refused(&format!("{values}\n"), &texts);
    }
}

#[test]
fn values_that_contradict_one_another_are_told_with_what_to_do() {
    for (values, text) in [
        (
            "certificate: {secretName: s}".to_owned(),
            "certificate.caBundle is missing",
        ),
        (
            format!("certificate: {{caBundle: {PEM}}}"),
            "certificate.secretName is missing",
        ),
        (
            format!("certificate: {{secretName: s, caBundle: {PEM}, issuerRef: {{name: i}}}}"),
            "exclude each other",
        ),
        (
            "conventions: [{path: /a}, {path: /b}]".to_owned(),
            "two have the name \"web\"",
        ),
        (
            "conventions: [{path: /healthz}]".to_owned(),
            "the server itself answers at /healthz",
        ),
        (
            "env: [{name: PORT, value: '1'}]".to_owned(),
            "say it by the value port",
        ),
        (
            "env: [{name: RUST_LOG, value: a}]".to_owned(),
            "say it by the value logLevel",
        ),
    ] {
        assert_refused(&format!("{IMAGE}{values}\n"), &[text]);
    }
}

#[test]
fn values_of_controllers_that_cannot_be_are_told() {
    for (chart, values, texts) in [
        (
            "carto",
            "policies: [policies/nothing.yaml]",
            ["no file of the chart is", "policies/nothing.yaml"],
        ),
        ("carto", "policies: [../x]", ["/policies/0", "pattern"]),
        (
            "carto",
            "watchedKinds: {tekon: true}",
            ["/watchedKinds", "'tekon' not allowed"],
        ),
        (
            "carto",
            "runnable-controller: {replica: 3}",
            ["replica", "not allowed"],
        ),
        (
            "carto",
            "supplychain-controler: {}",
            ["supplychain-controler", "not allowed"],
        ),
        (
            "carto",
            "global: {priorityClassName: ''}",
            [
                "global.priorityClassName is missing",
                "priorityClass.create",
            ],
        ),
        ("crds", "keep: perhaps", ["/keep", "want boolean"]),
        (
            "delivery-controller",
            "tokenExpirationSeconds: 60",
            ["/tokenExpirationSeconds", "want 600"],
        ),
        (
            "delivery-controller",
            "image: {digest: latest}",
            ["/image/digest", "pattern"],
        ),
        (
            "delivery-controller",
            "shards: [{name: a}]",
            ["/shards/0", "missing property 'labelSelector'"],
        ),
        (
            "delivery-controller",
            "shards: [{name: A, namespaces: [dev]}]",
            ["/shards/0/name", "pattern"],
        ),
        (
            "delivery-controller",
            "shards: [{name: a, namespaces: [dev]}, {name: a, labelSelector: b}]",
            ["two have the name \"a\"", "one Lease"],
        ),
        (
            "supplychain-controller",
            "shards: [{name: webhook, namespaces: [dev]}]",
            ["shards", "none can have the name \"webhook\""],
        ),
        (
            "runnable-controller",
            "{shareOwners: true, replicas: 33}",
            ["at most 32 share the owners", "shards"],
        ),
        (
            "runnable-controller",
            "{shareOwners: true, shards: [{name: a, namespaces: [dev], replicas: 33}]}",
            ["at most 32 share the owners", "shards"],
        ),
        (
            "conventions-controller",
            "shareOwners: true",
            ["shareOwners", "not allowed"],
        ),
        (
            "runnable-controller",
            "replicas: -1",
            ["/replicas", "want 0"],
        ),
        (
            "runnable-controller",
            "{podMonitor: {enabled: true}, serviceMonitor: {enabled: true}}",
            ["exclude each other", "counted twice"],
        ),
        (
            "supplychain-controller",
            "webhook: {failurePolicy: fail}",
            ["/webhook/failurePolicy", "'Fail', 'Ignore'"],
        ),
        (
            "conventions-controller",
            "podPresets: {reportStalePods: true}",
            ["podPresets.enabled is missing", ""],
        ),
        (
            "conventions-controller",
            "podPresets: {enabled: true, restartsPerMinute: 5}",
            ["podPresets.reportStalePods is missing", ""],
        ),
    ] {
        assert_refused_by(chart, values, &texts);
    }
}
