//! Defaults of the API server that a rendering cannot stand beside.
//!
//! A Deployment that was applied without a strategy has `strategy.rollingUpdate`, which nobody set. If its template then
//! says `strategy.type: Recreate`, the API server refuses: both together are invalid. What nobody but us has set, and the
//! rendering does not have, may go. An apply takes away only what its manager owns, and a null in it does not remove an
//! object: so we are made the owner of the default first, and the apply that follows gives it up.

use kube_core::Status;
use serde_json::{Map, Value, json};

use crate::managed::is_ours;
use crate::takeover::union;

/// Parts of an object that are never defaults.
const NOT_LOOKED_AT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The fields that a refusal names, e.g. `spec.strategy.rollingUpdate`, but for those of `metadata`: nothing there is a
/// default.
pub fn refused_fields(refusal: &Status) -> Vec<&str> {
    let causes = refusal.details.iter().flat_map(|details| &details.causes);
    causes
        .map(|cause| &*cause.field)
        .filter(|field| !field.is_empty() && *field != "<nil>" && !field.starts_with("metadata"))
        .collect()
}

/// What stands in the way of a rendering.
#[derive(Debug)]
pub struct Obstacles {
    /// The rendering as a merge patch that removes them, to try whether they are what is wrong.
    pub trial: Value,
    /// JSON patch that makes us their owner.
    pub claim: Value,
}

/// Fields of the live object that are beside or within those that the refusal names, are not rendered, and were set by no
/// other manager. One that is named itself may go whoever set it: the rendering wins. `None` if there are none.
pub fn obstacles(
    rendered: &Value,
    live: &Value,
    refused: &[&str],
    field_manager: &str,
) -> Option<Obstacles> {
    let managed = live["metadata"]["managedFields"].as_array();
    let entries = managed.map(Vec::as_slice).unwrap_or_default();
    let fields_of = |counts: &dyn Fn(&&Value) -> bool| {
        let sets = entries.iter().filter(counts);
        let sets = sets.filter_map(|entry| entry.get("fieldsV1")).cloned();
        sets.reduce(union).unwrap_or_default()
    };
    let all = fields_of(&|_| true);
    let others = fields_of(&|entry| !is_ours(entry, field_manager));
    let mut walk = Walk {
        refused: refused.iter().map(|field| Refused::new(field)).collect(),
        path: Vec::new(),
        members: Vec::new(),
        in_list: false,
        found: Vec::new(),
    };
    let owned = Owned {
        all: &all,
        others: &others,
    };
    let mut trial = rendered.clone();
    for (key, rendered) in trial.as_object_mut()? {
        if let Some(live) = live.get(key).filter(|_| !NOT_LOOKED_AT.contains(&&**key)) {
            walk.member(key, rendered, live, owned);
        }
    }
    let entry = json!({
        "manager": field_manager, "operation": "Apply", "apiVersion": rendered["apiVersion"],
        "fieldsType": "FieldsV1", "fieldsV1": walk.found.iter().map(|members| nested(members)).reduce(union)?,
    });
    let claimed = claimed(entries, entry, &walk.found)?;
    let claim = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
        {"op": "add", "path": "/metadata/managedFields", "value": claimed},
    ]);
    Some(Obstacles { trial, claim })
}

/// The managed fields with these in our entry, and in no other. `None` if ours speaks of another version of the kind.
fn claimed(entries: &[Value], mut claim: Value, found: &[Vec<String>]) -> Option<Vec<Value>> {
    let manager = claim["manager"].clone();
    let mut kept = Vec::new();
    for entry in entries {
        let mut entry = entry.clone();
        if is_ours(&entry, manager.as_str()?) {
            if entry["apiVersion"] != claim["apiVersion"] {
                return None;
            }
            entry["fieldsV1"] = union(entry["fieldsV1"].take(), claim["fieldsV1"].take());
            claim = entry;
            continue;
        }
        let members = found.iter().filter(|_| entry["fieldsV1"].is_object());
        for members in members.cloned().collect::<Vec<_>>() {
            remove(&mut entry["fieldsV1"], &members);
        }
        if entry["fieldsV1"]
            .as_object()
            .is_none_or(|fields| !fields.is_empty())
        {
            kept.push(entry);
        }
    }
    kept.push(claim);
    Some(kept)
}

