use serde_json::json;

use super::*;

fn compile(yaml: &str) -> Result<Template, TemplateError> {
    let mut object: Value = serde_saphyr::from_str(yaml).unwrap();
    object["apiVersion"] = json!("carto.run/v1alpha1");
    object["metadata"] = json!({"name": "t"});
    Template::compile(&object)
}

fn reads(yaml: &str) -> Vec<String> {
    compile(yaml)
        .unwrap()
        .reads()
        .iter()
        .map(|prefix| prefix.join("."))
        .collect()
}

#[test]
fn stamped_kind_is_known_when_it_stands_literally() {
    let cases = [
        (
            "{kind: ClusterTemplate, spec: {template: {apiVersion: v1, kind: ConfigMap}}}",
            Some(("v1", "ConfigMap")),
        ),
        (
            "{kind: ClusterTemplate, spec: {template: {apiVersion: v1, kind: $(params.kind)$}}}",
            None,
        ),
        (
            "{kind: ClusterTemplate, spec: {template: {apiVersion: x/$(params.v)$, kind: A}}}",
            None,
        ),
        ("{kind: ClusterTemplate, spec: {template: {kind: A}}}", None),
        ("{kind: ClusterTemplate, spec: {ytt: 'kind: A'}}", None),
    ];
    for (yaml, expected) in cases {
        assert_eq!(compile(yaml).unwrap().stamped_kind(), expected, "{yaml}");
    }
}

#[test]
fn reads_are_the_fixed_beginnings_of_all_paths() {
    let cases: [(&str, &[&str]); 8] = [
        ("{kind: ClusterTemplate, spec: {ytt: ''}}", &[]),
        (
            "{kind: ClusterSourceTemplate, spec: {urlPath: .status.artifact.url, revisionPath: .status.artifact.revision}}",
            &["status.artifact.revision", "status.artifact.url"],
        ),
        ("{kind: ClusterImageTemplate, spec: {imagePath: '{.status.results[0].value}'}}", &["status.results"]),
        ("{kind: ClusterConfigTemplate, spec: {configPath: data}}", &["data"]),
        (
            "{kind: ClusterTemplate, spec: {ytt: '', healthRule: {singleConditionType: Ready}}}",
            &["status.conditions"],
        ),
        ("{kind: ClusterTemplate, spec: {ytt: '', lifecycle: tekton}}", &["status.conditions"]),
        (
            "{kind: ClusterTemplate, spec: {ytt: '', healthRule: {multiMatch: {
               healthy: {matchFields: [{key: status.phase, operator: Exists, messagePath: .status.message}]},
               unhealthy: {matchFields: [{key: .spec.x, operator: Exists}]}}}}}",
            &["spec.x", "status.conditions", "status.message", "status.phase"],
        ),
        (
            "{kind: ClusterDeploymentTemplate, spec: {ytt: '', observedCompletion: {
               succeeded: {key: '.status.conditions[?(@.type==\"Done\")].status', value: 'True'},
               failed: {key: .status.failed, value: 'True'}}}}",
            &["metadata.generation", "status.conditions", "status.failed", "status.observedGeneration"],
        ),
    ];
    for (yaml, expected) in cases {
        assert_eq!(reads(yaml), expected, "{yaml}");
    }
}

#[test]
fn a_path_without_fixed_beginning_reads_everything() {
    assert_eq!(
        reads("{kind: ClusterImageTemplate, spec: {imagePath: '{..image}'}}"),
        [""]
    );
}

#[test]
fn defaults_are_mutable_and_ten_of_each() {
    let template = compile("{kind: ClusterTemplate, spec: {ytt: ''}}").unwrap();
    assert_eq!(template.lifecycle, Lifecycle::Mutable);
    assert_eq!(
        template.retention,
        RetentionPolicy {
            max_failed_runs: 10,
            max_successful_runs: 10
        }
    );
    let template = compile(
        "{kind: ClusterTemplate, spec: {ytt: '', lifecycle: tekton, retentionPolicy: {maxFailedRuns: 1, maxSuccessfulRuns: 2}}}",
    )
    .unwrap();
    assert_eq!(template.lifecycle, Lifecycle::Tekton);
    assert_eq!(
        template.retention,
        RetentionPolicy {
            max_failed_runs: 1,
            max_successful_runs: 2
        }
    );
}

#[test]
fn wrong_tags_and_paths_are_no_errors_here() {
    assert!(
        compile("{kind: ClusterImageTemplate, spec: {imagePath: 'x[', template: {a: '$()$'}}}")
            .is_ok()
    );
}

#[test]
fn objects_of_another_shape_are_errors() {
    let error = |yaml: &str| compile(yaml).unwrap_err().to_string();
    assert_eq!(
        error("{kind: ConfigMap}"),
        "kind [ConfigMap] is not a known template kind"
    );
    assert!(
        error("{kind: ClusterTemplate, spec: {lifecycle: eternal}}")
            .starts_with("ClusterTemplate cannot be read: ")
    );
    let nameless = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {}, "spec": {"ytt": ""}});
    assert_eq!(
        Template::compile(&nameless).unwrap_err().to_string(),
        "object has no metadata.name"
    );
}
