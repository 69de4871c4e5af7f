//! Breadth-first over all states; the six properties.
//!
//! 1. Nothing that the tenant asked for is asked of a later step, or deployed.
//! 2. No output is attributed to inputs that did not make it, and no two outputs have one identity.
//! 3. A chain that was good once always has something to deploy.
//! 4. From every state, if the world goes on and nothing goes wrong any more, the newest revision ends up deployed, and
//!    nothing is left to do. Where updates wait, an older one may be deployed, if status says that the newest failed.
//! 5. Where updates wait: none takes the place of one that is neither good nor failed; what a good one came to is in the
//!    status when another takes its place; and none is applied that the status does not tell to be.
//! 6. What was handed on is not taken back: no step is given an output anew that another one has replaced, unless what makes
//!    it reports it again. (Where updates wait, an older one may be applied after a newer one that failed.)

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use fastrand::Rng;
use serde_json::Value;

use crate::shell::{Compares, Fault, Shell, Walked};
use crate::world::{Move, Ready, Resource, Slot, World};

pub(crate) struct Checker {
    shell: Shell,
    revisions: u8,
    changes: u8,
    tenant: Tenant,
    crashes: bool,
    /// Whether all ends well.
    ends_well: bool,
    /// Whether the watch shows everything at once.
    shows_at_once: bool,
    walks: HashMap<World, Rc<Walked>>,
    /// What each identity is the identity of.
    identities: HashMap<String, String>,
    /// Worlds from which the chain is known to come to its end.
    settled: HashSet<World>,
}

/// What the tenant may do.
struct Tenant {
    /// How often he writes,
    writes: u8,
    /// and what to.
    to: &'static [Slot],
    /// Whether he writes annotations and labels, too.
    forges_marks: bool,
}

/// What a search came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    /// How often something else was deployed.
    pub(crate) deployed: usize,
    /// How often an output that is not current was handed on.
    pub(crate) kept: usize,
    /// How often an update waited.
    pub(crate) waited: usize,
}

/// How a state was come to.
#[derive(Clone, Debug)]
#[expect(dead_code, reason = "read by whoever reads what is wrong")]
enum Step {
    Move(Move),
    Walk,
    CutOff(usize),
}

/// The longest way to rest, in rounds of controllers and walks.
const ROUNDS: usize = 30;

impl Checker {
    pub(crate) fn new(revisions: u8) -> Self {
        Self {
            shell: Shell::new(),
            revisions,
            changes: 0,
            tenant: Tenant {
                writes: 0,
                to: &Slot::ALL,
                forges_marks: false,
            },
            crashes: false,
            ends_well: false,
            shows_at_once: false,
            walks: HashMap::new(),
            identities: HashMap::new(),
            settled: HashSet::new(),
        }
    }

    pub(crate) fn with_world_changes(self, changes: u8) -> Self {
        Self { changes, ..self }
    }

    /// A tenant writes so often.
    pub(crate) fn with_tampering(mut self, writes: u8) -> Self {
        self.tenant.writes = writes;
        self
    }

    /// As [`Checker::with_tampering`], of the first resource only.
    pub(crate) fn with_tampering_at_the_source(mut self, writes: u8) -> Self {
        self.tenant.to = &[Slot::Build];
        self.with_tampering(writes)
    }

    /// The watch does not lag.
    pub(crate) fn without_lag(self) -> Self {
        Self {
            shows_at_once: true,
            ..self
        }
    }

    /// No resource fails.
    pub(crate) fn without_failures(self) -> Self {
        Self {
            ends_well: true,
            ..self
        }
    }

    /// A walk is cut off after any of its writes.
    pub(crate) fn with_crashes(self) -> Self {
        Self {
            crashes: true,
            ..self
        }
    }

    /// The tenant sets a field that we do not, or removes it, so often; both resources refuse that.
    pub(crate) fn with_foreign_fields(mut self, tampering: u8) -> Self {
        self.shell.refuse();
        self.with_tampering(tampering)
    }

