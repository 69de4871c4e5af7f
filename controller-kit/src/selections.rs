//! Objects that owners select without stamping them: what Runnables are rendered from, and what rules of templates read.
//!
//! Each selection has a watch: metadata only, of the name or the labels and the namespace that an owner selects by, and no more
//! than [`MOST_WATCHES`]. Whoever is beyond looks slowly; that is whoever's namespace has most of them.
//!
//! They only wake, and tell that nothing has changed: what is believed is read with the owner's own rights. Owners that have
//! one account have the same rights, and read an object once.

mod read;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use realizer::ObjectChoice;
use serde_json::Value;
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;

pub use self::read::NotOne;
use self::read::Reads;
pub(crate) use self::read::{Begun, Matches, Read, Reading};

use crate::cluster::Cluster;
use crate::mapper::{Kind, Served};
use crate::reflect::{Change, Entry, Reflector, selected_metadata, version_of};
use crate::scheduler::{Lane, Scheduler};
use crate::shutdown::Tasks;
use crate::stamped::{ObjectKey, Projection};

/// A watch that is refused is tried anew after this time, if no right changes before.
const REFUSED: Duration = Duration::from_mins(5);

/// Whoever asks for a version or a value waits for a watch that began less than this ago. It lists one object or a few.
const LISTING: Duration = Duration::from_secs(1);

/// Watches at a time; equal selections share one.
const MOST_WATCHES: usize = 256;

/// What is selected: objects of a kind, in one namespace if the kind has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The kind.
    pub kind: Kind,
    /// The namespace, of a kind that has them.
    pub namespace: Option<String>,
    /// Which of them.
    pub choice: ObjectChoice,
}

/// An object that matches: that it is there, and in which version.
struct Match {
    version: u64,
    uid: Box<str>,
}

impl Entry for Match {
    fn build(object: Value) -> Self {
        let uid = object["metadata"]["uid"].as_str();
        Self {
            version: version_of(&object),
            uid: uid.unwrap_or_default().into(),
        }
    }
}

/// What the watch of a selection says.
#[derive(Debug, PartialEq)]
pub(crate) enum WatchAnswer {
    /// What matches.
    Matches(Matches),
    /// The controller may not watch it; what the API server says.
    Refused(String),
    /// Not listed yet, or one watch too many.
    Nothing,
}

/// Of a selected object: its kind, its uid and its version.
type Identity = (Kind, Box<str>, u64);

struct Watch {
    matches: Arc<Reflector<Match>>,
    users: Arc<Mutex<BTreeSet<ObjectKey>>>,
    /// What was read, by the uid of the account whose rights it was read with: hundreds of owners that have one account may
    /// read the same object.
    reads: HashMap<String, Reads>,
    begun: WatchOrigin,
    /// Turns true once the API server has said whether it is refused.
    refused: Arc<signal::Sender<bool>>,
    cancel: CancellationToken,
}

/// How a watch came to be.
struct WatchOrigin {
    /// The namespace whose owner it was started for, to whose share it counts.
    namespace: Arc<str>,
    /// Its number among all that were started.
    number: u64,
    /// When, and how often rights had changed until then.
    at: (Instant, u64),
}

impl Watch {
    fn says(&self) -> WatchAnswer {
        if let Some(why) = self.matches.refused() {
            return WatchAnswer::Refused(why);
        }
        if !self.matches.is_synced() {
            return WatchAnswer::Nothing;
        }
        let matching = self.matches.all().into_iter();
        let matching = matching.map(|(_, it)| (it.uid.clone(), it.version));
        WatchAnswer::Matches(Matches(matching.collect()))
    }

    /// Whether it is refused and what that was due to may be over. Nothing but a new listing tells.
    fn is_worth_another_try(&self, rights_changes: u64) -> bool {
        let (since, rights) = self.begun.at;
        let is_due = rights != rights_changes || since.elapsed() >= REFUSED;
        is_due && self.matches.refused().is_some()
    }
}

/// An owner that selects something.
#[derive(Default)]
struct Follower {
    /// Uid of the account with whose rights it reads.
    account: String,
    selections: Vec<Followed>,
    /// What was asked for up to here is too old for any selection that comes anew.
    outdated: u64,
}

