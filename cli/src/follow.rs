//! An owner and its blueprint under watch.

use anyhow::{Context as _, anyhow};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::target::{Target, TargetKind};
use crate::tree::Tree;
use crate::trouble;

/// What became of the owner since the last look.
#[derive(Debug)]
pub enum Change {
    /// The tree as it is now.
    Tree(Box<Tree>),
    /// The owner is no longer there.
    Deleted,
}

/// An owner and its blueprint under watch.
pub struct Follower<'a> {
    cluster: &'a Cluster,
    target: &'a Target,
    owner: Watched,
    blueprint: Watched,
    /// Name of the blueprint under watch; empty for none.
    blueprint_name: String,
}

impl<'a> Follower<'a> {
    /// Starts to follow; nothing is asked before the first [`Follower::next`].
    pub fn new(cluster: &'a Cluster, target: &'a Target) -> Self {
        Self {
            cluster,
            target,
            owner: Watched::named(cluster.owners(target.kind), &target.name),
            blueprint: Watched::nothing(),
            blueprint_name: String::new(),
        }
    }

    /// Waits for the next change; the first one is what there is now.
    ///
    /// # Errors
    ///
    /// When the owner cannot be read, or is not there at the first look; the text says what to do.
    pub async fn next(&mut self) -> anyhow::Result<Change> {
        loop {
            let known_before = self.owner.is_known();
            tokio::select! {
                seen = self.owner.next() => {
                    if let Err(error) = seen
                        && !self.owner.is_known()
                    {
                        return Err(trouble::asking(self.cluster, self.target, &error));
                    }
                }
                seen = self.blueprint.next() => {
                    // Developers often may not read blueprints. The tree says so, and is drawn from the status.
                    if seen.is_err() && !self.blueprint.is_known() {
                        self.blueprint.look = Look::Absent;
                    }
                }
            }
            match &self.owner.look {
                Look::Unknown => {}
                Look::Absent if known_before => return Ok(Change::Deleted),
                Look::Absent => return Err(trouble::no_such_owner(self.cluster, self.target).await),
                Look::There(owner) => {
                    let name = chosen_blueprint(self.target, owner);
                    self.follow_blueprint(name);
                    if self.blueprint.is_known() {
                        return self.tree().map(|tree| Change::Tree(Box::new(tree)));
                    }
                }
            }
        }
    }

    fn follow_blueprint(&mut self, name: String) {
        if name == self.blueprint_name {
            return;
        }
        self.blueprint = match self.target.kind {
            TargetKind::Owner(family) if !name.is_empty() => {
                Watched::named(self.cluster.blueprints(family), &name)
            }
            _ => Watched::nothing(),
        };
        self.blueprint_name = name;
    }

    fn tree(&self) -> anyhow::Result<Tree> {
        let owner = self.owner.object().context("the owner is gone")?;
        let tree = match self.target.kind {
            TargetKind::Owner(family) => Tree::read(family, owner, self.blueprint.object()),
            TargetKind::Runnable => Tree::read_runnable(owner),
        };
        Ok(tree?)
    }
}

fn chosen_blueprint(target: &Target, owner: &Value) -> String {
    let TargetKind::Owner(family) = target.kind else {
        return String::new();
    };
    owner["status"][family.status_ref_field()]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// One object under watch.
struct Watched {
    events: BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>>,
    look: Look,
    /// What the listing under way has found so far.
    listed: Option<Value>,
}

/// What is known of an object.
enum Look {
    Unknown,
    Absent,
    There(Value),
}

impl Watched {
    fn named(api: Api<DynamicObject>, name: &str) -> Self {
        let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let events = watcher::watcher(api, one).default_backoff().boxed();
        Self {
            events,
            look: Look::Unknown,
            listed: None,
        }
    }

    fn nothing() -> Self {
        Self {
            events: stream::pending().boxed(),
            look: Look::Absent,
            listed: None,
        }
    }

    fn is_known(&self) -> bool {
        !matches!(self.look, Look::Unknown)
    }

    fn object(&self) -> Option<&Value> {
        match &self.look {
            Look::There(object) => Some(object),
            Look::Unknown | Look::Absent => None,
        }
    }

    /// Takes in one event.
    async fn next(&mut self) -> anyhow::Result<()> {
        let event = self
            .events
            .next()
            .await
            .ok_or_else(|| anyhow!("the watch has ended"))??;
        match event {
            Event::Init => self.listed = None,
            Event::InitApply(object) => self.listed = Some(serde_json::to_value(object)?),
            Event::InitDone => self.look = self.listed.take().map_or(Look::Absent, Look::There),
            Event::Apply(object) => self.look = Look::There(serde_json::to_value(object)?),
            Event::Delete(_) => self.look = Look::Absent,
        }
        Ok(())
    }
}