    /// What the tenant writes may be annotations and labels, too.
    pub(crate) fn with_forged_marks(mut self) -> Self {
        self.tenant.forges_marks = true;
        self
    }

    /// Updates of both resources wait.
    pub(crate) fn with_waiting(mut self) -> Self {
        self.shell.wait();
        self
    }

    /// Both resources are good by a rule that compares fields, and the tenant asks for another builder so often.
    pub(crate) fn comparing(mut self, rule: Compares, tampering: u8) -> Self {
        self.shell.compare(rule);
        self.with_tampering(tampering)
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
        let beginning = self.shell.beginning();
        let mut explored = Explored::default();
        let mut came_from = HashMap::from([(beginning.clone(), None)]);
        let mut queue = VecDeque::from([beginning]);
        while let Some(world) = queue.pop_front() {
            explored.states += 1;
            let told = |violation: String| format!("{violation}\n{}", way_to(&world, &came_from));
            let next = self.successors(&world).map_err(told)?;
            explored.transitions += next.len();
            for (step, next) in next {
                if came_from.contains_key(&next) {
                    continue;
                }
                came_from.insert(next.clone(), Some((world.clone(), step)));
                self.check_step(&world, &next, &mut explored)
                    .map_err(|violation| format!("{violation}\n{}", way_to(&next, &came_from)))?;
                queue.push_back(next);
            }
        }
        Ok(explored)
    }

    /// Follows so many ways of so many steps, chosen by lot: where there are too many states to visit them all.
    ///
    /// # Errors
    ///
    /// The first violation, with the way to it.
    pub(crate) fn sample(mut self, ways: usize, steps: usize) -> Result<Explored, String> {
        // The same ways each time: a violation can be looked at.
        let mut lot = Rng::with_seed(1);
        let mut explored = Explored::default();
        for _ in 0..ways {
            let mut world = self.shell.beginning();
            let mut way = Vec::new();
            for _ in 0..steps {
                let told =
                    |violation: String| format!("{violation}\nafter: {way:?}\nin: {world:?}");
                let mut next = self.successors(&world).map_err(told)?;
                explored.transitions += next.len();
                let (step, next) = next.swap_remove(choose(&mut lot, &next));
                way.push(step);
                if next == world {
                    continue;
                }
                let told = |violation: String| format!("{violation}\nafter: {way:?}\nin: {next:?}");
                self.check_step(&world, &next, &mut explored)
                    .map_err(told)?;
                explored.states += 1;
                world = next;
            }
            self.forget();
        }
        Ok(explored)
    }

    /// What was found out of single states, of which each way has its own.
    fn forget(&mut self) {
        const MANY: usize = 20_000;
        if self.walks.len() + self.settled.len() > MANY {
            self.walks.clear();
            self.settled.clear();
        }
    }

    /// The properties of a step to another state, and of that.
    fn check_step(
        &mut self,
        before: &World,
        after: &World,
        explored: &mut Explored,
    ) -> Result<(), String> {
        explored.deployed += usize::from(after.deployed != before.deployed);
        if self.shell.waits {
            explored.waited += self.check_updates(before, after)?;
        }
        explored.kept += self.check(after)?;
        self.comes_to_rest(after)
    }

    fn successors(&mut self, world: &World) -> Result<Vec<(Step, World)>, String> {
        let mut next = Vec::new();
        for it in self.moves(world) {
            next.push((Step::Move(it), self.moved(world, it)));
        }
        let walked = self.walked(world);
        if self.had_output(world) && !walked.deploys {
            return Err("the chain was good once, and there is nothing to deploy".to_owned());
        }
        if let Some(text) = walked.taken_back {
            let text = self.shell.texts.text(text);
            return Err(format!("something newer than [{text}] is taken back"));
        }
        let last = walked.after.len() - 1;
        for (number, after) in walked.after.iter().enumerate() {
            let step = if number == last {
                Step::Walk
            } else {
                Step::CutOff(number)
            };
            if number == last || self.crashes {
                next.push((step, after.clone()));
            }
        }
        Ok(next)
    }

