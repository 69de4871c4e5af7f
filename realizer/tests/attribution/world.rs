//! The state of a small cluster, and what can happen to it.

use std::collections::BTreeSet;

/// A text by its number, so that states are small: there are few of them.
pub(crate) type Text = u16;

/// The two resources in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    Build,
    Pack,
}

impl Slot {
    pub(crate) const ALL: [Self; 2] = [Self::Build, Self::Pack];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Pack => "pack",
        }
    }
}

/// A resource as the API server holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    /// What its spec asks for.
    pub(crate) spec: Text,
    /// What we asked for last, and the digest of that rendering.
    pub(crate) rendered: (Text, Text),
    /// Whether others have set a field of its spec that we do not.
    pub(crate) has_foreign: bool,
    /// Whether another builder than ours is asked for.
    pub(crate) is_evil: bool,
    /// Whether its annotations and labels say that it is as we left it, whatever is in it.
    pub(crate) has_forged_marks: bool,
    pub(crate) generation: u8,
    pub(crate) status: Status,
    /// What its controller works on.
    pub(crate) working: Option<Work>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Status {
    pub(crate) observed: Option<u8>,
    pub(crate) ready: Option<Ready>,
    /// Its latest good output.
    pub(crate) output: Option<Text>,
    /// What its spec asked for when that was made.
    pub(crate) made_from: Option<Text>,
    /// Under which state of the world it was made, or was tried to be.
    pub(crate) world: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ready {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Work {
    pub(crate) generation: u8,
    pub(crate) spec: Text,
    pub(crate) has_foreign: bool,
    pub(crate) is_evil: bool,
    pub(crate) world: u8,
}

/// Everything that persists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The commit.
    pub(crate) revision: u8,
    /// State of whatever the controllers know of the world.
    pub(crate) outside: u8,
    /// The owner's status.
    pub(crate) status: Text,
    pub(crate) held: [Option<Resource>; 2],
    /// What the watch has shown of them.
    pub(crate) seen: [Option<Resource>; 2],
    /// What is deployed.
    pub(crate) deployed: Option<Text>,
    /// How often the tenant has written.
    pub(crate) tampered: u8,
    /// Whether the process knows that the status tells all that was handed on.
    pub(crate) told: bool,
    /// What was asked of the second resource, and what was deployed, and is no more.
    pub(crate) replaced: [BTreeSet<Text>; 2],
}

/// What happens beside our walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Move {
    /// Another commit.
    Push,
    /// What the controllers know of the world changes.
    Change,
    /// A controller begins.
    Begin(Slot),
    /// It has ended, well or badly.
    End(Slot, bool),
    /// The watch shows a resource as it is.
    Show(Slot),
    /// The tenant asks for something else.
    Tamper(Slot),
    /// The tenant writes back what was there.
    Restore(Slot),
    /// The tenant asks for another builder.
    Rebuild(Slot),
    /// The tenant sets a field that we do not, or removes it.
    SetForeign(Slot),
    /// The tenant writes annotations and labels as we do.
    ForgeMarks(Slot),
    /// The process is killed and started anew.
    Restart,
}

impl Move {
    /// Whether controllers or the watch do what they are there for.
    pub(crate) const fn goes_on(self) -> bool {
        matches!(self, Self::Begin(_) | Self::End(..) | Self::Show(_))
    }
}

impl Resource {
    /// Whether our values are in it.
    pub(crate) fn is_ours(&self) -> bool {
        self.spec == self.rendered.0 && !self.is_evil
    }

    /// Whether there is something to do for its controller, which tries again what failed.
    fn is_behind(&self, outside: u8) -> bool {
        let Status {
            observed,
            ready,
            world,
            ..
        } = self.status;
        observed != Some(self.generation) || world != outside || ready == Some(Ready::False)
    }
}

impl World {
    pub(crate) fn new(status: Text) -> Self {
        Self {
            revision: 1,
            outside: 0,
            status,
            held: [None, None],
            seen: [None, None],
            deployed: None,
            tampered: 0,
            told: false,
            replaced: [BTreeSet::new(), BTreeSet::new()],
        }
    }

    /// Whether a controller may begin.
    pub(crate) fn may_begin(&self, slot: Slot) -> bool {
        let held = self.held[slot as usize].as_ref();
        held.is_some_and(|held| held.working.is_none() && held.is_behind(self.outside))
    }

    /// This takes the place of what is there. Returns what is taken back: what was replaced before, while the resource that
    /// has made it does not report it any more.
    pub(crate) fn hand_on(
        &mut self,
        maker: Slot,
        before: Option<Text>,
        text: Text,
    ) -> Option<Text> {
        let before = before.filter(|before| *before != text)?;
        let replaced = &mut self.replaced[maker as usize];
        replaced.insert(before);
        let was_replaced = replaced.remove(&text);
        let maker = self.held[maker as usize].as_ref();
        let is_reported = maker.is_some_and(|maker| maker.status.output == Some(text));
        (was_replaced && !is_reported).then_some(text)
    }

    fn resource(&mut self, slot: Slot) -> &mut Resource {
        self.held[slot as usize].as_mut().unwrap()
    }

    /// What a controller works on.
    pub(crate) fn work(&self, slot: Slot) -> Option<&Work> {
        self.held[slot as usize].as_ref()?.working.as_ref()
    }

    /// What comes of it; `made` names what a resource makes of a spec under a state of the world.
    pub(crate) fn after(&self, it: Move, made: &mut dyn FnMut(Slot, &Work) -> Text) -> Self {
        let mut world = self.clone();
        let outside = self.outside;
        match it {
            Move::Restart => world.told = false,
            Move::Push => world.revision += 1,
            Move::Change => world.outside += 1,
            Move::Show(slot) => world.seen[slot as usize].clone_from(&self.held[slot as usize]),
            Move::Begin(slot) => {
                let held = world.resource(slot);
                held.working = Some(Work {
                    generation: held.generation,
                    spec: held.spec,
                    has_foreign: held.has_foreign,
                    is_evil: held.is_evil,
                    world: outside,
                });
                held.status.ready = Some(Ready::Unknown);
            }
            Move::End(slot, well) => {
                let held = world.resource(slot);
                let work = held.working.take().unwrap();
                held.status.observed = Some(work.generation);
                held.status.world = work.world;
                held.status.ready = Some(if well { Ready::True } else { Ready::False });
                if well {
                    held.status.output = Some(made(slot, &work));
                    held.status.made_from = Some(work.spec);
                }
            }
            Move::Tamper(slot) => {
                let held = world.resource(slot);
                held.spec = EVIL;
                held.generation += 1;
                world.tampered += 1;
            }
            Move::Rebuild(slot) => {
                let held = world.resource(slot);
                held.is_evil = true;
                held.generation += 1;
                world.tampered += 1;
            }
            Move::SetForeign(slot) => {
                let held = world.resource(slot);
                held.has_foreign = !held.has_foreign;
                held.generation += 1;
                world.tampered += 1;
            }
            // No spec changes, and so no generation.
            Move::ForgeMarks(slot) => {
                world.resource(slot).has_forged_marks = true;
                world.tampered += 1;
            }
            Move::Restore(slot) => {
                let held = world.resource(slot);
                held.spec = held.rendered.0;
                held.generation += 1;
                world.tampered += 1;
            }
        }
        world
    }
}

/// What the tenant asks for.
pub(crate) const EVIL: Text = 0;
