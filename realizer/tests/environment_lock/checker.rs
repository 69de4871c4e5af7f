//! Breadth-first over all states; the four properties.
//!
//! 1. The environment is never changed under a validation of what is in it, unless that timed out.
//! 2. A revision is promoted only if it is in the environment and all validations of it succeeded.
//! 3. No revision is promoted after a newer one.
//! 4. From every state, if the world goes on and nothing goes wrong any more, the newest revision ends up deployed, judged,
//!    and promoted if it is good; and nobody has to walk but for an event or when the engine asked for it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use crate::shell::{Fault, Shell, Topology, Walked};
use crate::world::{Check, Deployed, Move, Phase, Told, World};

#[expect(
    clippy::struct_excessive_bools,
    reason = "what may happen, each by itself"
)]
pub(crate) struct Checker {
    shell: Shell,
    revisions: u8,
    moves_during_walks: bool,
    source_fails: bool,
    tampers: bool,
    /// Whether worlds that differ only in the numbers of their revisions are walked once.
    renumbers: bool,
    futures: &'static [Future],
    walks: HashMap<WalkKey, Rc<Walked>>,
}

/// A world, and what happens in it before the action of that number.
type WalkKey = (World, Option<(usize, Move)>);

/// What a search came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    pub(crate) promotions: usize,
    /// How often an environment was changed although a validation of it was still running.
    pub(crate) releases_by_time: usize,
}

/// How the world goes on where nothing goes wrong any more.
#[derive(Clone, Copy, Debug)]
enum Future {
    AllSucceed,
    RunsFail,
    DeploymentsFail,
    NothingEnds,
}

/// Before which actions of a walk something else happens: writing the environment, looking at the run, looking at the
/// check, promoting. Between a look and the submission that follows it, a validation has moved as before the look.
const DURING: [usize; 4] = [2, 3, 5, 7];

const FUTURES: [Future; 4] = [
    Future::AllSucceed,
    Future::RunsFail,
    Future::DeploymentsFail,
    Future::NothingEnds,
];

impl Checker {
    pub(crate) fn new(topology: Topology, revisions: u8) -> Self {
        Self {
            shell: Shell::new(topology),
            revisions,
            moves_during_walks: false,
            source_fails: false,
            tampers: false,
            renumbers: true,
            futures: &FUTURES,
            walks: HashMap::new(),
        }
    }

    pub(crate) fn with_moves_during_walks(self) -> Self {
        Self {
            moves_during_walks: true,
            ..self
        }
    }

    /// The source cannot be read now and then.
    pub(crate) fn with_failing_source(self) -> Self {
        Self {
            source_fails: true,
            ..self
        }
    }

    /// A tenant writes the environment's object at any time.
    pub(crate) fn with_tampering(self) -> Self {
        Self {
            tampers: true,
            ..self
        }
    }

    /// Walks every world as it is.
    pub(crate) fn without_renumbering(self) -> Self {
        Self {
            renumbers: false,
            ..self
        }
    }

    /// Does not ask whether there is progress.
    pub(crate) fn without_futures(self) -> Self {
        Self {
            futures: &[],
            ..self
        }
    }

    pub(crate) fn with_fault(mut self, fault: Fault) -> Self {
        self.shell.fault = Some(fault);
        self
    }

    /// Visits every state that can be reached.
    ///
    /// # Errors
    ///
    /// The first violation, with the way to it.
    pub(crate) fn explore(mut self) -> Result<Explored, String> {
        let mut explored = Explored::default();
        let mut came_from: HashMap<World, Option<World>> = HashMap::from([(World::NEW, None)]);
        let mut queue = VecDeque::from([World::NEW]);
        let mut settled: [HashSet<World>; 4] = Default::default();
        while let Some(world) = queue.pop_front() {
            explored.states += 1;
            let told = |violation: String| format!("{violation}\n{}", way_to(&world, &came_from));
            let next = self.successors(&world, &mut explored).map_err(told)?;
            explored.transitions += next.len();
            for (future, settled) in self.futures.iter().zip(&mut settled) {
                self.follow(&world, *future, settled).map_err(told)?;
            }
            for after in next {
                if !came_from.contains_key(&after) {
                    came_from.insert(after.clone(), Some(world.clone()));
                    queue.push_back(after);
                }
            }
        }
        Ok(explored)
    }

