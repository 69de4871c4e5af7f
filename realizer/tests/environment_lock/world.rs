//! The state of a small cluster, and what can happen to it.
//!
//! A state holds what decisions can depend on. No revision is pushed twice, so that a revision stands for its arrival, and
//! hours are told apart only by whether a validation of what is deployed may still take time.

use std::collections::BTreeSet;

/// What a tenant writes as what is in the environment. It was never pushed.
pub(crate) const EVIL: u8 = 99;

/// Everything that outlives a process. Revisions are numbers in the order in which they are pushed; 0 is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The newest revision of the source.
    pub(crate) pushed: u8,
    /// Whether the source can be read.
    pub(crate) readable: bool,
    pub(crate) environment: Option<Environment>,
    /// The newest run of the immutable validation.
    pub(crate) run: Option<Run>,
    /// The object of the mutable validation.
    pub(crate) check: Option<Check>,
    /// The revision that the promoter's object holds.
    pub(crate) promoted: u8,
    /// What the owner's status says of the environment.
    pub(crate) status: Status,
}

/// The object of the deployment step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Environment {
    /// What was submitted last.
    pub(crate) revision: u8,
    pub(crate) phase: Phase,
    /// What the object says of itself: the record of this revision, or nothing.
    pub(crate) said: u8,
    /// Whether somebody else changed what was submitted.
    pub(crate) drifted: bool,
}

/// An entry of `status.environments`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Status {
    pub(crate) deployed: Option<Deployed>,
    pub(crate) arriving: Option<u8>,
    /// What the object said when this was written down.
    pub(crate) disregarded: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Deployed {
    pub(crate) revision: u8,
    /// Whether an hour has passed since.
    pub(crate) late: bool,
    /// The verdicts on it: run and check.
    pub(crate) told: [Told; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Working,
    Done,
    Failed,
}

/// A run, and what it was started for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) of: u8,
    pub(crate) phase: Phase,
}

/// An object that is changed in place: its status may speak of an earlier revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Check {
    /// What it was written for.
    pub(crate) of: u8,
    /// Whether its status is about what it was written for.
    pub(crate) seen: bool,
    /// What its status says, about whatever that is.
    pub(crate) failed: bool,
}

impl Check {
    pub(crate) fn phase(&self) -> Phase {
        match (self.seen, self.failed) {
            (false, _) => Phase::Working,
            (true, false) => Phase::Done,
            (true, true) => Phase::Failed,
        }
    }
}

/// A verdict in status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    Pending,
    Running,
    Succeeded,
    Failed,
    TimedOut,
    Skipped,
}

impl Told {
    pub(crate) fn ends(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// What happens by itself, or by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Move {
    Push,
    Source(bool),
    Deployment(Phase),
    Run(Phase),
    Check(Phase),
    Hour,
    /// A tenant writes into the environment's object what is in it, or takes that out.
    Say(u8),
    /// A tenant changes the environment's object.
    Drift,
}

impl Move {
    /// The same in a world that was renumbered.
    pub(crate) fn renumbered(self, origin: &[u8]) -> Self {
        let rank = |revision: u8| match origin.iter().position(|other| *other == revision) {
            Some(rank) => u8::try_from(rank + 1).unwrap(),
            None => revision,
        };
        match self {
            Self::Say(said) => Self::Say(rank(said)),
            other => other,
        }
    }
}

impl World {
    pub(crate) const NEW: Self = Self {
        pushed: 1,
        readable: true,
        environment: None,
        run: None,
        check: None,
        promoted: 0,
        status: Status {
            deployed: None,
            arriving: None,
            disregarded: None,
        },
    };

    /// What can happen next; deployments flap, ended validations do not.
    pub(crate) fn moves(&self, revisions: u8) -> Vec<Move> {
        let mut moves = Vec::new();
        if self.pushed < revisions {
            moves.push(Move::Push);
        }
        if (self.status.deployed.as_ref()).is_some_and(|deployed| !deployed.late) {
            moves.push(Move::Hour);
        }
        if let Some(environment) = &self.environment {
            let phases = [Phase::Done, Phase::Failed].into_iter();
            moves.extend(
                phases
                    .filter(|phase| *phase != environment.phase)
                    .map(Move::Deployment),
            );
        }
        if self.run.as_ref().map(|run| run.phase) == Some(Phase::Working) {
            moves.extend([Move::Run(Phase::Done), Move::Run(Phase::Failed)]);
        }
        if self.check.as_ref().map(Check::phase) == Some(Phase::Working) {
            moves.extend([Move::Check(Phase::Done), Move::Check(Phase::Failed)]);
        }
        moves
    }