/// The field set of one place.
fn nested(members: &[String]) -> Value {
    members
        .iter()
        .rev()
        .fold(json!({}), |inner, member| json!({member: inner}))
}

/// Takes a place out of a field set, and what is empty then: it would stand for a field of its own.
fn remove(fields: &mut Value, members: &[String]) {
    let (Some(fields), [first, rest @ ..]) = (fields.as_object_mut(), members) else {
        return;
    };
    if let Some(inner) = fields.get_mut(first).filter(|_| !rest.is_empty()) {
        let was_leaf = inner.as_object().is_some_and(Map::is_empty);
        remove(inner, rest);
        if was_leaf || inner.as_object().is_some_and(|inner| !inner.is_empty()) {
            return;
        }
    }
    fields.remove(first);
}

struct Refused {
    exact: String,
    /// Without the places in lists and the keys of maps.
    path: Vec<String>,
}

impl Refused {
    fn new(field: &str) -> Self {
        let mut plain = String::new();
        let mut depth = 0_usize;
        for character in field.chars() {
            match character {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                other if depth == 0 => plain.push(other),
                _ => {}
            }
        }
        Self {
            exact: field.into(),
            path: plain.split('.').map(str::to_owned).collect(),
        }
    }

    fn names(&self, path: &[String]) -> bool {
        self.exact == path.join(".")
    }

    /// Beside it, within it, or around it.
    fn is_near(&self, path: &[String]) -> bool {
        self.path.starts_with(path)
            || path.starts_with(&self.path)
            || self.path.len() == path.len()
                && self.path[..path.len() - 1] == path[..path.len() - 1]
    }
}

/// The part of the managed fields for one place.
#[derive(Clone, Copy)]
struct Owned<'a> {
    all: &'a Value,
    others: &'a Value,
}

impl Owned<'_> {
    fn child(self, key: &str) -> Self {
        Self {
            all: &self.all[key],
            others: &self.others[key],
        }
    }
}

struct Walk {
    refused: Vec<Refused>,
    /// Names of fields.
    path: Vec<String>,
    /// The same among the managed fields.
    members: Vec<String>,
    in_list: bool,
    found: Vec<Vec<String>>,
}

impl Walk {
    fn member(&mut self, key: &str, rendered: &mut Value, live: &Value, owned: Owned<'_>) {
        let name = format!("f:{key}");
        let owned = owned.child(&name);
        self.path.push(key.to_owned());
        self.members.push(name);
        match (rendered, live) {
            // Somebody else set all that is in it.
            _ if owned.others.as_object().is_some_and(Map::is_empty) => {}
            (Value::Object(rendered), Value::Object(live)) => self.object(rendered, live, owned),
            (Value::Array(rendered), Value::Array(live)) => self.list(rendered, live, owned),
            _ => {}
        }
        self.members.pop();
        self.path.pop();
    }

    fn object(
        &mut self,
        rendered: &mut Map<String, Value>,
        live: &Map<String, Value>,
        owned: Owned<'_>,
    ) {
        for (key, live) in live {
            match rendered.get_mut(key) {
                Some(rendered) => self.member(key, rendered, live, owned),
                None if !live.is_null() && self.may_go(key, owned.others) => {
                    rendered.insert(key.clone(), Value::Null);
                    let place = self.members.iter().cloned();
                    self.found.push(place.chain([format!("f:{key}")]).collect());
                }
                None => {}
            }
        }
    }

    fn may_go(&mut self, key: &str, others: &Value) -> bool {
        self.path.push(key.to_owned());
        let free = others.get(format!("f:{key}")).is_none();
        let goes = self.refused.iter().any(|refused| {
            // Which item of a list is meant cannot be told: it is counted in the object as it would have been.
            (free && refused.is_near(&self.path)) || (!self.in_list && refused.names(&self.path))
        });
        self.path.pop();
        goes
    }

