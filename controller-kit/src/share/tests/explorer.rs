//! All that can happen to two processes and their successors, step by step: they start, renew, stop, list, lapse, crash and
//! leave in any order, replies are lost, and the record is. In no state do two of them that have not lapsed work on a
//! namespace; and from each,
//! once nothing fails any more, every namespace is worked on by exactly one.

use std::collections::{BTreeSet, HashSet, VecDeque};

use super::super::*;
use super::name;

/// Each of three has one that falls to another one when it goes, and two of them two that fall to different ones.
const NAMESPACES: [&str; 5] = ["", "dev", "prod", "team-1", "team-4"];

/// Rounds of undisturbed renewals within which everything is held.
const ROUNDS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Replica {
    process: u8,
    standing: Standing,
    /// It had its Lease renewed in time.
    is_live: bool,
    /// Where a reconcile may be under way: wherever one could begin since the last stop.
    busy: BTreeSet<&'static str>,
    /// Which record it saw last, of those that were lost.
    epoch: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    record: Option<Record>,
    /// How often the record was lost.
    epoch: u8,
    replicas: [Option<Replica>; 3],
    /// Processes that may still start.
    starts: u8,
    /// Faults that may still happen.
    faults: u8,
    /// Processes that have started, by name.
    processes: [u8; 3],
}

/// What the model is told to do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Claims a newer view before what it loses has stopped.
    ClaimsBeforeItStops,
    /// Takes out whoever it likes, not only who has lapsed.
    TakesOutTheLiving,
    /// Believes at once that nobody was in a record that was lost.
    ForgetsTheUnknown,
    /// Works on all of its claim, whoever else claims it.
    HeedsNobody,
}

fn identity(place: usize) -> Identity {
    name(["a", "b", "c"][place])
}

impl World {
    fn new(starts: u8, faults: u8) -> Self {
        Self {
            record: None,
            epoch: 0,
            replicas: [None, None, None],
            starts,
            faults,
            processes: [0; 3],
        }
    }

    /// Who may be taken out: who has gone, or has lapsed by its own clock.
    fn silent(&self, fault: Fault) -> BTreeSet<Identity> {
        let is_silent = |place: &usize| {
            fault == Fault::TakesOutTheLiving
                || self.replicas[*place].as_ref().is_none_or(|it| !it.is_live)
        };
        let mut silent: BTreeSet<Identity> = (0..3).filter(is_silent).map(identity).collect();
        // Whoever lives and was in the record that was lost has looked since.
        let has_looked = |it: &Replica| !it.is_live || it.epoch == self.epoch;
        if fault == Fault::ForgetsTheUnknown || self.replicas.iter().flatten().all(has_looked) {
            silent.insert(name("?"));
        }
        silent
    }

    fn renew(&self, place: usize, fault: Fault, takes_out: bool, reply_is_lost: bool) -> Self {
        self.renew_and_wait(place, fault, takes_out, (reply_is_lost, false))
    }

    fn renew_and_wait(
        &self,
        place: usize,
        fault: Fault,
        takes_out: bool,
        (reply_is_lost, waits): (bool, bool),
    ) -> Self {
        let mut next = self.clone();
        let Some(mut replica) = next.replicas[place].take() else {
            return next;
        };
        let me = identity(place);
        let process = replica.process.to_string();
        let myself = Myself {
            process: process.clone(),
            ..super::myself(&me)
        };
        let record = match &self.record {
            Some(record) => record.clone(),
            None if self.epoch == 0 => Record::founded(0),
            None => Record::founded_anew(20),
        };
        let is_known = record.replica(&me).is_some_and(|it| it.process == process);
        if !is_known {
            replica.standing.forgotten();
            replica.busy.clear();
        }
        let silent = if takes_out {
            self.silent(fault)
        } else {
            BTreeSet::new()
        };
        let stopped = match fault {
            Fault::ClaimsBeforeItStops => record.awaited_of(&me),
            _ => replica.standing.stopped().cloned(),
        };
        let written = record.renewed(&myself, &silent, stopped.as_ref());
        let written = written.without_beats();
        if !reply_is_lost {
            replica.is_live = true;
            replica.epoch = self.epoch;
            replica.standing.seen(&written, waits);
        }
        next.record = Some(written);
        replica.standing.forget_counts();
        next.replicas[place] = Some(replica);
        next.works(place, fault)
    }

    fn each(&self, place: usize, change: impl FnOnce(&mut Replica)) -> Self {
        let mut next = self.clone();
        if let Some(replica) = &mut next.replicas[place] {
            change(replica);
        }
        next
    }

    /// Wherever a reconcile can begin in this one, one does.
    fn works(mut self, place: usize, fault: Fault) -> Self {
        let newest = self.record.as_ref().map(|record| record.newest().view);
        let Some(replica) = self.replicas[place].as_mut().filter(|it| it.is_live) else {
            return self;
        };
        let works = |namespace: &&&str| match (fault, &newest) {
            (Fault::HeedsNobody, Some(view)) => view.holder(namespace) == Some(&identity(place)),
            _ => replica.standing.held().takes(namespace),
        };
        let begun: Vec<&str> = NAMESPACES.iter().filter(works).copied().collect();
        replica.busy.extend(begun);
        self
    }

