//! What made what there is: the ancestry of an owner's outputs, from its status, and from Artifacts where status knows an
//! output only by name. No I/O: a tree in, lines or JSON out.
//!
//! ```text
//!  Past ─┐
//!  Tree ─▶ Trace::of ─┬─▶ render   ─▶ lines for people
//!                     ├─▶ serde    ─▶ JSON for scripts
//!                     └─▶ in_toto  ─▶ a Statement with SLSA provenance
//! ```
//!
//! An output whose template says when it is good has an identity, and knows the identities of the outputs that went into it
//! (docs/behaviour/attribution.md#provenance). An identity that no step has any more is said to be so.

mod in_toto;
mod past;

use std::collections::BTreeSet;

use api_types::{Provenance, ProvenanceInput};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::tree::{Step, Tree, plain, short_hex};

pub use in_toto::in_toto;
pub use past::Past;

/// What made the objects and outputs at the ends of an owner's chain.
///
/// ```
/// use cli::trace::{Trace, render};
/// use cli::tree::Tree;
/// use realizer::Family;
/// use serde_json::json;
///
/// let provenance = |identity: &str, inputs| json!({
///     "identity": identity, "accepted": "2026-01-02T03:04:05Z", "object": {"uid": "u", "generation": 2},
///     "template": "t", "readFrom": "r", "params": "p", "inputs": inputs,
/// });
/// let output = |name: &str, value: &str, provenance| json!([{
///     "name": name, "preview": value, "digest": "sha256:0", "lastTransitionTime": "2026-01-02T03:04:05Z",
///     "current": true, "provenance": provenance,
/// }]);
/// let owner = json!({
///     "metadata": {"namespace": "dev", "name": "app"},
///     "status": {"resources": [
///         {"name": "fetch", "outputs": output("revision", "main@1", provenance("aaaaaaaaaa", json!([])))},
///         {"name": "build", "inputs": [{"name": "fetch"}], "outputs": output("image", "app@1",
///             provenance("bbbbbbbbbb", json!([{"name": "fetch", "identity": "aaaaaaaaaa"}])))},
///     ]},
/// });
/// let tree = Tree::read(Family::SupplyChain, &owner, None)?;
/// let trace = Trace::of(&tree);
/// assert_eq!(trace.ends[0].step, "build");
/// assert_eq!(render(&trace)[1], "└─ build  image = app@1");
/// assert_eq!(render(&trace)[3], "   └─ fetch  revision = main@1");
/// # Ok::<(), cli::tree::TreeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// Kind of the owner.
    pub kind: &'static str,
    /// Namespace of the owner.
    pub namespace: String,
    /// Name of the owner.
    pub name: String,
    /// The steps that no other step takes anything from.
    pub ends: Vec<Made>,
}

/// A step, with what it gave and what that was made from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Made {
    /// Name of the step.
    pub step: String,
    /// `<kind>/<name>` of its template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// `<kind>/<name>` of its object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Name of the Artifact that tells of it, where the step has the outputs no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// What it gave.
    pub outputs: Vec<Given>,
    /// What is known of the making; absent where the template does not say when its outputs are good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub making: Option<Making>,
    /// What went in. Where the making is not known, what goes in now.
    pub inputs: Vec<Ancestor>,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Given {
    /// `url`, `revision`, `image` or `config`.
    pub name: String,
    /// The first line of the value; `<redacted>` when it comes from a Secret.
    pub value: String,
    /// Digest of the whole value as YAML.
    pub digest: String,
}

/// What is known of how outputs were made.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Making {
    /// Identity of the outputs.
    pub identity: String,
    /// When they were accepted.
    #[schemars(extend("format" = "date-time"), with = "String")]
    pub accepted: Time,
    /// Uid of the object that they were read from.
    pub uid: String,
    /// Its generation then, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Digest of the spec of the template then.
    pub template_digest: String,
    /// Digest of the parameters then.
    pub params_digest: String,
    /// Whether they are of what goes into the step now; otherwise they are the last good ones.
    pub current: bool,
}

/// What went into a step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Ancestor {
    /// The output of a step as it is now.
    Known(Box<Made>),
    /// An output that its step does not have any more.
    Gone {
        /// Name of the step.
        step: String,
        /// Identity of the output.
        gone: String,
        /// Why the Artifact that is to keep it tells nothing, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        doubt: Option<&'static str>,
    },
}

/// The JSON Schema (2020-12) of a [`Trace`] as `carto trace -o json` prints it.
pub fn json_schema() -> schemars::Schema {
    schemars::schema_for!(Trace)
}

impl Trace {
    /// Reads the trace from what the owner's status says.
    pub fn of(tree: &Tree) -> Self {
        Self::with(tree, &Past::default())
    }

    /// The same, and of outputs that no step has any more from what is known of the past.
    pub fn with(tree: &Tree, past: &Past) -> Self {
        let taken: BTreeSet<&str> = tree
            .steps
            .iter()
            .flat_map(|step| &step.inputs)
            .map(|input| input.from.as_str())
            .collect();
        let ends = tree.steps.iter();
        let ends = ends.filter(|step| !taken.contains(step.name.as_str()));
        Self {
            kind: tree.kind,
            namespace: tree.namespace.clone(),
            name: tree.name.clone(),
            // A status that a program made up may go round in circles.
            ends: ends
                .map(|step| made(tree, past, step, tree.steps.len()))
                .collect(),
        }
    }
}