    /// Items that have keys; others are one value, and nothing stands beside them.
    fn list(&mut self, rendered: &mut [Value], live: &[Value], owned: Owned<'_>) {
        let outside = std::mem::replace(&mut self.in_list, true);
        for item in rendered.iter_mut().filter_map(Value::as_object_mut) {
            let Some((member, keys)) = member_of(item, owned.all) else {
                continue;
            };
            let live = live.iter().find(|live| has(live, &keys));
            if let Some(live) = live.and_then(Value::as_object) {
                let owned = owned.child(&member);
                self.members.push(member);
                self.object(item, live, owned);
                self.members.pop();
            }
        }
        self.in_list = outside;
    }
}

/// The name of an item among the managed fields, and its keys; those that the rendering leaves out have taken their defaults.
fn member_of(item: &Map<String, Value>, owned: &Value) -> Option<(String, Map<String, Value>)> {
    owned.as_object()?.keys().find_map(|member| {
        let keys: Map<String, Value> = serde_json::from_str(member.strip_prefix("k:")?).ok()?;
        let agree = keys
            .iter()
            .all(|(key, value)| item.get(key).is_none_or(|own| own == value));
        let known = keys.keys().any(|key| item.contains_key(key));
        (agree && known).then(|| (member.clone(), keys))
    })
}

