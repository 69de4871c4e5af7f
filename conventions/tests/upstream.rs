//! All that the schemas of the Go controller take fits into ours: an object that is stored there can
//! be stored here.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// A line for each field: path, type, facts. A path ends in `[]` for the items of a list and in `{}`
/// for the values of a map. Facts: `required`, `atomic`, `default=<json>`, and `takes=a|b` for texts
/// that are taken by admission, not by the schema: ours may name them, and must name them all.
const CONVENTION: &str = "
spec object required
spec.selectors list
spec.selectors[] object atomic
spec.selectors[].matchLabels map
spec.selectors[].matchLabels{} string
spec.selectors[].matchExpressions list
spec.selectors[].matchExpressions[] object
spec.selectors[].matchExpressions[].key string required
spec.selectors[].matchExpressions[].operator string required
spec.selectors[].matchExpressions[].values list
spec.selectors[].matchExpressions[].values[] string
spec.selectorTarget string takes=|PodTemplateSpec|PodIntent
spec.priority string takes=|Early|Normal|Late
spec.webhook object
spec.webhook.clientConfig object required
spec.webhook.clientConfig.url string
spec.webhook.clientConfig.caBundle byte
spec.webhook.clientConfig.service object
spec.webhook.clientConfig.service.namespace string required
spec.webhook.clientConfig.service.name string required
spec.webhook.clientConfig.service.path string
spec.webhook.clientConfig.service.port int32
spec.webhook.certificate object
spec.webhook.certificate.namespace string required
spec.webhook.certificate.name string required
";

const INTENT: &str = "
spec object required
spec.serviceAccountName string
spec.imagePullSecrets list
spec.imagePullSecrets[] object atomic
spec.imagePullSecrets[].name string default=\"\"
spec.template object required
status object
status.observedGeneration int64
status.conditions list
status.conditions[] object
status.conditions[].type string required
status.conditions[].status string required takes=True|False|Unknown
status.conditions[].reason string required
status.conditions[].message string required
status.conditions[].lastTransitionTime date-time required
status.conditions[].observedGeneration int64
status.template object
";

/// Below both templates. That the address of a host alias is required is a rule of newer versions of
/// Kubernetes; none has ever let a Pod in without one.
const TEMPLATE: &str = "
.metadata object
.metadata.name string
.metadata.generateName string
.metadata.namespace string
.metadata.labels map
.metadata.labels{} string
.metadata.annotations map
.metadata.annotations{} string
.spec object
.spec.activeDeadlineSeconds int64
.spec.affinity object
.spec.affinity.nodeAffinity object
.spec.affinity.podAffinity object
.spec.affinity.podAntiAffinity object
.spec.automountServiceAccountToken boolean
.spec.containers list required
.spec.dnsConfig object
.spec.dnsPolicy string
.spec.enableServiceLinks boolean
.spec.ephemeralContainers list
.spec.ephemeralContainers[].targetContainerName string
.spec.hostAliases list
.spec.hostAliases[].hostnames list
.spec.hostAliases[].ip string required
.spec.hostIPC boolean
.spec.hostNetwork boolean
.spec.hostPID boolean
.spec.hostUsers boolean
.spec.hostname string
.spec.imagePullSecrets list
.spec.imagePullSecrets[] object atomic
.spec.imagePullSecrets[].name string
.spec.initContainers list
.spec.nodeName string
.spec.nodeSelector map atomic
.spec.nodeSelector{} string
.spec.os object
.spec.os.name string required
.spec.overhead map
.spec.preemptionPolicy string
.spec.priority int32
.spec.priorityClassName string
.spec.readinessGates list
.spec.readinessGates[].conditionType string required
.spec.restartPolicy string
.spec.runtimeClassName string
.spec.schedulerName string
.spec.securityContext object
.spec.securityContext.runAsNonRoot boolean
.spec.securityContext.fsGroup int64
.spec.serviceAccount string
.spec.serviceAccountName string
.spec.setHostnameAsFQDN boolean
.spec.shareProcessNamespace boolean
.spec.subdomain string
.spec.terminationGracePeriodSeconds int64
.spec.tolerations list
.spec.tolerations[].tolerationSeconds int64
.spec.topologySpreadConstraints list
.spec.topologySpreadConstraints[].maxSkew int32 required
.spec.volumes list
.spec.volumes[] object
.spec.volumes[].name string required
.spec.volumes[].configMap object
.spec.volumes[].emptyDir object
.spec.volumes[].ephemeral object
.spec.volumes[].hostPath object
.spec.volumes[].persistentVolumeClaim object
.spec.volumes[].persistentVolumeClaim.claimName string required
.spec.volumes[].projected object
.spec.volumes[].secret object
.spec.volumes[].secret.secretName string
.spec.volumes[].secret.optional boolean
";

/// Below the items of each list of containers.
const CONTAINER: &str = "
.args list
.args[] string
.command list
.command[] string
.env list
.env[] object
.env[].name string required
.env[].value string
.env[].valueFrom object
.env[].valueFrom.secretKeyRef object atomic
.env[].valueFrom.secretKeyRef.key string required
.envFrom list
.image string
.imagePullPolicy string
.lifecycle object
.livenessProbe object
.livenessProbe.httpGet object
.livenessProbe.httpGet.path string
.livenessProbe.periodSeconds int32
.name string required
.ports list
.ports[] object
.ports[].containerPort int32 required
.ports[].protocol string default=\"TCP\"
.readinessProbe object
.resources object
.resources.limits map
.resources.requests map
.securityContext object
.startupProbe object
.stdin boolean
.stdinOnce boolean
.terminationMessagePath string
.terminationMessagePolicy string
.tty boolean
.volumeDevices list
.volumeMounts list
.volumeMounts[] object
.volumeMounts[].mountPath string required
.volumeMounts[].readOnly boolean
.workingDir string
";

