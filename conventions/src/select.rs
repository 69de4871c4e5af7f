//! Which conventions a PodIntent gets, and in which order.

use std::collections::BTreeMap;

use api_types::selector::{CompiledSelector, SelectorError};
use kube_core::ResourceExt;

use crate::convention::{ClusterPodConvention, Priority, SelectorTarget};

/// Labels, by key.
pub type Labels = BTreeMap<String, String>;

/// What decides whether and when a convention is applied; compiled once per version of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    name: String,
    priority: Priority,
    target: SelectorTarget,
    selectors: Vec<CompiledSelector>,
}

/// A selector that Kubernetes does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to convert label selector for ClusterPodConvention {convention:?}: {source}")]
pub struct SelectionError {
    /// Whose selector it is.
    pub convention: String,
    /// What is wrong with it.
    #[source]
    pub source: SelectorError,
}

/// Labels that selectors are matched with. They are those of the PodIntent as its author wrote it: what one convention
/// adds does not select another.
#[derive(Clone, Copy, Debug)]
pub struct Selectable<'l> {
    /// Labels of the PodIntent itself.
    pub intent: &'l Labels,
    /// Labels of its template.
    pub template: &'l Labels,
}

impl Selection {
    /// Reads a convention.
    ///
    /// # Errors
    ///
    /// The first selector that Kubernetes does not accept; whoever wrote the convention must correct it.
    pub fn compile(convention: &ClusterPodConvention) -> Result<Self, SelectionError> {
        let name = convention.name_any();
        let selectors = convention.spec.selectors.iter();
        let compiled: Result<_, _> = selectors.map(CompiledSelector::new).collect();
        let spec = &convention.spec;
        match compiled {
            Ok(selectors) => Ok(Self {
                priority: Priority::from_text(&spec.priority),
                target: SelectorTarget::from_text(&spec.selector_target),
                selectors,
                name,
            }),
            Err(source) => Err(SelectionError {
                convention: name,
                source,
            }),
        }
    }

    /// Name of the convention.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// By what it is selected; nothing if it is not.
    pub fn matched_by(&self, labels: Selectable<'_>) -> Option<MatchedBy> {
        if self.selectors.is_empty() {
            return Some(MatchedBy::Everything);
        }
        let labels = match self.target {
            SelectorTarget::PodTemplateSpec => labels.template,
            SelectorTarget::PodIntent => labels.intent,
        };
        let index = self.selectors.iter().position(|it| it.matches(labels))?;
        Some(MatchedBy::Selector(index))
    }
}

/// Why a convention is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedBy {
    /// It has no selectors.
    Everything,
    /// Its first selector that matches is this one, counted from 0.
    Selector(usize),
}