    fn moves(&self, world: &World) -> Vec<Move> {
        let mut moves = Vec::new();
        if world.revision < self.revisions {
            moves.push(Move::Push);
        }
        if world.outside < self.changes {
            moves.push(Move::Change);
        }
        if self.crashes && world.told {
            moves.push(Move::Restart);
        }
        for slot in Slot::ALL {
            let Some(held) = &world.held[slot as usize] else {
                continue;
            };
            if world.may_begin(slot) {
                moves.push(Move::Begin(slot));
            }
            if world.work(slot).is_some() {
                moves.push(Move::End(slot, true));
                moves.extend((!self.ends_well).then_some(Move::End(slot, false)));
            }
            let stands = self.shell.fault == Some(Fault::WatchStands);
            if world.seen[slot as usize] != world.held[slot as usize] && !stands {
                moves.push(Move::Show(slot));
            }
            if world.tampered < self.tenant.writes && self.tenant.to.contains(&slot) {
                let (refuses, compares) = (self.shell.refuses, self.shell.compares.is_some());
                moves.push(match (refuses, held.is_ours()) {
                    (true, _) => Move::SetForeign(slot),
                    (false, _) if compares => Move::Rebuild(slot),
                    (false, true) => Move::Tamper(slot),
                    (false, false) => Move::Restore(slot),
                });
                if self.tenant.forges_marks && !held.has_forged_marks {
                    moves.push(Move::ForgeMarks(slot));
                }
            }
        }
        moves
    }

    fn moved(&mut self, world: &World, it: Move) -> World {
        let shell = &mut self.shell;
        let mut world = world.after(it, &mut |slot, work| shell.made(slot, work));
        if self.shows_at_once {
            world.seen.clone_from(&world.held);
        }
        world
    }

    fn walked(&mut self, world: &World) -> Rc<Walked> {
        if let Some(walked) = self.walks.get(world) {
            return Rc::clone(walked);
        }
        let walked = Rc::new(self.shell.walk(world));
        self.walks.insert(world.clone(), Rc::clone(&walked));
        walked
    }

    fn had_output(&self, world: &World) -> bool {
        let status = self.shell.status(world);
        output(&status, "pack", 0).is_some_and(|output| !output["value"].is_null())
    }

    /// The properties of a state. Returns how many outputs in it are not current.
    fn check(&mut self, world: &World) -> Result<usize, String> {
        let texts = &self.shell.texts;
        let asked = world.held[Slot::Pack as usize].as_ref();
        let asked = asked.map(|held| held.rendered.0);
        for text in [asked, world.deployed].into_iter().flatten() {
            let text = texts.text(text);
            if text.contains("evil") {
                return Err(format!("[{text}] of the tenant goes downstream"));
            }
        }
        let status = self.shell.status(world);
        let mut kept = 0;
        for (step, place) in [("fetch", 1), ("build", 0), ("pack", 0)] {
            let output = output(&status, step, place);
            if let Some(output) = output.filter(|output| !output["value"].is_null()) {
                kept += usize::from(output["current"] == false);
                self.attributed(step, output)?;
            }
        }
        Ok(kept)
    }

    /// The fifth property. Returns how many updates wait.
    fn check_updates(&self, before: &World, after: &World) -> Result<usize, String> {
        let mut waiting = 0;
        let (status, new_status) = (self.shell.status(before), self.shell.status(after));
        for slot in Slot::ALL {
            let name = slot.name();
            let (updates, now) = (updates(&status, name), updates(&new_status, name));
            waiting += now["waiting"].as_array().map_or(0, Vec::len);
            if !updates.is_null() && updates["applied"]["number"] != now["applied"]["number"] {
                let came = output(&new_status, name, 0);
                self.has_ended(before, slot, came.map(|it| &it["value"]))?;
            }
            let index = slot as usize;
            let (held, new) = (&before.held[index], &after.held[index]);
            let (Some(held), Some(new)) = (held, new) else {
                continue;
            };
            let text = self.shell.texts.text(new.rendered.0);
            let told = updates["applied"]["rendering"].as_str().unwrap_or(text);
            if new.rendered.0 != held.rendered.0 && !told.contains(text) {
                return Err(format!(
                    "[{text}] of [{name}] is not what is to be applied: {told}"
                ));
            }
        }
        Ok(waiting)
    }

