//! The owners that led to an owner: a step may stamp a Workload, a Deliverable or a Runnable, which stamps in its turn.
//!
//! A template whose object is an owner of its own blueprint would go on for ever. So it is known of each owner how many came
//! before it. That is kept in its status, which nobody but controllers writes, as soon as it has one. Before that an annotation
//! tells, which the API server stored with the owner: whoever forges it makes an owner of his own seem deeper, and none that
//! others have.

use api_types::labels;
use serde_json::Value;

use crate::owner::owner_status::part;

/// The most owners that are kept in mind; of more, the last.
pub const MOST_ANCESTORS: usize = 32;

/// The longest kind and name.
const MOST_CHARS: usize = 300;

/// The kinds of owners.
const OWNERS: [&str; 3] = ["Workload", "Deliverable", "Runnable"];

/// The owner that another one was stamped for, as its controller owner reference says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentRef {
    /// Kind.
    pub kind: Box<str>,
    /// Name; it is in the same namespace.
    pub name: Box<str>,
    /// uid.
    pub uid: Box<str>,
}

impl ParentRef {
    /// Of an owner that was stamped for another one.
    pub fn of(object: &Value) -> Option<Self> {
        let references = object["metadata"]["ownerReferences"].as_array()?;
        let controller = references
            .iter()
            .find(|reference| reference.get("controller") == Some(&Value::Bool(true)))?;
        let text = |field: &str| controller[field].as_str();
        let kind = text("kind")?;
        if !is_of_ours(text("apiVersion")?) || !OWNERS.contains(&kind) {
            return None;
        }
        Some(Self {
            kind: kind.into(),
            name: text("name")?.into(),
            uid: text("uid")?.into(),
        })
    }

    /// As lineages name it.
    pub fn named(&self) -> String {
        named(&self.kind, &self.name)
    }
}

/// An owner as lineages name it.
pub fn named(kind: &str, name: &str) -> String {
    format!("{kind}/{name}").chars().take(MOST_CHARS).collect()
}

/// Whether an object is an owner, so that something may be stamped for it in its turn.
pub fn is_owner(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(is_of_ours)
        && OWNERS.iter().any(|kind| object["kind"] == *kind)
}

/// The owners that led to this one, the first one first, as far as it says so itself: what its status knows, or, as long as it
/// has none, what it was stamped with.
pub fn stamped_for(object: &Value) -> Vec<String> {
    match recorded(object) {
        Some(status) => bounded(part(status, "stampedFor")),
        None => stamped_with(object),
    }
}

/// Whether its status says who came before it; then nothing else is asked. Whoever may write an owner's metadata would stop it
/// for good otherwise, by references that lead from one owner to the next.
pub fn is_recorded(object: &Value) -> bool {
    recorded(object).is_some()
}

/// Its status, if one has been written: every report of a controller says what it is about.
fn recorded(object: &Value) -> Option<&Value> {
    let status = object.get("status")?;
    let says = |field: &&str| status.get(field).is_some_and(|it| !it.is_null());
    ["observedGeneration", "conditions", "stampedFor"]
        .iter()
        .any(says)
        .then_some(status)
}

/// The longer of two; the first if they are equally long, so that it does not change without need.
pub fn longer(one: Vec<String>, other: Vec<String>) -> Vec<String> {
    if other.len() > one.len() { other } else { one }
}

/// What an owner that this lineage led to hands on to the owners that are stamped for it.
pub fn annotation(stamped_for: &[String]) -> String {
    stamped_for.join(",")
}

/// At the most [`MOST_ANCESTORS`].
pub fn bounded(mut stamped_for: Vec<String>) -> Vec<String> {
    let beyond = stamped_for.len().saturating_sub(MOST_ANCESTORS);
    stamped_for.drain(..beyond);
    stamped_for
}

fn stamped_with(object: &Value) -> Vec<String> {
    let Some(parent) = ParentRef::of(object) else {
        return Vec::new();
    };
    let annotation = object["metadata"]["annotations"][labels::STAMPED_FOR].as_str();
    let above = annotation
        .into_iter()
        .flat_map(|text| text.split(','))
        .filter(|name| !name.is_empty())
        .map(|name| name.chars().take(MOST_CHARS).collect());
    bounded(above.chain([parent.named()]).collect())
}

fn is_of_ours(api_version: &str) -> bool {
    let group = api_version.split_once('/').map(|(group, _)| group);
    group == Some(api_types::GROUP)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stamped(annotation: Option<&str>, known: &[&str]) -> Value {
        json!({
            "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
            "metadata": {
                "name": "c", "annotations": {"carto.run/stamped-for": annotation},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"},
                    {"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": "b", "uid": "2", "controller": true},
                ],
            },
            "status": if known.is_empty() { Value::Null } else { json!({"stampedFor": known}) },
        })
    }

    #[test]
    fn an_owner_that_nobody_stamped_has_no_lineage() {
        let plain = json!({"metadata": {"name": "a", "annotations": {"carto.run/stamped-for": "Workload/x"}}});
        assert!(stamped_for(&plain).is_empty(), "it only says so of itself");
        let deployment = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Workload", "name": "b", "uid": "2", "controller": true}]}});
        assert!(stamped_for(&deployment).is_empty());
    }

    #[test]
    fn the_reference_and_what_it_was_stamped_with_say_who_came_before() {
        assert_eq!(stamped_for(&stamped(None, &[])), ["Workload/b"]);
        assert_eq!(
            stamped_for(&stamped(Some("Workload/a,Runnable/r"), &[])),
            ["Workload/a", "Runnable/r", "Workload/b"]
        );
    }

    #[test]
    fn what_status_knows_is_never_made_shorter() {
        let known = ["Workload/a", "Workload/b"];
        assert_eq!(stamped_for(&stamped(None, &known)), known);
        let mut stripped = stamped(None, &known);
        stripped["metadata"] = json!({"name": "c"});
        assert_eq!(stamped_for(&stripped), known);
    }

    #[test]
    fn what_is_written_to_an_owner_that_has_a_status_does_not_make_it_deeper() {
        let known = ["Workload/a", "Workload/b"];
        assert_eq!(stamped_for(&stamped(Some("x,y,z"), &known)), known);
        let mut nobodys = stamped(Some("x,y,z"), &[]);
        nobodys["status"] = json!({"observedGeneration": 1, "conditions": []});
        assert_eq!(stamped_for(&nobodys), [""; 0]);
    }

    #[test]
    fn what_somebody_writes_is_bounded() {
        let long = vec!["n"; 1000].join(",");
        let found = stamped_for(&stamped(Some(&long), &[]));
        assert_eq!(found.len(), MOST_ANCESTORS);
        assert_eq!(found.last().map(String::as_str), Some("Workload/b"));
        let wide = "n".repeat(100_000);
        assert_eq!(stamped_for(&stamped(Some(&wide), &[]))[0].len(), MOST_CHARS);
        let mut shapeless = stamped(None, &[]);
        shapeless["status"] = json!({"stampedFor": 5});
        shapeless["metadata"]["ownerReferences"] = json!({"a": 1});
        assert!(stamped_for(&shapeless).is_empty());
    }
}
