//! What the Lease says of the replicas that share the owners, and what each of them may make of it. Pure.
//!
//! A replica *claims* what falls to it in one view, and works on nothing else. It takes a namespace of its claim only while
//! no other claims that as well, and it claims less only when it has stopped working on the rest. Every change is one write
//! that is refused if the record has changed since it was read, so of two that claim a namespace at a time one came first,
//! and only that one works on it.
//!
//! ```text
//!             a, b share                c comes: view 2              b has stopped, a has stopped
//!  a: claims view 1 {a b}    ─▶    a: claims view 1          ─▶    a: claims view 2
//!  b: claims view 1                b: claims view 1                b: claims view 2
//!                                  c: claims view 2 {a b c}        c: claims view 2
//!                                  c takes what neither claims     c takes its whole part
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::part::Share;
use super::view::{Identity, View};

/// Replicas that can share the owners. It bounds the record, too: whoever fills it with others keeps nobody away for longer
/// than these are believed.
pub const MOST_REPLICAS: usize = 32;

/// The longest name of a pod.
const LONGEST_IDENTITY: usize = 253;

/// The longest patience, in seconds: that of a Lease.
const LONGEST_PATIENCE: u32 = 24 * 60 * 60;

/// Of a claim to everything.
const EVERYTHING: u64 = 0;

/// Who may still work although nothing is known of it: the record was lost while it was in use.
const UNKNOWN: &str = "?";

/// The replicas and what each of them claims.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The number of the newest view.
    view: u64,
    /// That view, and those that somebody claims under.
    views: BTreeMap<u64, BTreeSet<Identity>>,
    replicas: BTreeMap<Identity, Entry>,
}

/// A replica as it writes itself into the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Myself {
    /// Its name.
    pub name: Identity,
    /// Which process of this name it is.
    pub process: String,
    /// How long others wait for it when it is silent. Whole seconds.
    pub patience: Duration,
}

/// One replica.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Which process of this name.
    pub process: String,
    /// Another number with each renewal.
    pub beat: u64,
    /// For how many seconds it is believed to be there after that.
    lasts: u32,
    /// The view that it claims under.
    claims: u64,
}

/// The number of a view, and who is in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Numbered {
    /// The number.
    pub number: u64,
    /// The view.
    pub view: View,
}

impl Entry {
    /// How long it asked others to wait for it.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(self.lasts.into())
    }
}

impl Record {
    /// Nobody shares anything yet; views are counted on from here.
    pub fn founded(after: u64) -> Self {
        Self {
            view: after + 1,
            views: BTreeMap::new(),
            replicas: BTreeMap::new(),
        }
    }

    /// The same where an earlier record was lost: whoever was in it may work on anything, until it has been silent for long.
    pub fn founded_anew(after: u64) -> Self {
        let mut record = Self::founded(after);
        let unknown = Entry {
            process: UNKNOWN.to_owned(),
            beat: 0,
            lasts: 0,
            claims: EVERYTHING,
        };
        record.replicas.insert(UNKNOWN.into(), unknown);
        record
    }

    /// Reads what stands in the Lease; nothing if that is no record.
    pub fn parse(text: &str) -> Option<Self> {
        let record: Self = serde_json::from_str(text).ok()?;
        record.is_sound().then_some(record)
    }

    /// As it stands in the Lease.
    pub fn text(&self) -> String {
        // Maps with names as keys, and numbers: there is nothing that could not be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn is_sound(&self) -> bool {
        let names = self.replicas.keys().chain(self.views.values().flatten());
        let is_name = |name: &Identity| !name.is_empty() && name.len() <= LONGEST_IDENTITY;
        let is_known = |number: u64| number == EVERYTHING || self.views.contains_key(&number);
        self.replicas.len() <= MOST_REPLICAS
            && self.views.len() <= MOST_REPLICAS + 1
            && self.views.values().all(|view| view.len() <= MOST_REPLICAS)
            && self.view < u64::MAX / 2
            && names.into_iter().all(is_name)
            && self
                .replicas
                .values()
                .all(|entry| is_known(entry.claims) && entry.lasts <= LONGEST_PATIENCE)
    }

    /// The newest view.
    pub fn newest(&self) -> Numbered {
        Numbered {
            number: self.view,
            view: self.seen_under(self.view).unwrap_or_default(),
        }
    }