    /// What a tenant can do who may write the environment's object: say nothing, what is not true, what status says, and
    /// what it was about to say; and change what was submitted.
    pub(crate) fn tampering(&self) -> Vec<Move> {
        let Some(environment) = &self.environment else {
            return Vec::new();
        };
        let deployed = self.status.deployed.as_ref();
        let texts = deployed.map(|deployed| deployed.revision);
        let texts = texts.into_iter().chain(self.status.arriving);
        let texts: BTreeSet<u8> = texts.chain([EVIL, 0]).collect();
        let texts = texts.into_iter().filter(|said| *said != environment.said);
        // What is in the object otherwise is not looked at: that both are put back is to be seen one by one.
        if environment.drifted {
            return Vec::new();
        }
        let drift = (environment.said == environment.revision).then_some(Move::Drift);
        texts.map(Move::Say).chain(drift).collect()
    }

    pub(crate) fn after(&self, next: Move) -> Self {
        let mut world = self.clone();
        match (
            next,
            &mut world.environment,
            &mut world.run,
            &mut world.check,
        ) {
            (Move::Push, ..) => world.pushed += 1,
            (Move::Source(readable), ..) => world.readable = readable,
            (Move::Hour, ..) => {
                if let Some(deployed) = &mut world.status.deployed {
                    deployed.late = true;
                }
            }
            (Move::Deployment(phase), Some(environment), ..) => environment.phase = phase,
            (Move::Say(said), Some(environment), ..) => environment.said = said,
            (Move::Drift, Some(environment), ..) => environment.drifted = true,
            (Move::Run(phase), _, Some(run), _) => run.phase = phase,
            (Move::Check(phase), _, _, Some(check)) => {
                check.seen = true;
                check.failed = phase == Phase::Failed;
            }
            _ => {}
        }
        world
    }

    /// What the run says of a revision; none if it was started for something else.
    pub(crate) fn run_phase(&self, revision: u8) -> Option<Phase> {
        let run = self.run.as_ref().filter(|run| run.of == revision)?;
        Some(run.phase)
    }

    pub(crate) fn check_phase(&self, revision: u8) -> Option<Phase> {
        let check = self.check.as_ref().filter(|check| check.of == revision)?;
        Some(check.phase())
    }

    /// What status says of a revision, if that is deployed by it.
    pub(crate) fn deployed(&self, revision: u8) -> Option<&Deployed> {
        let deployed = self.status.deployed.as_ref();
        deployed.filter(|deployed| deployed.revision == revision)
    }

    /// The environment was written with a revision, or with what it should hold already.
    pub(crate) fn deploy(&mut self, revision: u8) {
        let before = self.environment.take();
        let same = before.filter(|before| before.revision == revision);
        self.environment = Some(Environment {
            revision,
            phase: same.map_or(Phase::Working, |same| same.phase),
            said: revision,
            drifted: false,
        });
    }

    /// The same world with other numbers for its revisions, and which each one was before.
    pub(crate) fn renumbered(&self) -> (Self, Vec<u8>) {
        let mut revisions = BTreeSet::new();
        self.clone().each_revision(&mut |revision| {
            revisions.insert(*revision);
        });
        let origin: Vec<u8> = revisions.into_iter().collect();
        let mut world = self.clone();
        world.each_revision(&mut |revision| {
            let rank = origin.iter().position(|other| other == revision).unwrap();
            *revision = u8::try_from(rank + 1).unwrap();
        });
        (world, origin)
    }

    /// What a renumbered world is in terms of the one it came from.
    pub(crate) fn in_numbers_of(&self, origin: &[u8]) -> Self {
        let mut world = self.clone();
        world.each_revision(&mut |revision| *revision = origin[usize::from(*revision) - 1]);
        world
    }

    fn each_revision(&mut self, visit: &mut dyn FnMut(&mut u8)) {
        let mut visit = |revision: &mut u8| {
            if ![0, EVIL].contains(revision) {
                visit(revision);
            }
        };
        visit(&mut self.pushed);
        visit(&mut self.promoted);
        if let Some(environment) = &mut self.environment {
            visit(&mut environment.revision);
            visit(&mut environment.said);
        }
        self.run.iter_mut().for_each(|run| visit(&mut run.of));
        self.check.iter_mut().for_each(|check| visit(&mut check.of));
        let status = &mut self.status;
        if let Some(deployed) = &mut status.deployed {
            visit(&mut deployed.revision);
        }
        status.arriving.iter_mut().for_each(&mut visit);
        status.disregarded.iter_mut().for_each(&mut visit);
    }
}
