//! A preset as a MutatingAdmissionPolicy, which the API server carries out by itself.
//!
//! What one preset makes of one pod can be said in CEL: what is missing in each list, what is there
//! and means something else, and what follows from that. What presets do with one another, and what
//! is told of it, cannot; each export says what is lost.
//!
//! All is one JSON patch of one mutation: it is carried out as a whole or not at all. `envFrom` is an
//! atomic list, so an apply configuration would replace it, and the order of variables, which
//! `$(NAME)` depends on, is no business of an apply configuration.

mod cel;
mod lists;

use conventions::pod::Part;
use serde_json::{Value, json};

use crate::gate::{EXCLUDE, MIRROR};
use crate::preset::{ConflictPolicy, Mode, Preset};
use crate::target::ContainerType;
use crate::validate::FieldError;
use cel::{literal, text};
use lists::List;

/// The group and version of the objects.
const API_VERSION: &str = "admissionregistration.k8s.io/v1";
/// Namespaces whose pods the webhook leaves alone, too.
const NOT_IN: [&str; 2] = ["kube-system", "carto-system"];
/// The label by which a namespace is known.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// A preset as objects that an API server carries out by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The MutatingAdmissionPolicy.
    pub policy: Value,
    /// The MutatingAdmissionPolicyBinding, without which it is for nobody.
    pub binding: Value,
    /// What the preset does and these do not, a sentence each.
    pub lost: Vec<String>,
}

/// Writes a preset as a MutatingAdmissionPolicy, of Kubernetes 1.36 and later.
///
/// ```
/// use pod_presets::export;
/// use serde_json::json;
///
/// let preset = json!({
///     "apiVersion": "settings.carto.run/v1alpha1",
///     "kind": "PodPreset",
///     "metadata": {"name": "db", "namespace": "dev"},
///     "spec": {"selector": {"matchLabels": {"role": "frontend"}}, "env": [{"name": "DB_PORT", "value": "6379"}]},
/// });
/// let export = export(&preset).unwrap();
/// assert_eq!(export.policy["metadata"]["name"], "podpreset.dev.db");
/// assert_eq!(export.policy["spec"]["matchConstraints"]["objectSelector"], preset["spec"]["selector"]);
/// assert!(export.lost.iter().any(|it| it.contains("another preset")));
/// ```
///
/// # Errors
///
/// What is wrong with the preset, or cannot be had of a policy at all; its author must change it.
pub fn export(object: &Value) -> Result<Export, Vec<FieldError>> {
    let preset = Preset::compile(object)?;
    if preset.mode() == Mode::Audit {
        let why = "a preset in mode Audit changes nothing, so there is nothing to export";
        return Err(vec![FieldError::invalid("spec.mode", &json!("Audit"), why)]);
    }
    if preset.origin().is_namespaced() && preset.namespace().is_empty() {
        let why = "name the namespace whose pods it is for";
        return Err(vec![FieldError::required("metadata.namespace", why)]);
    }
    let lists = lists(&preset);
    if let Some(conflict) = lists.iter().find_map(|list| list.own_conflicts.first()) {
        let why = format!(
            "it conflicts with itself, so no pod gets it: {}",
            conflict.message()
        );
        return Err(vec![FieldError::invalid("spec", &Value::Null, &why)]);
    }
    let name = policy_name(&preset)?;
    let labels = json!({"app.kubernetes.io/managed-by": "carto"});
    let policy = json!({
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            // A pod is created also when a policy fails.
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                    "scope": "Namespaced",
                }],
                "namespaceSelector": namespaces(object, &preset),
                "objectSelector": object["spec"]["selector"],
            },
            "matchConditions": conditions(),
            "variables": variables(&preset, &lists),
            "mutations": [{
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": patch(&preset, &lists)},
            }],
        },
    });
    let binding = json!({
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": labels},
        "spec": {"policyName": name},
    });
    let lost = lost(&preset);
    Ok(Export {
        policy,
        binding,
        lost,
    })
}

/// Names of presets are unique in a group and a namespace, and no part of them has a dot at its end.
fn policy_name(preset: &Preset) -> Result<String, Vec<FieldError>> {
    let kind = preset.origin().kind().to_ascii_lowercase();
    let name = match preset.namespace() {
        "" => format!("{kind}.{}", preset.name()),
        namespace => format!("{kind}.{namespace}.{}", preset.name()),
    };
    if name.len() > LONGEST_NAME {
        let why = "with its namespace it is too long for the name of a policy";
        return Err(vec![FieldError::invalid(
            "metadata.name",
            &json!(name),
            why,
        )]);
    }
    Ok(name)
}

fn namespaces(object: &Value, preset: &Preset) -> Value {
    if preset.origin().is_namespaced() {
        return json!({"matchLabels": {NAME_LABEL: preset.namespace()}});
    }
    let mut selector = object["spec"]["namespaceSelector"].clone();
    let others = json!({"key": NAME_LABEL, "operator": "NotIn", "values": NOT_IN});
    match selector["matchExpressions"].as_array_mut() {
        Some(expressions) => expressions.push(others),
        None => selector["matchExpressions"] = json!([others]),
    }
    selector
}