fn has(item: &Value, keys: &Map<String, Value>) -> bool {
    keys.iter().all(|(key, value)| item.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ours(fields: &Value) -> Value {
        json!({"manager": "carto", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": fields})
    }

    fn live(spec: &Value, entries: &[Value]) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "managedFields": entries}, "spec": spec})
    }

    fn mended(rendered: &Value, live: &Value, refused: &[&str]) -> Option<Value> {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": rendered});
        obstacles(&object, live, refused, "carto").map(|found| found.trial["spec"].clone())
    }

    /// The managed fields once the obstacles are ours.
    fn claimed(rendered: &Value, live: &Value, refused: &[&str]) -> Value {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": rendered});
        obstacles(&object, live, refused, "carto").unwrap().claim[1]["value"].take()
    }

    const STRATEGY: &[&str] = &["spec.strategy.rollingUpdate"];

    #[test]
    fn a_default_that_nobody_set_is_nulled_and_those_elsewhere_are_not() {
        let live = live(
            &json!({"replicas": 1, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}}),
            &[ours(&json!({"f:spec": {"f:template": {}}}))],
        );
        assert_eq!(
            mended(&json!({"strategy": {"type": "Recreate"}}), &live, STRATEGY),
            Some(json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}))
        );
        assert_eq!(
            mended(
                &json!({"strategy": {"type": "Recreate"}}),
                &live,
                &["spec.template"]
            ),
            Some(json!({"strategy": {"type": "Recreate"}, "replicas": null})),
            "beside what is refused"
        );
        assert_eq!(
            mended(
                &json!({"strategy": {"type": "Recreate"}}),
                &live,
                &["spec.template.a.b"]
            ),
            None
        );
        assert_eq!(
            mended(&json!({"replicas": 2}), &live, STRATEGY),
            Some(json!({"replicas": 2, "strategy": null})),
            "around what is refused"
        );
    }

    #[test]
    fn what_another_manager_set_goes_only_if_it_is_named() {
        let theirs = json!({"manager": "scaler", "operation": "Update", "apiVersion": "apps/v1",
            "fieldsV1": {"f:spec": {"f:replicas": {}, "f:strategy": {"f:type": {}, "f:rollingUpdate": {"f:maxSurge": {}}}}}});
        let live = live(
            &json!({"replicas": 1, "paused": true, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
            &[ours(&json!({"f:spec": {"f:paused": {}}})), theirs],
        );
        let rendered = json!({"strategy": {"type": "Recreate"}});
        assert_eq!(
            mended(&rendered, &live, STRATEGY),
            Some(json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}))
        );
        assert_eq!(
            mended(&json!({"template": {}}), &live, STRATEGY),
            None,
            "what it names is not all of it"
        );
        assert_eq!(
            mended(&rendered, &live, &["spec.strategy"]),
            Some(json!({"strategy": {"type": "Recreate"}, "paused": null})),
            "what we set before is no foreign field"
        );
    }

    #[test]
    fn defaults_of_list_items_are_found_by_the_keys_of_the_items() {
        let entry = ours(&json!({"f:spec": {"f:volumes": {
            "k:{\"name\":\"a\"}": {".": {}, "f:name": {}}, "k:{\"name\":\"b\"}": {".": {}, "f:name": {}}}}}));
        let live = live(
            &json!({"volumes": [{"name": "b", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]}),
            &[entry],
        );
        assert_eq!(
            mended(
                &json!({"volumes": [{"name": "a", "configMap": {"name": "c"}}, {"name": "new"}]}),
                &live,
                &["spec.volumes[0].configMap"]
            ),
            Some(
                json!({"volumes": [{"name": "a", "configMap": {"name": "c"}, "emptyDir": null}, {"name": "new"}]})
            )
        );
    }

    #[test]
    fn a_claim_adds_to_our_entry_and_takes_from_the_others() {
        let theirs = json!({"manager": "scaler", "operation": "Update", "apiVersion": "apps/v1",
            "fieldsV1": {"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}}, "f:status": {}}});
        let only = json!({"manager": "other", "operation": "Update", "fieldsV1": {"f:spec": {"f:strategy": {"f:rollingUpdate": {}}}}});
        let live = live(
            &json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
            &[ours(&json!({"f:spec": {"f:paused": {}}})), theirs, only],
        );
        let rendered = json!({"strategy": {"type": "Recreate"}});
        let entries = claimed(&rendered, &live, STRATEGY);
        assert_eq!(entries.as_array().unwrap().len(), 2, "{entries}");
        assert_eq!(entries[0]["fieldsV1"], json!({"f:status": {}}));
        assert_eq!(
            entries[1],
            ours(&json!({"f:spec": {"f:paused": {}, "f:strategy": {"f:rollingUpdate": {}}}}))
        );
    }

    #[test]
    fn without_an_entry_of_ours_a_claim_makes_one_and_for_another_version_there_is_none() {
        let spec = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}});
        let rendered = json!({"strategy": {"type": "Recreate"}});
        let entries = claimed(&rendered, &live(&spec, &[]), STRATEGY);
        assert_eq!(
            entries[0]["fieldsV1"],
            json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {}}}})
        );
        let mut older = ours(&json!({"f:spec": {}}));
        older["apiVersion"] = json!("apps/v1beta1");
        assert_eq!(mended(&rendered, &live(&spec, &[older]), STRATEGY), None);
    }

    #[test]
    fn a_map_that_another_manager_owns_whole_is_left_alone() {
        let theirs = json!({"manager": "other", "operation": "Update", "fieldsV1": {"f:spec": {"f:selector": {}}}});
        let live = live(&json!({"selector": {"a": "1", "b": "2"}}), &[theirs]);
        assert_eq!(
            mended(
                &json!({"selector": {"a": "2"}}),
                &live,
                &["spec.selector.b"]
            ),
            None
        );
    }

    #[test]
    fn metadata_and_the_root_are_never_changed() {
        let live = live(&json!({"a": 1}), &[]);
        assert_eq!(
            mended(
                &json!({"b": 1}),
                &live,
                &["metadata.labels", "data", "spec.b.c"]
            ),
            None
        );
    }

    #[test]
    fn only_the_fields_that_a_refusal_names_are_told() {
        let status = |causes: Value| -> Status {
            serde_json::from_value(json!({"code": 422, "details": {"causes": causes}})).unwrap()
        };
        let named = status(
            json!([{"field": "spec.a"}, {"field": "<nil>"}, {"field": "metadata.ownerReferences"}, {"message": "no field"}]),
        );
        assert_eq!(refused_fields(&named), ["spec.a"]);
        assert_eq!(refused_fields(&Status::default()), [] as [&str; 0]);
    }
}