    fn successors(&mut self, world: &World, explored: &mut Explored) -> Result<Vec<World>, String> {
        let mut moves = world.moves(self.revisions);
        if self.source_fails {
            moves.push(Move::Source(!world.readable));
        }
        if self.tampers {
            moves.extend(world.tampering());
        }
        let mut next: Vec<World> = moves.iter().map(|&next| world.after(next)).collect();
        let mut walked = vec![self.walk(world, None)];
        if self.moves_during_walks {
            // The owner was read before: a push does not reach the walk.
            for &during in moves.iter().filter(|&&during| during != Move::Push) {
                let actions = DURING.into_iter();
                walked.extend(actions.map(|action| self.walk(world, Some((action, during)))));
            }
        }
        for walked in walked {
            check_walk(world, &walked, explored)?;
            next.extend(walked.cuts.iter().cloned());
            next.push(walked.end.clone());
        }
        Ok(next)
    }

    fn walk(&mut self, world: &World, moved: Option<(usize, Move)>) -> Rc<Walked> {
        if !self.renumbers {
            return Rc::new(self.shell.walk(world, moved));
        }
        let (renumbered, origin) = world.renumbered();
        let moved = moved.map(|(action, moved)| (action, moved.renumbered(&origin)));
        let key = (renumbered, moved);
        if !self.walks.contains_key(&key) {
            let walked = Rc::new(self.shell.walk(&key.0, moved));
            self.walks.insert(key.clone(), walked);
        }
        let walked = &self.walks[&key];
        Rc::new(Walked {
            cuts: walked
                .cuts
                .iter()
                .map(|cut| cut.in_numbers_of(&origin))
                .collect(),
            end: walked.end.in_numbers_of(&origin),
            ..**walked
        })
    }

    /// Follows one future to its end. A process has just been started, so it walks at first.
    fn follow(
        &mut self,
        start: &World,
        future: Future,
        settled: &mut HashSet<World>,
    ) -> Result<(), String> {
        let mut passed = Vec::new();
        let mut world = start.clone();
        loop {
            if settled.contains(&world) {
                break;
            }
            if passed.len() > 60 || passed.contains(&world) {
                return Err(format!(
                    "no progress, {future:?}: it goes in circles at {world:?}"
                ));
            }
            passed.push(world.clone());
            let mut end: Rc<Walked> = self.walk(&world, None);
            // Walking goes on only as long as that is asked for.
            for _ in 0..9 {
                if end.again != Some(Duration::ZERO) && !end.retries {
                    break;
                }
                end = self.walk(&end.end, None);
            }
            let Some(next) = Self::go_on(&end, future) else {
                is_done(&end.end)
                    .map_err(|why| format!("no progress, {future:?}: {why}, at {:?}", end.end))?;
                break;
            };
            world = next;
        }
        settled.extend(passed);
        Ok(())
    }

    /// The event, or the passing of time, that makes the next walk.
    fn go_on(end: &Walked, future: Future) -> Option<World> {
        let world = &end.end;
        let readable = || (!world.readable).then(|| world.after(Move::Source(true)));
        let wanted = match future {
            Future::DeploymentsFail => Move::Deployment(Phase::Failed),
            _ => Move::Deployment(Phase::Done),
        };
        let working = world
            .environment
            .as_ref()
            .is_some_and(|environment| environment.phase == Phase::Working);
        if working {
            return Some(world.after(wanted));
        }
        let run = match future {
            Future::RunsFail => Phase::Failed,
            _ => Phase::Done,
        };
        if !matches!(future, Future::NothingEnds) {
            if world.run.as_ref().map(|run| run.phase) == Some(Phase::Working) {
                return Some(world.after(Move::Run(run)));
            }
            if world.check.as_ref().map(Check::phase) == Some(Phase::Working) {
                return Some(world.after(Move::Check(Phase::Done)));
            }
        }
        let waits = (world.status.deployed.as_ref()).is_some_and(|deployed| !deployed.late);
        // Last of all: a source that cannot be read must not keep what is deployed from being judged.
        let hour = end.again.filter(|_| waits).map(|_| world.after(Move::Hour));
        hour.or_else(readable)
    }
}