    /// Another update takes the place of the one in this resource; `came` is what status says then.
    fn has_ended(&self, world: &World, slot: Slot, came: Option<&Value>) -> Result<(), String> {
        let seen = world.seen[slot as usize].as_ref();
        // What others have had a hand in is no success, and keeps no update away.
        if seen.is_some_and(|seen| seen.has_foreign) {
            return Ok(());
        }
        // What it came to was told before a tenant wrote to it, and there is nothing else to wait for.
        let name = slot.name();
        let status = self.shell.status(world);
        let was_told = output(&status, name, 0).is_some_and(|output| output["current"] == true);
        if was_told && seen.is_some_and(|seen| !seen.is_ours()) {
            return Ok(());
        }
        let seen = seen.filter(|seen| seen.is_ours());
        if self.shell.compares.is_some() {
            return has_ended_by_inputs(seen, &status, name);
        }
        let ended = seen.filter(|seen| seen.status.observed == Some(seen.generation));
        match ended.map(|seen| (seen.status.ready, seen.status.output)) {
            Some((Some(Ready::False), _)) => Ok(()),
            Some((Some(Ready::True), Some(output))) => {
                let output = self.shell.texts.text(output);
                if came.is_some_and(|came| came == output) {
                    return Ok(());
                }
                Err(format!(
                    "success [{output}] of [{name}] is hidden: {came:?}"
                ))
            }
            _ => Err(format!("[{name}] is under way and is overtaken")),
        }
    }

    fn attributed(&mut self, step: &str, output: &Value) -> Result<(), String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (value, provenance) = (text(&output["value"]), &output["provenance"]);
        let identity = text(&provenance["identity"]);
        let known = self.identities.entry(identity.clone());
        let known = known.or_insert_with(|| value.clone());
        if *known != value {
            return Err(format!(
                "two outputs are [{identity}]: [{known}], [{value}]"
            ));
        }
        if step == "fetch" {
            return Ok(());
        }
        let input = text(&provenance["inputs"][0]["identity"]);
        let input = self.identities.get(&input).cloned().unwrap_or_default();
        // `build[r1,0]` was made from `r1`, and by `build`.
        let made_from = value
            .strip_prefix(step)
            .and_then(|rest| rest.strip_prefix('['))
            .and_then(|rest| rest.rsplit_once(','))
            .map(|(spec, _)| spec);
        if made_from == Some(&input) {
            return Ok(());
        }
        Err(format!("[{value}] of [{step}] is attributed to [{input}]"))
    }

    /// All that fails has ended: controllers end well, the watch shows what is there, walks are not cut off.
    fn comes_to_rest(&mut self, from: &World) -> Result<(), String> {
        let mut way = Vec::new();
        let mut world = from.clone();
        for _ in 0..ROUNDS {
            if self.settled.contains(&world) {
                self.settled.extend(way);
                return Ok(());
            }
            way.push(world.clone());
            let mut next = world.clone();
            for slot in Slot::ALL {
                // As the condition says.
                if next.held[slot as usize]
                    .as_ref()
                    .is_some_and(|it| it.has_foreign)
                {
                    next = self.moved(&next, Move::SetForeign(slot));
                }
                if next.may_begin(slot) {
                    next = self.moved(&next, Move::Begin(slot));
                }
                if next.work(slot).is_some() {
                    next = self.moved(&next, Move::End(slot, true));
                }
                if self.shell.fault != Some(Fault::WatchStands)
                    && next.held[slot as usize].is_some()
                {
                    next = self.moved(&next, Move::Show(slot));
                }
            }
            let walked = self.walked(&next);
            next.clone_from(&walked.after[walked.after.len() - 1]);
            self.check(&next)?;
            if next == world {
                if !self.is_doubted(&world) {
                    return self.is_at_rest(&world, walked.changed, way);
                }
                // As the condition says.
                next = self.moved(&next, Move::Push);
            }
            world = next;
        }
        Err("it does not come to rest".to_owned())
    }

    /// Whether a resource waits for the next inputs, because what it reports may be of somebody else.
    fn is_doubted(&self, world: &World) -> bool {
        let status = self.shell.status(world);
        Slot::ALL
            .iter()
            .any(|slot| !doubts(&status, slot.name()).is_empty())
    }

    fn is_at_rest(&mut self, world: &World, changed: bool, way: Vec<World>) -> Result<(), String> {
        if changed {
            return Err("it does not come to rest: the status would change for ever".to_owned());
        }
        let (revision, outside) = (world.revision, world.outside);
        let expected = format!("pack[build[r{revision},{outside}],{outside}]");
        let deployed = world.deployed.map(|text| self.shell.texts.text(text));
        let status = self.shell.status(world);
        let has_failed = |slot: &Slot| !updates(&status, slot.name())["failure"].is_null();
        if deployed != Some(&expected) && !Slot::ALL.iter().any(has_failed) {
            return Err(format!(
                "no progress: {deployed:?} is deployed, not {expected}"
            ));
        }
        self.settled.extend(way);
        Ok(())
    }
}