/// The schema at a path, and whether it is required there.
fn at<'s>(root: &'s Value, path: &str) -> Option<(&'s Value, bool)> {
    let mut found = (root, true);
    for name in path.replace("[]", ".[]").replace("{}", ".{}").split('.') {
        let (schema, _) = found;
        found = match name {
            "[]" => (schema.get("items")?, false),
            "{}" => (schema.get("additionalProperties")?, false),
            name => {
                let required = schema["required"].as_array().into_iter().flatten();
                let is_required = required.into_iter().any(|it| it == name);
                (schema["properties"].get(name)?, is_required)
            }
        };
    }
    Some(found)
}

/// The type in the words of the table.
fn kind(schema: &Value) -> &str {
    let is_map = schema["additionalProperties"].is_object();
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("array"), _) => "list",
        (Some("object"), _) if is_map => "map",
        (Some("integer" | "string"), Some(format)) => format,
        (type_, _) => type_.unwrap_or("none"),
    }
}

/// What ours refuses that the Go controller's takes, or does otherwise.
fn narrower(schema: &Value, is_required: bool, kind_there: &str, facts: &[&str]) -> Vec<String> {
    let fact = |name: &str| facts.iter().find_map(|fact| fact.strip_prefix(name));
    let mut found = Vec::new();
    let mut says = |what: String| found.push(what);
    if kind(schema) != kind_there {
        says(format!("is {} and not {kind_there}", kind(schema)));
    }
    if is_required && fact("required").is_none() {
        says("is required".to_owned());
    }
    if (schema["x-kubernetes-map-type"] == "atomic") != fact("atomic").is_some() {
        says("is atomic or not".to_owned());
    }
    if let Some(default) = fact("default=") {
        let default: Value = serde_json::from_str(default).unwrap();
        if schema["default"] != default {
            says(format!(
                "has the default {} and not {default}",
                schema["default"]
            ));
        }
    }
    if let Some(texts) = schema["enum"].as_array() {
        let ours: BTreeSet<&str> = texts.iter().filter_map(Value::as_str).collect();
        let takes: BTreeSet<&str> =
            fact("takes=").map_or_else(BTreeSet::new, |texts| texts.split('|').collect());
        if takes.is_empty() || !takes.is_subset(&ours) {
            says(format!("takes only {ours:?}"));
        }
    }
    found
}

/// Walks a table; what is wrong, by path.
fn wrong(root: &Value, table: &str, below: &str) -> (usize, Vec<String>) {
    let (mut lines, mut wrong) = (0, Vec::new());
    for line in table.lines().filter(|line| !line.is_empty()) {
        lines += 1;
        let words: Vec<&str> = line.split(' ').collect();
        let [path, kind, facts @ ..] = &words[..] else {
            panic!("{line}");
        };
        let path = format!("{below}{path}");
        match at(root, &path) {
            None => wrong.push(format!("{path} is missing")),
            Some((schema, is_required)) => {
                let found = narrower(schema, is_required, kind, facts);
                wrong.extend(found.iter().map(|what| format!("{path} {what}")));
            }
        }
    }
    (lines, wrong)
}

fn schemas() -> Vec<Value> {
    let crds = conventions::crds().into_iter();
    let schema = |crd| {
        let crd = serde_json::to_value(crd).unwrap();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    };
    crds.map(schema).collect()
}

#[test]
fn all_fields_of_the_go_controller_fit_into_ours() {
    let schemas = schemas();
    let [intent, convention] = &schemas[..] else {
        panic!("two kinds");
    };
    let mut walks = vec![
        (convention, CONVENTION, String::new()),
        (intent, INTENT, String::new()),
    ];
    for template in ["spec.template", "status.template"] {
        walks.push((intent, TEMPLATE, template.to_owned()));
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            walks.push((intent, CONTAINER, format!("{template}.spec.{list}[]")));
        }
    }
    for (root, table, below) in walks {
        let (lines, wrong) = wrong(root, table, &below);
        assert!(lines > 10, "{lines} lines");
        assert_eq!(wrong, Vec::<String>::new());
    }
}

#[test]
fn what_is_narrower_is_found() {
    let root = json!({"required": ["a"], "properties": {
        "a": {"type": "string", "enum": ["x"]},
        "b": {"type": "array", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}},
        "c": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
    }});
    for (line, expected) in [
        ("a string required takes=x", &[][..]),
        ("a string takes=x", &["a is required"]),
        ("a string required", &[r#"a takes only {"x"}"#]),
        ("a string required takes=x|y", &[r#"a takes only {"x"}"#]),
        ("b[] object atomic", &[]),
        ("b[] object", &["b[] is atomic or not"]),
        ("c{} int32", &[]),
        ("c{} int64", &["c{} is int32 and not int64"]),
        ("c map default={}", &["c has the default null and not {}"]),
        ("d string", &["d is missing"]),
        ("b[].x string", &["b[].x is missing"]),
    ] {
        assert_eq!(wrong(&root, line, "").1, expected, "{line}");
    }
}
