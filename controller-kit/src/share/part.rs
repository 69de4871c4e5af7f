//! Which namespaces a replica takes, as a value that can be asked of any namespace. Pure.

use std::collections::BTreeSet;

use super::view::{Identity, View};

/// The namespaces that a replica takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Share {
    /// All of them: nobody else takes any.
    All,
    /// None of them.
    #[default]
    Nothing,
    /// Some of them.
    Part(Part),
}

/// Those that fall to one replica in some views, and to certain others in none of certain views.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Part {
    me: Identity,
    under: BTreeSet<View>,
    against: BTreeSet<(Identity, View)>,
}

impl Share {
    /// What falls to a replica in a view, but for what others may still hold.
    pub(super) fn of(
        me: &Identity,
        view: &View,
        others: impl IntoIterator<Item = (Identity, View)>,
    ) -> Self {
        let part = Part {
            me: me.clone(),
            under: BTreeSet::from([view.clone()]),
            against: others.into_iter().collect(),
        };
        part.simplified()
    }

    /// Whether it has this namespace; the empty name stands for what is in none.
    pub fn takes(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Part(part) => part.takes(namespace),
        }
    }

    /// Among how many replicas all is divided, of which this is the share of one.
    pub(crate) fn replicas(&self) -> usize {
        match self {
            Self::All | Self::Nothing => 1,
            Self::Part(part) => part.under.iter().map(View::len).max().unwrap_or(1),
        }
    }

    /// What both have, which are of the same replica.
    #[must_use]
    pub(super) fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::All, share) | (share, Self::All) => share.clone(),
            (Self::Part(part), Self::Part(other)) => {
                let mut both = part.clone();
                both.under.extend(other.under.iter().cloned());
                both.against.extend(other.against.iter().cloned());
                both.simplified()
            }
        }
    }

    /// Whether others are still to hand over some of what falls to the replica.
    pub(super) fn awaits_others(&self) -> bool {
        matches!(self, Self::Part(part) if !part.against.is_empty())
    }

    /// Whether the other has all that this one has. It may say no where that is so, and then more is listed than is needed.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::All) => true,
            (Self::Part(part), Self::Part(other)) => part.is_within(other),
            (Self::All | Self::Part(_), Self::Nothing) | (Self::All, Self::Part(_)) => false,
        }
    }
}

impl Part {
    fn takes(&self, namespace: &str) -> bool {
        let falls_to = |view: &View, replica: &Identity| view.holder(namespace) == Some(replica);
        self.under.iter().all(|view| falls_to(view, &self.me))
            && !self
                .against
                .iter()
                .any(|(other, view)| falls_to(view, other))
    }

    /// Whether what falls to us in all our views falls to us in this one: we come before all that are in it.
    fn takes_under(&self, view: &View) -> bool {
        let comes_first = || self.under.iter().any(|ours| ours.includes(view));
        self.under.contains(view) || (view.contains(&self.me) && comes_first())
    }

    /// Whether nothing that falls to us in all our views falls to this other one in this view: we come before it in one of
    /// ours, and are in its own.
    fn takes_against(&self, other: &Identity, view: &View) -> bool {
        let is_before = || self.under.iter().any(|ours| ours.contains(other));
        !view.contains(other) || (view.contains(&self.me) && is_before())
    }

    fn is_within(&self, other: &Self) -> bool {
        let is_against = |(replica, view): &(Identity, View)| {
            self.takes_against(replica, view)
                || self.against.contains(&(replica.clone(), view.clone()))
        };
        self.me == other.me
            && other.under.iter().all(|view| self.takes_under(view))
            && other.against.iter().all(is_against)
    }

    /// Whether others have all that there is in one of their views.
    fn is_empty(&self) -> bool {
        let is_taken = |view: &View| {
            let mut replicas = view.replicas();
            replicas.all(|replica| self.against.contains(&(replica.clone(), view.clone())))
        };
        self.against.iter().any(|(_, view)| is_taken(view))
    }

    /// Without what follows from the rest.
    fn simplified(mut self) -> Share {
        if self.is_empty() {
            return Share::Nothing;
        }
        for view in &self.under.clone() {
            let mut rest = self.clone();
            rest.under.remove(view);
            if rest.takes_under(view) {
                self = rest;
            }
        }
        let against = std::mem::take(&mut self.against);
        let needed = against
            .into_iter()
            .filter(|(other, view)| !self.takes_against(other, view));
        self.against = needed.collect();
        Share::Part(self)
    }
}