    /// The replicas, and what they say.
    pub fn replicas(&self) -> impl Iterator<Item = (&Identity, &Entry)> {
        self.replicas.iter()
    }

    /// What a replica says.
    pub fn replica(&self, name: &str) -> Option<&Entry> {
        self.replicas.get(name)
    }

    /// Whether there is no room for one more.
    pub fn is_full(&self) -> bool {
        self.replicas.len() >= MOST_REPLICAS
    }

    /// What one renewal of a replica makes of it: `silent` ones are taken out, the replica comes in if it is not there,
    /// and claims what it was said to have `stopped` at.
    #[must_use]
    pub fn renewed(
        &self,
        me: &Myself,
        silent: &BTreeSet<Identity>,
        stopped: Option<&Numbered>,
    ) -> Self {
        let mut record = self.clone();
        record
            .replicas
            .retain(|name, _| *name == me.name || !silent.contains(name));
        let lasts = u32::try_from(me.patience.as_secs()).unwrap_or(LONGEST_PATIENCE);
        let is_new = !record.replicas.contains_key(&me.name);
        if let Some(entry) = record.replicas.get_mut(&me.name) {
            entry.beat = entry.beat.wrapping_add(1);
            entry.process.clone_from(&me.process);
            entry.lasts = lasts;
            if let Some(Numbered { number, view }) = stopped {
                let view: BTreeSet<Identity> = view.replicas().cloned().collect();
                // The numbers of a record that was lost say nothing here.
                if *number <= record.view
                    && *record.views.entry(*number).or_insert_with(|| view.clone()) == view
                {
                    entry.claims = *number;
                }
            }
        } else {
            let entry = Entry {
                process: me.process.clone(),
                beat: 1,
                lasts,
                claims: EVERYTHING,
            };
            record.replicas.insert(me.name.clone(), entry);
        }
        record.settle(is_new.then_some(&me.name));
        record
    }

    /// The same without the replica, when it has stopped.
    #[must_use]
    pub fn left(&self, me: &str) -> Self {
        let mut record = self.clone();
        record.replicas.remove(me);
        record.settle(None);
        record
    }

    /// Numbers a new view if others share now, puts who came in into it, and drops the views that nobody needs.
    fn settle(&mut self, came: Option<&Identity>) {
        let shares = |(name, entry): (&Identity, &Entry)| {
            (entry.claims != EVERYTHING || came == Some(name)).then(|| name.clone())
        };
        let now: BTreeSet<Identity> = self.replicas.iter().filter_map(shares).collect();
        if self.views.get(&self.view) != Some(&now) {
            self.view += 1;
            self.views.insert(self.view, now);
        }
        if let Some(entry) = came.and_then(|me| self.replicas.get_mut(me)) {
            entry.claims = self.view;
        }
        let claimed: BTreeSet<u64> = self.replicas.values().map(|entry| entry.claims).collect();
        let newest = self.view;
        self.views
            .retain(|number, _| *number == newest || claimed.contains(number));
    }

    /// Renewals that differ in nothing else are the same to whoever looks at all states.
    #[cfg(test)]
    pub(super) fn without_beats(mut self) -> Self {
        for entry in self.replicas.values_mut() {
            entry.beat = 0;
        }
        self
    }

    fn seen_under(&self, number: u64) -> Option<View> {
        let replicas = self.views.get(&number)?;
        Some(View::of(replicas.iter().cloned()))
    }

    /// What a replica may work on as long as the record stays so.
    pub fn share(&self, me: &Identity) -> Share {
        let claim = |entry: &Entry| self.seen_under(entry.claims);
        let Some(mine) = self.replicas.get(me).and_then(claim) else {
            return Share::Nothing;
        };
        let others = self.replicas.iter().filter(|(name, _)| *name != me);
        let claims = others.map(|(name, entry)| claim(entry).map(|view| (name.clone(), view)));
        // One that claims everything leaves nothing.
        let Some(claims): Option<Vec<_>> = claims.collect() else {
            return Share::Nothing;
        };
        let differing = claims.into_iter().filter(|(_, view)| *view != mine);
        Share::of(me, &mine, differing)
    }

    /// The view that a replica is to stop for, if it claims under an older one.
    pub fn awaited_of(&self, me: &str) -> Option<Numbered> {
        let entry = self.replicas.get(me)?;
        let newest = self.newest();
        (entry.claims != newest.number).then_some(newest)
    }
}
