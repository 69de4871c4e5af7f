//! Of which objects something is told that happened to a pod.

use controller_kit::events::InvolvedObject;
use controller_kit::webhook::Review;
use serde_json::Value;

use super::entries::text;

/// What of a pod's objects has a name: a pod that a controller makes has none yet while it is
/// admitted.
pub(super) struct Subject {
    /// The controller of the pod.
    pub(super) owner: Option<InvolvedObject>,
    pub(super) pod: Option<InvolvedObject>,
}

impl Subject {
    pub(super) fn of(review: &Review) -> Self {
        let metadata = match &review.object {
            Ok(pod) => &pod["metadata"],
            Err(_) => &Value::Null,
        };
        Self {
            owner: owner(metadata, &review.namespace),
            pod: pod(metadata, review),
        }
    }

    /// Kind and name of the owner, or else of the pod, whose name may be empty.
    pub(super) fn named(&self) -> (String, String) {
        let object = self.owner.as_ref().or(self.pod.as_ref());
        object.map_or_else(
            || ("Pod".to_owned(), String::new()),
            |object| (object.kind.clone(), object.name.clone()),
        )
    }

    /// Both, the owner first.
    pub(super) fn objects(self) -> impl Iterator<Item = InvolvedObject> {
        self.owner.into_iter().chain(self.pod)
    }
}

/// Whoever creates a pod may name any owner, but only in the pod's own namespace: that is where
/// events are told of it.
fn owner(metadata: &Value, namespace: &str) -> Option<InvolvedObject> {
    let references = metadata["ownerReferences"].as_array()?;
    let owner = references.iter().find(|it| it["controller"] == true)?;
    let field = |name: &str| text(&owner[name]).to_owned();
    named(InvolvedObject {
        api_version: field("apiVersion"),
        kind: field("kind"),
        namespace: namespace.to_owned(),
        name: field("name"),
        uid: field("uid"),
    })
}

fn pod(metadata: &Value, review: &Review) -> Option<InvolvedObject> {
    named(InvolvedObject {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: review.namespace.clone(),
        name: text(&metadata["name"]).to_owned(),
        uid: text(&metadata["uid"]).to_owned(),
    })
}

/// The longest name of an object.
pub(super) const LONGEST_NAME: usize = 253;
/// The longest version of an API: a group and the version in it.
const LONGEST_API: usize = LONGEST_NAME + 64;
/// The longest kind, and the longest uid.
const LONGEST_WORD: usize = 63;

/// While a pod is admitted nobody has checked what it says: names of megabytes would wait in the
/// lanes of events.
fn named(object: InvolvedObject) -> Option<InvolvedObject> {
    let is_named = !object.name.is_empty() && !object.kind.is_empty();
    let is_short = object.name.len() <= LONGEST_NAME
        && object.api_version.len() <= LONGEST_API
        && object.kind.len() <= LONGEST_WORD
        && object.uid.len() <= LONGEST_WORD;
    (is_named && is_short).then_some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_to_be_a_name_is_told_to_nobody() {
        let of = |name: &str, uid: &str| {
            let owner = serde_json::json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name,
                "uid": uid, "controller": true});
            let metadata = serde_json::json!({"ownerReferences": [owner]});
            super::owner(&metadata, "dev").map(|it| it.name)
        };
        assert_eq!(of("web", "u"), Some("web".to_owned()));
        assert_eq!(
            of(&"n".repeat(LONGEST_NAME), "u").map(|it| it.len()),
            Some(LONGEST_NAME)
        );
        assert_eq!(of(&"n".repeat(LONGEST_NAME + 1), "u"), None);
        assert_eq!(of("web", &"u".repeat(1 << 20)), None);
    }
}