fn check_walk(world: &World, walked: &Walked, explored: &mut Explored) -> Result<(), String> {
    let mut before = world;
    for after in walked.cuts.iter().chain([&walked.end]) {
        check(before, after, explored)
            .map_err(|violation| format!("{violation}\nbefore: {before:?}\nafter: {after:?}"))?;
        before = after;
    }
    Ok(())
}

fn check(before: &World, after: &World, explored: &mut Explored) -> Result<(), String> {
    if let (Some(old), Some(new)) = (&before.environment, &after.environment)
        && old.revision != new.revision
    {
        let phases = [
            before.run_phase(old.revision),
            before.check_phase(old.revision),
        ];
        let running = phases.contains(&Some(Phase::Working));
        let deployed = before.deployed(old.revision);
        let late = deployed.is_some_and(|deployed| deployed.late);
        if running && !late {
            return Err("changed under a running validation".to_owned());
        }
        // Of what status does not call deployed, no validation has begun, and none need.
        let judged = deployed.is_none_or(|deployed| has_verdicts(phases, deployed));
        if !late && !judged {
            return Err("changed before every validation had a verdict".to_owned());
        }
        explored.releases_by_time += usize::from(running);
        if new.revision <= old.revision {
            return Err("an older revision was deployed".to_owned());
        }
    }
    if before.promoted != after.promoted {
        explored.promotions += 1;
        let deployed = after
            .environment
            .as_ref()
            .map(|environment| environment.revision);
        let phases = [
            after.run_phase(after.promoted),
            after.check_phase(after.promoted),
        ];
        let good = phases == [Some(Phase::Done); 2];
        if deployed != Some(after.promoted) || !good {
            return Err("promoted unvalidated".to_owned());
        }
        if after.promoted < before.promoted {
            return Err("promoted after a newer one".to_owned());
        }
    }
    Ok(())
}

/// Whether each validation has ended, or status says that it will not begin.
fn has_verdicts(phases: [Option<Phase>; 2], deployed: &Deployed) -> bool {
    (0..2).all(|which| match phases[which] {
        Some(Phase::Working) => false,
        Some(Phase::Done | Phase::Failed) => true,
        None => deployed.told[which] == Told::Skipped,
    })
}

/// What a world must come to in which nothing happens any more.
fn is_done(world: &World) -> Result<(), &'static str> {
    let Some(environment) = &world.environment else {
        return Err("nothing is deployed");
    };
    if environment.revision != world.pushed {
        return Err("the newest revision is not deployed");
    }
    if environment.said != world.pushed || environment.drifted {
        return Err("what somebody else changed is not put back");
    }
    let told = world.deployed(world.pushed).map(|deployed| deployed.told);
    let Some(told) = told.filter(|told| told.iter().all(|told| told.ends())) else {
        return Err("a validation has no verdict");
    };
    let good = environment.phase == Phase::Done && told == [Told::Succeeded; 2];
    if good && world.promoted != world.pushed {
        return Err("what is good is not promoted");
    }
    Ok(())
}

fn way_to(world: &World, came_from: &HashMap<World, Option<World>>) -> String {
    let mut way = vec![format!("{world:?}")];
    let mut at = world;
    while let Some(Some(before)) = came_from.get(at) {
        way.push(format!("{before:?}"));
        at = before;
    }
    way.reverse();
    way.join("\n-> ")
}
