//! The state of a small cluster, and what can happen to it.
//!
//! A state holds what decisions can depend on. Arrival numbers are told apart only by whether they are that of what is in
//! the environment, and hours by whether a validation of it may still take time.

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
    /// What the owner's status says of the arrival in the environment, if it says anything of it: run and check.
    pub(crate) told: Option<[Told; 2]>,
}

/// The object of the deployment step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Environment {
    pub(crate) revision: u8,
    pub(crate) phase: Phase,
    /// Whether an hour has passed since it was written.
    pub(crate) late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Working,
    Done,
    Failed,
}

/// A run, and whether it was started for what is in the environment now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) current: bool,
    pub(crate) phase: Phase,
}

/// An object that is changed in place: its status may speak of an earlier revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Check {
    /// Whether it was written for what is in the environment now.
    pub(crate) current: bool,
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

/// What happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Move {
    Push,
    Source(bool),
    Deployment(Phase),
    Run(Phase),
    Check(Phase),
    Hour,
}

impl World {
    pub(crate) const NEW: Self = Self {
        pushed: 1,
        readable: true,
        environment: None,
        run: None,
        check: None,
        promoted: 0,
        told: None,
    };

    /// What can happen next; deployments flap, ended validations do not.
    pub(crate) fn moves(&self, revisions: u8) -> Vec<Move> {
        let mut moves = Vec::new();
        if self.pushed < revisions {
            moves.push(Move::Push);
        }
        if let Some(environment) = &self.environment {
            if !environment.late {
                moves.push(Move::Hour);
            }
            let phases = [Phase::Done, Phase::Failed].into_iter();
            moves.extend(
                phases
                    .filter(|phase| *phase != environment.phase)
                    .map(Move::Deployment),
            );
        }
        if self.run_phase() == Some(Phase::Working) {
            moves.extend([Move::Run(Phase::Done), Move::Run(Phase::Failed)]);
        }
        if self.check_phase() == Some(Phase::Working) {
            moves.extend([Move::Check(Phase::Done), Move::Check(Phase::Failed)]);
        }
        moves
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
            (Move::Hour, Some(environment), ..) => environment.late = true,
            (Move::Deployment(phase), Some(environment), ..) => environment.phase = phase,
            (Move::Run(phase), _, Some(run), _) => run.phase = phase,
            (Move::Check(phase), _, _, Some(check)) => {
                check.seen = true;
                check.failed = phase == Phase::Failed;
            }
            _ => {}
        }
        world
    }

    /// What the run says of what is in the environment now; none if it was started for something else.
    pub(crate) fn run_phase(&self) -> Option<Phase> {
        let run = self.run.as_ref().filter(|run| run.current)?;
        Some(run.phase)
    }

    pub(crate) fn check_phase(&self) -> Option<Phase> {
        let check = self.check.as_ref().filter(|check| check.current)?;
        Some(check.phase())
    }

    /// The environment was written with a revision.
    pub(crate) fn deploy(&mut self, revision: u8) {
        self.environment = Some(Environment {
            revision,
            phase: Phase::Working,
            late: false,
        });
        self.told = None;
        if let Some(run) = &mut self.run {
            run.current = false;
        }
        if let Some(check) = &mut self.check {
            check.current = false;
        }
    }

    /// The same world with other numbers for its revisions: 1 is in the environment, 2 waits.
    pub(crate) fn renumbered(&self) -> Self {
        let revision = self
            .environment
            .as_ref()
            .map(|environment| environment.revision);
        let mut world = self.clone();
        if let (Some(environment), Some(revision)) = (&mut world.environment, revision) {
            environment.revision = 1;
            world.pushed = 1 + u8::from(self.pushed != revision);
            world.promoted = u8::from(self.promoted == revision);
        }
        world
    }

    /// What a renumbered world is in terms of the one it came from.
    pub(crate) fn in_numbers_of(&self, origin: &Self) -> Self {
        let Some(live) = &origin.environment else {
            return self.clone();
        };
        let back = |number| match number {
            1 => live.revision,
            _ => origin.pushed,
        };
        let mut world = self.clone();
        world.pushed = origin.pushed;
        if let Some(environment) = &mut world.environment {
            environment.revision = back(environment.revision);
        }
        world.promoted = if self.promoted == 0 {
            origin.promoted
        } else {
            back(self.promoted)
        };
        world
    }
}
