//! Which replica a namespace falls to, when these replicas share the owners. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// The name of a replica; no two that are alive have the same.
pub type Identity = Arc<str>;

/// The replicas that share the owners.
///
/// A namespace falls to the replica with the highest digest of both names. A replica that comes takes some from each of the
/// others, and what one had that goes is spread over all that stay: nothing else moves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct View(Arc<BTreeSet<Identity>>);

impl View {
    /// Of these replicas.
    pub fn of(replicas: impl IntoIterator<Item = Identity>) -> Self {
        Self(Arc::new(replicas.into_iter().collect()))
    }

    /// Whose a namespace is. What is in no namespace falls to one of them, too, as if it were in one without a name.
    pub fn holder(&self, namespace: &str) -> Option<&Identity> {
        self.0
            .iter()
            .max_by_key(|replica| (weight(replica, namespace), *replica))
    }

    /// Whether this replica is one of them.
    pub fn contains(&self, replica: &str) -> bool {
        self.0.contains(replica)
    }

    /// Whether all of these are among them.
    pub(super) fn includes(&self, other: &Self) -> bool {
        other.0.is_subset(&self.0)
    }

    /// Their names, in order.
    pub fn replicas(&self) -> impl Iterator<Item = &Identity> {
        self.0.iter()
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Names of namespaces are alike but for a number at the end, and so are those of replicas: sums over their bytes would
/// put neighbours together.
fn weight(replica: &str, namespace: &str) -> [u8; 32] {
    // No name has such a byte, so no two pairs are the same text.
    let both = [replica.as_bytes(), b"\0", namespace.as_bytes()];
    let mut digest = Sha256::new();
    for part in both {
        digest.update(part);
    }
    digest.finalize().into()
}