fn conditions() -> Value {
    let annotations = "object.metadata.annotations";
    let (mirror, exclude) = (text(MIRROR), text(EXCLUDE));
    json!([
        {
            "name": "not-a-mirror-pod",
            "expression": format!("!has({annotations}) || !({mirror} in {annotations})"),
        },
        {
            "name": "not-excluded",
            "expression": format!(
                "!has({annotations}) || !({exclude} in {annotations}) || {annotations}[{exclude}] != 'true'"
            ),
        },
    ])
}

/// What the patch is made of; each may refer to those before it.
fn variables(preset: &Preset, lists: &[List<'_>]) -> Value {
    let inits = "(has(object.spec.initContainers) ? object.spec.initContainers : [])";
    let mut variables = vec![
        (
            "apps",
            format!(
                "object.spec.containers.filter(c, {})",
                targeted(preset, false)
            ),
        ),
        (
            "inits",
            format!("{inits}.filter(c, {})", targeted(preset, true)),
        ),
        (
            "appNames",
            "object.spec.containers.map(c, c.name)".to_owned(),
        ),
        ("initNames", format!("{inits}.map(c, c.name)")),
        ("all", "variables.apps + variables.inits".to_owned()),
    ];
    for list in lists {
        variables.push((list.variable(), list.wishes()));
    }
    variables.push(("blocked", blocked(preset, lists)));
    let variables = variables
        .into_iter()
        .map(|(name, expression)| json!({"name": name, "expression": expression}));
    variables.collect()
}

/// Whether a container `c` is one that the preset is for.
fn targeted(preset: &Preset, is_init: bool) -> String {
    let target = &preset.target;
    let always = "has(c.restartPolicy) && c.restartPolicy == 'Always'";
    let has = |it: ContainerType| target.types().contains(&it);
    let of_type = match (
        is_init,
        has(ContainerType::Init),
        has(ContainerType::Sidecar),
    ) {
        (false, ..) => has(ContainerType::App).to_string(),
        (true, true, true) => "true".to_owned(),
        (true, true, false) => format!("!({always})"),
        (true, false, true) => format!("({always})"),
        (true, false, false) => "false".to_owned(),
    };
    let among = |names: Option<&[String]>| match names {
        None => "true".to_owned(),
        Some(names) => format!("c.name in {}", literal(&json!(names))),
    };
    let (names, exclude) = (among(target.only()), among(target.but()));
    format!("{of_type} && {names} && !({exclude})")
}

fn lists(preset: &Preset) -> Vec<List<'_>> {
    let all = [
        Part::Volume,
        Part::EnvVar,
        Part::VolumeMount,
        Part::EnvFromSource,
    ];
    let all = all.into_iter().map(|part| List::of(preset, part));
    all.filter(|list| !list.is_empty()).collect()
}

/// Whether a conflict keeps all of it out.
fn blocked(preset: &Preset, lists: &[List<'_>]) -> String {
    let policy = preset.conflict_policy();
    let conflicts: Vec<String> = lists.iter().map(List::conflicts).collect();
    match policy {
        ConflictPolicy::Skip | ConflictPolicy::Deny => {
            format!("size(variables.all) > 0 && ({})", conflicts.join(" || "))
        }
        ConflictPolicy::KeepExisting | ConflictPolicy::Override => "false".to_owned(),
    }
}

fn patch(preset: &Preset, lists: &[List<'_>]) -> String {
    let mut patches: Vec<String> = lists.iter().flat_map(List::patches).collect();
    let (key, version) = preset.marker();
    let path = format!(
        "/metadata/annotations/{}",
        key.replace('~', "~0").replace('/', "~1")
    );
    let (key, path, version) = (text(&key), text(&path), text(&version));
    patches.push(format!(
        "(has(object.metadata.annotations) ? [JSONPatch{{op: \"add\", path: {path}, value: {version}}}] : [JSONPatch{{op: \"add\", path: \"/metadata/annotations\", value: {{{key}: {version}}}}}])"
    ));
    format!("variables.blocked ? [] : ({})", patches.join("\n + "))
}

fn lost(preset: &Preset) -> Vec<String> {
    let mut lost: Vec<String> = [
        "A conflict with another preset keeps nothing out: each policy is on its own, and what one adds another finds as if the pod had it.",
        "Policies are not ordered by the age of presets.",
        "Nobody is told of a conflict: no event, no warning, no audit annotation, no status and no metrics.",
        "The marker has the version that the preset had when it was exported, so pods are not reported as outdated when it changes.",
        "A variable or a source of variables that a container has twice is compared each time, and not the last time only.",
        "The API server bounds what a policy may cost: hundreds of entries for dozens of containers are left out, and the pod is created without them.",
    ]
    .map(str::to_owned)
    .into();
    if preset.multi_mount {
        lost.push(
            "A path of a pod with several slashes at its end is another one than without them."
                .to_owned(),
        );
    }
    if preset.conflict_policy() == ConflictPolicy::Deny {
        lost.push("A policy that mutates refuses no pod: instead of conflictPolicy Deny a pod with a conflict gets nothing.".to_owned());
    }
    if preset.target.types().contains(&ContainerType::Ephemeral) {
        lost.push("Containers that are added to running pods get nothing.".to_owned());
    }
    lost
}