/// One of the next steps. A walk, what controllers and the watch do, and everything that can happen are equally likely: else
/// little comes to its end.
fn choose(lot: &mut Rng, next: &[(Step, World)]) -> usize {
    let goes_on = |step: &Step| matches!(step, Step::Move(it) if it.goes_on());
    let going_on: Vec<usize> = (0..next.len())
        .filter(|index| goes_on(&next[*index].0))
        .collect();
    match lot.u8(0..3) {
        0 => next.len() - 1,
        1 if !going_on.is_empty() => going_on[lot.usize(0..going_on.len())],
        _ => lot.usize(0..next.len()),
    }
}

/// As [`Checker::has_ended`], of resources that count no generations.
fn has_ended_by_inputs(seen: Option<&Resource>, status: &Value, name: &str) -> Result<(), String> {
    // Nothing of what it comes to is read.
    let is_good = seen.is_some_and(|seen| seen.status.made_from == Some(seen.spec));
    if is_good || !doubts(status, name).is_empty() {
        return Ok(());
    }
    Err(format!("[{name}] is under way and is overtaken"))
}

fn output<'s>(status: &'s Value, step: &str, place: usize) -> Option<&'s Value> {
    let entries = status["resources"].as_array()?;
    let entry = entries.iter().find(|entry| entry["name"] == step)?;
    entry["outputs"]
        .get(place)
        .filter(|output| !output["provenance"].is_null())
}

fn entry<'s>(status: &'s Value, step: &str) -> &'s Value {
    let entries = status["resources"].as_array().into_iter().flatten();
    let mut entries = entries.filter(|entry| entry["name"] == step);
    entries.next().unwrap_or(&Value::Null)
}

fn updates<'s>(status: &'s Value, step: &str) -> &'s Value {
    &entry(status, step)["updates"]
}

/// The inputs of which what a resource reports is not read.
fn doubts<'s>(status: &'s Value, step: &str) -> &'s [Value] {
    let doubts = entry(status, step)["applied"]["doubtful"].as_array();
    doubts.map_or(&[], Vec::as_slice)
}

fn way_to(world: &World, came_from: &HashMap<World, Option<(World, Step)>>) -> String {
    let mut steps = Vec::new();
    let mut at = world;
    while let Some(Some((before, step))) = came_from.get(at) {
        steps.push(format!("{step:?}"));
        at = before;
    }
    steps.reverse();
    format!("after: {}\nin: {world:?}", steps.join(", "))
}