    fn steps(&self, fault: Fault) -> Vec<Self> {
        let mut next = Vec::new();
        for place in 0..3 {
            let Some(replica) = &self.replicas[place] else {
                next.extend(self.start(place));
                continue;
            };
            next.push(self.renew(place, fault, false, false));
            next.push(self.renew(place, fault, true, false));
            next.push(self.renew_and_wait(place, fault, true, (false, true)));
            if let Some(listing) = replica.standing.listing() {
                let listed = self.each(place, |it| it.standing.listed(listing));
                next.push(listed.works(place, fault));
            }
            if replica.standing.is_stopping() {
                next.push(self.stop(place));
            }
            next.extend(self.fail(place, fault));
        }
        if self.faults > 0 && self.record.is_some() {
            let mut lost = self.clone();
            lost.record = None;
            lost.epoch += 1;
            lost.faults -= 1;
            next.push(lost);
        }
        next
    }

    fn stop(&self, place: usize) -> Self {
        self.each(place, |it| {
            let held = it.standing.held().clone();
            it.busy.retain(|namespace| held.takes(namespace));
            it.standing.has_stopped();
        })
    }

    fn start(&self, place: usize) -> Option<Self> {
        let mut next = self.clone();
        next.starts = next.starts.checked_sub(1)?;
        // Which of them is there first makes no difference but in names.
        if self.replicas[..place].iter().any(Option::is_none) {
            return None;
        }
        next.processes[place] += 1;
        next.replicas[place] = Some(Replica {
            process: next.processes[place],
            standing: Standing::new(identity(place)),
            is_live: false,
            busy: BTreeSet::new(),
            epoch: self.epoch,
        });
        Some(next)
    }

    fn fail(&self, place: usize, fault: Fault) -> Vec<Self> {
        let Some(faults) = self.faults.checked_sub(1) else {
            return Vec::new();
        };
        let less = |mut world: Self| {
            world.faults = faults;
            world
        };
        let mut crashed = self.clone();
        crashed.replicas[place] = None;
        let mut left = crashed.clone();
        left.record = left.record.map(|record| record.left(&identity(place)));
        let lapsed = self.each(place, |it| {
            it.is_live = false;
            it.standing.lapsed();
            it.busy.clear();
        });
        let unheard = self.renew(place, fault, true, true);
        [crashed, left, lapsed, unheard].map(less).into()
    }

    /// Who works on a namespace, of those that have not lapsed.
    fn workers(&self, namespace: &str) -> usize {
        let works = |it: &&Replica| it.is_live && it.busy.contains(namespace);
        self.replicas.iter().flatten().filter(works).count()
    }

    /// What one round comes to in which each of them renews, stops and lists, and nothing fails.
    fn undisturbed(&self) -> Self {
        let mut world = self.clone();
        for place in 0..3 {
            world = world.renew(place, Fault::None, true, false).stop(place);
            world = world.each(place, |it| {
                if let Some(listing) = it.standing.listing() {
                    it.standing.listed(listing);
                }
            });
            world = world.works(place, Fault::None);
        }
        world
    }

    /// Whether every namespace is worked on by exactly one.
    fn is_served(&self) -> bool {
        NAMESPACES
            .iter()
            .all(|namespace| self.workers(namespace) == 1)
    }
}

/// Whether everything is served after some rounds in which nothing fails; `served` has worlds of which that is known.
fn is_served_in_the_end(world: &World, served: &mut HashSet<World>) -> bool {
    let mut way = vec![world.clone()];
    for _ in 0..ROUNDS {
        let Some(last) = way.last() else { break };
        if served.contains(last) || last.is_served() && last.undisturbed() == *last {
            served.extend(way);
            return true;
        }
        let next = last.undisturbed();
        way.push(next);
    }
    false
}

/// How many states there are, or one in which two work on a namespace.
fn explore(starts: u8, faults: u8, fault: Fault) -> Result<usize, Box<World>> {
    let first = World::new(starts, faults);
    let mut served = HashSet::new();
    let (mut seen, mut ahead) = (HashSet::from([first.clone()]), VecDeque::from([first]));
    while let Some(world) = ahead.pop_front() {
        if NAMESPACES
            .iter()
            .any(|namespace| world.workers(namespace) > 1)
        {
            return Err(Box::new(world));
        }
        if fault == Fault::None && world.replicas.iter().any(Option::is_some) {
            assert!(
                is_served_in_the_end(&world, &mut served),
                "unserved after {world:#?}"
            );
        }
        for next in world.steps(fault) {
            if seen.insert(next.clone()) {
                ahead.push_back(next);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn the_namespaces_fall_to_all_three() {
    let all = View::of((0..3).map(identity));
    let holders: BTreeSet<_> = NAMESPACES.iter().filter_map(|it| all.holder(it)).collect();
    assert_eq!(holders.len(), 3);
}

#[test]
fn no_two_work_on_a_namespace_and_every_one_is_worked_on_again() {
    let states = explore(2, 2, Fault::None).unwrap();
    assert!(states > 5_000, "{states}");
}

#[test]
fn the_explorer_finds_every_planted_fault() {
    for fault in [
        Fault::ClaimsBeforeItStops,
        Fault::TakesOutTheLiving,
        Fault::ForgetsTheUnknown,
        Fault::HeedsNobody,
    ] {
        assert!(explore(3, 1, fault).is_err(), "{fault:?}");
    }
}