/// A selection of an owner.
struct Followed {
    selection: Selection,
    /// What was asked for up to here is too old for the owner: it has applied something since.
    outdated: u64,
}

impl Follower {
    fn followed(&mut self, selection: &Selection) -> Option<&mut Followed> {
        let mut selections = self.selections.iter_mut();
        selections.find(|it| it.selection == *selection)
    }
}

#[derive(Default)]
struct Known {
    watches: HashMap<Selection, Watch>,
    /// What each owner selects.
    followers: HashMap<ObjectKey, Follower>,
    /// What was read whole and is held: one object may be selected by hundreds.
    objects: HashMap<Identity, Weak<Value>>,
    /// How many watches were started.
    started: u64,
    /// How often something was asked for.
    asked: u64,
}

/// All selections of all owners.
pub struct Selections {
    cluster: Cluster,
    scheduler: Arc<Scheduler>,
    tasks: Tasks,
    known: Mutex<Known>,
}

impl Selections {
    /// Nothing selected yet; `scheduler` is told whom a change concerns.
    pub fn new(cluster: &Cluster, scheduler: &Arc<Scheduler>, tasks: &Tasks) -> Self {
        Self {
            cluster: cluster.clone(),
            scheduler: scheduler.clone(),
            tasks: tasks.clone(),
            known: Mutex::default(),
        }
    }

    /// Has the selection watched for this owner, who has the account with this uid.
    ///
    /// `rights_changes` counts the changes of rights so far: after one, or after a while, a watch that was refused is tried
    /// again.
    pub(crate) fn follow(
        &self,
        owner: &ObjectKey,
        account: &str,
        selection: &Selection,
        served: &Served,
        rights_changes: u64,
    ) -> WatchAnswer {
        let mut known = self.known.lock();
        let follower = known.followers.entry(owner.clone()).or_default();
        if follower.account != account {
            account.clone_into(&mut follower.account);
        }
        if follower.followed(selection).is_none() {
            let outdated = follower.outdated;
            follower.selections.push(Followed {
                selection: selection.clone(),
                outdated,
            });
        }
        let held = known.watches.get(selection);
        let starts = match held {
            Some(held) => held.is_worth_another_try(rights_changes),
            None => known.has_place_for(&owner.namespace, &self.scheduler),
        };
        if starts {
            known.started += 1;
            let held = known.watches.get(selection);
            let begun = WatchOrigin {
                namespace: owner.namespace.clone(),
                number: known.started,
                at: (Instant::now(), rights_changes),
            };
            let watch = self.start(selection, served, begun, held);
            if let Some(refused) = known.watches.insert(selection.clone(), watch) {
                refused.cancel.cancel();
            }
        }
        let Some(watch) = known.watches.get(selection) else {
            return WatchAnswer::Nothing;
        };
        watch.users.lock().insert(owner.clone());
        watch.says()
    }

    /// Nothing that was asked for until now does for the owner.
    pub(crate) fn outdate(&self, owner: &ObjectKey, selection: &Selection) {
        let asked = self.ask();
        let mut known = self.known.lock();
        let follower = known.followers.get_mut(owner);
        if let Some(followed) = follower.and_then(|it| it.followed(selection)) {
            followed.outdated = asked;
        }
    }

    /// The same of all that the owner selects: it may have applied something, and it is not known for which step.
    pub(crate) fn outdate_all(&self, owner: &ObjectKey) {
        let asked = self.ask();
        let mut known = self.known.lock();
        let Some(follower) = known.followers.get_mut(owner) else {
            return;
        };
        follower.outdated = asked;
        for followed in &mut follower.selections {
            followed.outdated = asked;
        }
    }

    /// What was read, or is being read, with the rights of the owner's account when the same objects matched, by whichever owner.
    pub(crate) fn reading(
        &self,
        owner: &ObjectKey,
        selection: &Selection,
        matches: &Matches,
        part: Option<&Projection>,
    ) -> Option<Reading> {
        let mut known = self.known.lock();
        let (_, outdated, reads) = known.reads_for(owner, selection)?;
        reads?.find(outdated, matches, part)
    }