/// The outputs that went into others.
fn ancestors(tree: &Tree, past: &Past, provenance: &Provenance, levels: usize) -> Vec<Ancestor> {
    let Some(levels) = levels.checked_sub(1) else {
        return Vec::new();
    };
    let ancestor = |input: &ProvenanceInput| {
        let (name, identity) = (&input.name, &input.identity);
        let mut steps = tree.steps.iter();
        if let Some(step) = steps.find(|step| step.name == *name && gives(step, identity)) {
            return Ancestor::Known(Box::new(made(tree, past, step, levels)));
        }
        let above = |provenance: &Provenance| ancestors(tree, past, provenance, levels);
        match past.made(tree, identity, above) {
            Some(made) => Ancestor::Known(Box::new(made)),
            None => Ancestor::Gone {
                step: name.clone(),
                gone: identity.clone(),
                doubt: past.doubt(identity),
            },
        }
    };
    provenance.inputs.iter().map(ancestor).collect()
}

fn made(tree: &Tree, past: &Past, step: &Step, levels: usize) -> Made {
    let provenance = step.outputs.iter().find_map(|it| it.provenance.as_ref());
    let find = |name: &str| tree.steps.iter().find(|step| step.name == name);
    let mut inputs = Vec::new();
    if let Some(provenance) = provenance {
        inputs = ancestors(tree, past, provenance, levels);
    } else if let Some(levels) = levels.checked_sub(1) {
        let now = step.inputs.iter().filter_map(|input| find(&input.from));
        inputs.extend(now.map(|step| Ancestor::Known(Box::new(made(tree, past, step, levels)))));
    }
    let object = step.object.as_ref().map(|object| {
        let (kind, name) = (object.kind.as_deref(), object.name.as_deref());
        format!("{}/{}", kind.unwrap_or("?"), name.unwrap_or("?"))
    });
    Made {
        step: step.name.clone(),
        template: step.template.clone(),
        object,
        artifact: None,
        outputs: step
            .outputs
            .iter()
            .map(|output| Given {
                name: output.name.clone(),
                value: output.first_line(),
                digest: output.digest.clone(),
            })
            .collect(),
        making: provenance.map(|provenance| {
            let current = step.outputs.iter().all(|it| it.current != Some(false));
            Making::of(provenance, current)
        }),
        inputs,
    }
}

impl Making {
    fn of(provenance: &Provenance, current: bool) -> Self {
        Self {
            identity: provenance.identity.clone(),
            accepted: provenance.accepted.clone(),
            uid: provenance.object.uid.clone(),
            generation: provenance.object.generation,
            template_digest: provenance.template.clone(),
            params_digest: provenance.params.clone(),
            current,
        }
    }
}

/// Whether a step has this output. Where nothing says what made its outputs, they are known by their digest; that of several
/// together is not told by status, so that they are taken to be the ones.
fn gives(step: &Step, identity: &str) -> bool {
    match &step.outputs[..] {
        [] => false,
        [first, ..] if first.provenance.is_some() => step
            .outputs
            .iter()
            .filter_map(|output| output.provenance.as_ref())
            .any(|provenance| provenance.identity == identity),
        [only] => only.digest == identity,
        _ => true,
    }
}

/// The lines, without line ends.
pub fn render(trace: &Trace) -> Vec<String> {
    let mut lines = vec![format!("{} {}/{}", trace.kind, trace.namespace, trace.name)];
    let ends = trace.ends.iter().cloned().map(Box::new);
    let ends: Vec<Ancestor> = ends.map(Ancestor::Known).collect();
    branches(&ends, "", &mut lines);
    lines
}

fn branches(ancestors: &[Ancestor], trunk: &str, lines: &mut Vec<String>) {
    for (index, ancestor) in ancestors.iter().enumerate() {
        let is_last = index + 1 == ancestors.len();
        let (branch, below) = if is_last {
            ("└─", "   ")
        } else {
            ("├─", "│  ")
        };
        let below = format!("{trunk}{below}");
        match ancestor {
            Ancestor::Gone { step, gone, doubt } => lines.push(format!(
                "{trunk}{branch} {}  an output that it has no more: {}{}",
                plain(step),
                short(gone),
                doubt.map_or_else(String::new, |why| format!("; {why}"))
            )),
            Ancestor::Known(made) => {
                lines.push(format!("{trunk}{branch} {}", headline(made)));
                let stem = if made.inputs.is_empty() {
                    "   "
                } else {
                    "│  "
                };
                lines.push(format!("{below}{stem}{}", how(made)));
                branches(&made.inputs, &below, lines);
            }
        }
    }
}

fn headline(made: &Made) -> String {
    let outputs: Vec<String> = made
        .outputs
        .iter()
        .map(|output| format!("{} = {}", output.name, output.value))
        .collect();
    let line = format!("{}  {}", made.step, outputs.join(", "));
    plain(line.trim_end())
}

fn how(made: &Made) -> String {
    let object = made.object.as_deref().unwrap_or("no object");
    let Some(making) = &made.making else {
        let why = if made.outputs.is_empty() {
            ""
        } else {
            "; what made it is not known: its template does not say when its outputs are good"
        };
        return plain(&format!("{object}{why}"));
    };
    let generation = making
        .generation
        .map_or_else(String::new, |it| format!(", generation {it}"));
    if let Some(artifact) = &made.artifact {
        return plain(&format!(
            "{} from Artifact {artifact}{generation}, accepted {}",
            short(&making.identity),
            making.accepted.0
        ));
    }
    let kept = if making.current {
        ""
    } else {
        "; the last good one, not of what goes in now"
    };
    plain(&format!(
        "{} of {object}{generation}, accepted {}{kept}",
        short(&making.identity),
        making.accepted.0
    ))
}

/// Without the key of the installation an identity is empty where a Secret is in it.
fn short(identity: &str) -> String {
    match short_hex(identity) {
        none if none.is_empty() => "?".to_owned(),
        hex => plain(&hex),
    }
}