/// The conventions that are applied, each once: by priority, and those of one priority by name.
///
/// ```
/// use conventions::select::{Selectable, Selection, select};
/// use conventions::{ClusterPodConvention, ClusterPodConventionSpec};
///
/// let of = |name: &str, priority: &str| {
///     let spec = ClusterPodConventionSpec { priority: priority.to_owned(), ..Default::default() };
///     Selection::compile(&ClusterPodConvention::new(name, spec))
/// };
/// let conventions = vec![of("b", "Late"), of("d", ""), of("c", "Normal"), of("e", "Early")];
/// let none = Default::default();
/// let selected = select(&conventions, Selectable { intent: &none, template: &none }).unwrap();
/// let names: Vec<&str> = selected.iter().map(|selected| selected.name()).collect();
/// assert_eq!(names, ["e", "c", "d", "b"]);
/// ```
///
/// # Errors
///
/// One convention whose selectors cannot be read stops all: which templates it is for is not known. Of several the one with
/// the first name is told.
pub fn select<'c>(
    conventions: impl IntoIterator<Item = &'c Result<Selection, SelectionError>>,
    labels: Selectable<'_>,
) -> Result<Vec<&'c Selection>, SelectionError> {
    let (mut selected, mut unreadable) = (Vec::new(), Vec::new());
    for convention in conventions {
        match convention {
            Ok(convention) if convention.matched_by(labels).is_some() => selected.push(convention),
            Ok(_) => {}
            Err(error) => unreadable.push(error),
        }
    }
    if let Some(first) = unreadable.into_iter().min_by_key(|it| &it.convention) {
        return Err(first.clone());
    }
    selected.sort_by_key(|convention| (convention.priority, &convention.name));
    Ok(selected)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn compiled(name: &str, spec: Value) -> Result<Selection, SelectionError> {
        let spec = serde_json::from_value(spec).unwrap();
        Selection::compile(&ClusterPodConvention::new(name, spec))
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let pairs = pairs.iter();
        pairs
            .map(|&(key, value)| (key.into(), value.into()))
            .collect()
    }

    fn names(conventions: &[Result<Selection, SelectionError>]) -> Vec<&str> {
        let none = Labels::new();
        let selectable = Selectable {
            intent: &none,
            template: &none,
        };
        let selected = select(conventions, selectable).unwrap();
        selected.into_iter().map(Selection::name).collect()
    }

    #[test]
    fn each_target_is_matched_with_its_own_labels_positively_and_negatively() {
        let intent = labels(&[("on", "intent"), ("both", "x")]);
        let template = labels(&[("on", "template"), ("both", "x")]);
        let selectable = Selectable {
            intent: &intent,
            template: &template,
        };
        let expression = |operator: &str, key: &str, values: &[&str]| json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]);
        let equal = |value: &str| json!([{"matchLabels": {"on": value}}]);
        for (selectors, on_template, on_intent) in [
            (json!([]), true, true),
            (json!(null), true, true),
            (json!([{}]), true, true),
            (equal("template"), true, false),
            (equal("intent"), false, true),
            (json!([{"matchLabels": {"both": "x"}}]), true, true),
            (json!([{"matchLabels": {"both": "y"}}]), false, false),
            (expression("In", "on", &["template", "z"]), true, false),
            (expression("NotIn", "on", &["template"]), false, true),
            (expression("NotIn", "absent", &["x"]), true, true),
            (expression("Exists", "on", &[]), true, true),
            (expression("Exists", "absent", &[]), false, false),
            (expression("DoesNotExist", "on", &[]), false, false),
            (expression("DoesNotExist", "absent", &[]), true, true),
            // Of several one suffices; within one all must match.
            (
                json!([{"matchLabels": {"on": "z"}}, {"matchLabels": {"on": "template"}}]),
                true,
                false,
            ),
            (
                json!([{"matchLabels": {"on": "template", "both": "y"}}]),
                false,
                false,
            ),
        ] {
            for (target, expected) in [
                (json!("PodTemplateSpec"), on_template),
                (json!(""), on_template),
                (json!("PodIntent"), on_intent),
            ] {
                let selectors = selectors.as_array().cloned().unwrap_or_default();
                let convention = compiled(
                    "a",
                    json!({"selectors": selectors, "selectorTarget": target}),
                )
                .unwrap();
                let matched = convention.matched_by(selectable).is_some();
                assert_eq!(matched, expected, "{selectors:?} {target}");
            }
        }
    }

    #[test]
    fn it_is_told_which_selector_matched() {
        let template = labels(&[("a", "1"), ("b", "2")]);
        let selectable = Selectable {
            intent: &template,
            template: &template,
        };
        let selectors = json!([{"matchLabels": {"a": "0"}}, {"matchLabels": {"b": "2"}}, {"matchLabels": {"a": "1"}}]);
        let convention = compiled("a", json!({"selectors": selectors})).unwrap();
        assert_eq!(
            convention.matched_by(selectable),
            Some(MatchedBy::Selector(1))
        );
        let convention = compiled("a", json!({})).unwrap();
        assert_eq!(
            convention.matched_by(selectable),
            Some(MatchedBy::Everything)
        );
    }

    #[test]
    fn an_unknown_priority_is_a_normal_one() {
        let conventions = [
            compiled("m", json!({"priority": "Normal"})),
            compiled("z", json!({"priority": "Early"})),
            compiled("a", json!({"priority": "Late"})),
            compiled("b", json!({"priority": "early"})),
            compiled("n", json!({"priority": "Sometimes"})),
            compiled("l", json!({})),
        ];
        assert_eq!(names(&conventions), ["z", "b", "l", "m", "n", "a"]);
    }

    #[test]
    fn names_are_ordered_by_their_bytes() {
        let conventions = ["a-b", "a.b", "a", "ab", "a1"].map(|name| compiled(name, json!({})));
        assert_eq!(names(&conventions), ["a", "a-b", "a.b", "a1", "ab"]);
    }

    #[test]
    fn one_selector_that_cannot_be_read_stops_all() {
        let broken = |name: &str| {
            let expression = json!({"key": "a", "operator": "Near"});
            compiled(
                name,
                json!({"selectors": [{"matchExpressions": [expression]}]}),
            )
        };
        let conventions = [compiled("a", json!({})), broken("z"), broken("m")];
        let none = Labels::new();
        let selectable = Selectable {
            intent: &none,
            template: &none,
        };
        let error = select(&conventions, selectable).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"unable to convert label selector for ClusterPodConvention "m": "Near" is not a valid pod selector operator"#
        );
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_list_in_no_way(
            given in proptest::collection::btree_map("[a-e]{1,2}", "Early|Normal|Late|", 0..8),
            seed in any::<usize>(),
        ) {
            let compiled: Vec<_> = given.iter().map(|(name, priority)| compiled(name, json!({"priority": priority}))).collect();
            let mut turned = compiled.clone();
            turned.rotate_left(seed % compiled.len().max(1));
            turned.reverse();
            prop_assert_eq!(names(&compiled), names(&turned));
        }
    }
}