    /// Begins a read with the rights of the owner's account; none if the owner does not follow the selection any more.
    pub(crate) fn begin(
        &self,
        owner: &ObjectKey,
        selection: &Selection,
        matches: &Matches,
        part: Option<&Projection>,
    ) -> Option<Begun> {
        let asked = self.ask();
        let mut known = self.known.lock();
        let account = known.followers.get(owner)?.account.clone();
        let watch = known.watches.get_mut(selection)?;
        let reads = watch.reads.entry(account).or_default();
        Some(reads.begin(asked, matches, part))
    }

    /// Returns once the watch of the selection has an answer of the API server, or should have one.
    pub(crate) async fn wait_for_listing(&self, selection: &Selection) {
        let signals = || {
            let known = self.known.lock();
            let watch = known.watches.get(selection)?;
            let left = LISTING.checked_sub(watch.begun.at.0.elapsed())?;
            let (listed, refused) = (watch.matches.synced_signal(), watch.refused.subscribe());
            Some((listed, refused, left))
        };
        let Some((mut listed, mut refused, left)) = signals() else {
            return;
        };
        tokio::select! {
            _ = listed.wait_for(|it| *it) => {}
            _ = refused.wait_for(|it| *it) => {}
            () = tokio::time::sleep(left) => {}
        }
    }

    /// In which version what matches is there for the owner's account. None where that is not known, or where the owner has
    /// applied something since somebody of its account read it.
    pub(crate) fn version(
        &self,
        owner: &ObjectKey,
        selection: &Selection,
        answer: &WatchAnswer,
    ) -> Option<String> {
        let WatchAnswer::Matches(matches) = answer else {
            return None;
        };
        let mut known = self.known.lock();
        let (account, outdated, reads) = known.reads_for(owner, selection)?;
        let is_known = outdated == 0 || reads.is_some_and(|it| it.has_any_since(outdated));
        is_known.then(|| matches.seen_by(account))
    }

    /// The object that an owner selected, as the others hold it that read it in the same version.
    pub(crate) fn share(&self, selection: &Selection, object: Value) -> Arc<Value> {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let identity = (selection.kind.clone(), uid.into(), version_of(&object));
        let mut known = self.known.lock();
        let held = known.objects.get(&identity).and_then(Weak::upgrade);
        held.unwrap_or_else(|| {
            let object = Arc::new(object);
            known.objects.insert(identity, Arc::downgrade(&object));
            object
        })
    }

    /// Begins a read, or says that what was begun before is too old. Of two the one that was begun later is newer.
    pub(crate) fn ask(&self) -> u64 {
        let mut known = self.known.lock();
        known.asked += 1;
        known.asked
    }

    /// Keeps what was read, with the rights of an account, of a selection that is followed.
    pub(crate) fn keep(&self, selection: &Selection, account: &str, read: Read) {
        let mut known = self.known.lock();
        let Some(watch) = known.watches.get_mut(selection) else {
            return;
        };
        watch
            .reads
            .entry(account.to_owned())
            .or_default()
            .keep(read);
    }

    /// The account may not read it any more.
    pub(crate) fn forget_reads(&self, selection: &Selection, account: &str) {
        let mut known = self.known.lock();
        if let Some(watch) = known.watches.get_mut(selection) {
            watch.reads.remove(account);
        }
    }

    /// The owner selects these, and nothing else (any more).
    pub fn retain(&self, owner: &ObjectKey, selections: &[Selection]) {
        self.known.lock().retain(owner, selections);
    }

    /// Forgets the owners that are gone, and stops the watches that nobody uses.
    pub(crate) fn sweep(&self, is_there: &dyn Fn(&ObjectKey) -> bool) {
        let mut known = self.known.lock();
        known.followers.retain(|owner, _| is_there(owner));
        known.objects.retain(|_, object| object.strong_count() > 0);
        known.watches.retain(|_, watch| {
            let mut users = watch.users.lock();
            users.retain(is_there);
            if users.is_empty() {
                watch.cancel.cancel();
            }
            !users.is_empty()
        });
        let Known {
            watches, followers, ..
        } = &mut *known;
        let in_use: HashSet<&str> = followers.values().map(|it| &*it.account).collect();
        for watch in watches.values_mut() {
            watch.reads.retain(|account, _| in_use.contains(&**account));
        }
    }

