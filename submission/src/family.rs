//! Which objects are members of an immutable family, in which order, and which of them is the rendering that is due.
//!
//! Labels, annotations and owner references are written by whoever may create objects in the namespace. So what a member says
//! of itself only orders those of which nothing is known.

use std::collections::BTreeMap;

use api_types::{LabelValue, labels};
use realizer::{KnownRun, Labels};
use serde_json::Value;

use crate::belonging::Annotations;
use crate::identity::contains;

/// Whether an object has the labels of the family. The Go controller leaves the template's name empty for options.
pub fn has_family_labels(held: &BTreeMap<String, String>, family: &Labels) -> bool {
    let has = |key: &str, value: &LabelValue| {
        held.get(key).is_some_and(|present| {
            let is_option = key == labels::CLUSTER_TEMPLATE_NAME && present.is_empty();
            *value == **present || is_option
        })
    };
    family.iter().all(|(key, value)| has(key, value))
}

/// What the owner's status says of the object with this uid, name and creation time.
pub fn known_run<'r>(
    recorded: &'r [KnownRun],
    uid: &str,
    name: &str,
    created: &str,
) -> Option<&'r KnownRun> {
    recorded.iter().find(|run| match &run.uid {
        Some(known) => **known == *uid,
        // Two objects of one name are not created in the same second by chance, and the time is the API server's.
        None => *run.name == *name && run.started.as_deref() == Some(created),
    })
}

/// What a member is ordered by among those of which nothing is known: what it says of itself, then its age.
pub fn claimed_age(annotations: &Annotations, created: &str) -> (u64, i64, String) {
    (
        annotations.sequence,
        annotations.owner_generation,
        created.to_owned(),
    )
}

/// Which members, of those that are there in their order, may be the rendering though nothing is known of them: the newest,
/// and the one that was created last. After a way back to the Go controller these are two: its objects say nothing of
/// themselves, so that ours, which are older, come after them. `created` are their creation times.
///
/// ```
/// use submission::candidates;
///
/// let times = |times: &[&str]| candidates(&times.iter().map(ToString::to_string).collect::<Vec<_>>()).collect::<Vec<_>>();
/// assert_eq!(times(&["2026-01-01", "2026-01-02"]), [1]);
/// assert_eq!(times(&["2026-01-03", "2026-01-02"]), [1, 0]);
/// assert!(times(&[]).is_empty());
/// ```
pub fn candidates(created: &[String]) -> impl Iterator<Item = usize> + use<> {
    let newest = created.len().checked_sub(1);
    let youngest = (0..created.len()).max_by_key(|&place| &created[place]);
    let youngest = youngest.filter(|_| youngest != newest);
    newest.into_iter().chain(youngest)
}

/// A candidate, and what is known of its family: whether it may be the rendering, though nothing that only
/// we can write says so. A takeover runs nothing again.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'n> {
    /// What is known of it: nothing, or the digest of its rendering, which is not known of one with values of a Secret.
    pub known: Option<Option<&'n str>>,
    /// Whether nothing is known of any member, and none is recorded.
    pub nothing_known: bool,
    /// The digest that it claims to be of.
    pub claimed: Option<&'n str>,
}

impl Candidate<'_> {
    /// Whether it is worth a look. One that claims no digest (an object of the Go controller) is, if it may be marked with one.
    pub fn may_be(self, digest: &str, may_mark: bool) -> bool {
        let is_open = match self.known {
            None => self.nothing_known,
            Some(digest) => digest.is_none(),
        };
        is_open && self.claimed.map_or(may_mark, |claimed| claimed == digest)
    }
}

/// Whether the object that was found has this uid, and holds the rendering as it is placed.
pub fn is_rendering(live: &Value, uid: &str, placed: &Value) -> bool {
    live["metadata"]["uid"] == *uid && contains(live, placed)
}