    fn start(
        &self,
        selection: &Selection,
        served: &Served,
        begun: WatchOrigin,
        refused: Option<&Watch>,
    ) -> Watch {
        let events = selected_metadata(
            self.cluster.controller().clone(),
            served,
            selection.namespace.as_deref(),
            &selection.choice,
        );
        let matches = refused.map(|refused| Reflector::after(&refused.matches));
        let watch = Watch {
            matches: Arc::new(matches.unwrap_or_default()),
            users: refused.map_or_else(Arc::default, |refused| refused.users.clone()),
            reads: HashMap::new(),
            begun,
            refused: Arc::new(signal::Sender::new(false)),
            cancel: self.tasks.token().child_token(),
        };
        let (scheduler, users) = (self.scheduler.clone(), watch.users.clone());
        let wake = Arc::new(move || wake(&scheduler, &users));
        let (refused, is_refused) = (wake.clone(), watch.refused.clone());
        let following = watch.matches.clone().follow_and_tell(
            events,
            watch.cancel.clone(),
            move |_: Change<'_, Match>| wake(),
            move || {
                is_refused.send_replace(true);
                refused();
            },
        );
        self.tasks.spawn("selection-watch", following);
        watch
    }
}

impl Known {
    /// Of a selection that an owner follows: its account, up to where what was asked for is too old, and what the account has
    /// read.
    fn reads_for(
        &mut self,
        owner: &ObjectKey,
        selection: &Selection,
    ) -> Option<(&str, u64, Option<&Reads>)> {
        let follower = self.followers.get_mut(owner)?;
        let outdated = follower.followed(selection)?.outdated;
        let reads = self.watches.get(selection)?.reads.get(&follower.account);
        Some((&follower.account, outdated, reads))
    }

    /// Whether one more watch may be started for a namespace. Where all are taken, the youngest of the namespace that has
    /// most gives way to one that has fewer; its owners look slowly from now on.
    fn has_place_for(&mut self, namespace: &str, scheduler: &Scheduler) -> bool {
        if self.watches.len() < MOST_WATCHES {
            return true;
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for watch in self.watches.values() {
            *counts.entry(&watch.begun.namespace).or_default() += 1;
        }
        let own = counts.get(namespace).copied().unwrap_or(0);
        let crowd = counts.into_iter().max_by_key(|(_, count)| *count);
        // Not for a namespace that would then have more than the one it takes from.
        let Some((crowd, _)) = crowd.filter(|(_, count)| *count >= own + 2) else {
            return false;
        };
        let of_crowd = self.watches.iter();
        let of_crowd = of_crowd.filter(|(_, watch)| *watch.begun.namespace == *crowd);
        let youngest = of_crowd.max_by_key(|(_, watch)| watch.begun.number);
        let Some(youngest) = youngest.map(|(selection, _)| selection.clone()) else {
            return false;
        };
        if let Some(watch) = self.watches.remove(&youngest) {
            watch.cancel.cancel();
            wake(scheduler, &watch.users);
        }
        true
    }

    fn retain(&mut self, owner: &ObjectKey, selections: &[Selection]) {
        let Some(follower) = self.followers.get_mut(owner) else {
            return;
        };
        follower.selections.retain(|followed| {
            let selection = &followed.selection;
            let stays = selections.contains(selection);
            if !stays {
                // It may come back before anything is read anew.
                follower.outdated = follower.outdated.max(followed.outdated);
                if let Some(watch) = self.watches.get(selection) {
                    watch.users.lock().remove(owner);
                }
            }
            stays
        });
        if follower.selections.is_empty() && follower.outdated == 0 {
            self.followers.remove(owner);
        }
    }
}

fn wake(scheduler: &Scheduler, users: &Mutex<BTreeSet<ObjectKey>>) {
    for user in users.lock().iter() {
        scheduler.wake(user.clone(), Lane::Progress, None);
    }
}

#[cfg(test)]
mod tests;
