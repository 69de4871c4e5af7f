//! Fairness: how long does one owner wait while others have thousands to settle, in one namespace or in hundreds?
//!
//! The machine itself is slower then, as the API server and etcd are busy. So a bare client does the same for one owner at
//! a time, in turn with the controller: what it waits longer is the machine's, what the controller waits beyond that is its own.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;

use crate::api::{STEPS, status_of};
use crate::args::Args;
use crate::controller::{Controller, Program};
use crate::family::{DELIVERY, SUPPLY_CHAIN};
use crate::floor::spent;
use crate::latency::Latency;
use crate::layout::{CROWD, FLOOR, GUEST, Key, Owner, crowd};
use crate::objects::{chain_owner, owner_status, stamped};
use crate::phases::cold::blueprint_ready;
use crate::proc_stat::Usage;
use crate::report;
use crate::run::{program, say};
use crate::seen::{OwnerSeen, Step};
use crate::tally::Agent;
use crate::workers::each;
use crate::world::{LIMIT, World};

/// How long a single owner may take.
const SINGLE_LIMIT: Duration = Duration::from_mins(2);
/// Creates of the crowd in flight.
const CREATES_IN_FLIGHT: usize = 16;
/// So many owners of the crowd are Ready before anything is measured.
const UNDER_WAY: usize = 20;
/// Singles before the first that counts: the first asks for a token, and connections are made.
const WARM_UP: usize = 3;
/// Before each single, so that the crowd is at its full pace again: a scheduler may hold it back while another namespace
/// is under way, and the first request of a single would profit from the single before.
const PAUSE: Duration = Duration::from_secs(1);
/// With fewer samples the crowd was too small for this machine.
const FEWEST: usize = 10;
const REVISION: &str = "v1";
/// Names of the two situations, and of the owners in them.
const IDLE: &str = "idle";
const LOADED: &str = "loaded";

/// What a single owner in a namespace of its own waits for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fairness {
    /// Owners in the other namespaces.
    pub(crate) crowd: usize,
    /// How many namespaces they are spread over.
    pub(crate) namespaces: usize,
    /// Of these, not Ready when the last sample was taken.
    pub(crate) unsettled: usize,
    /// Nobody else is there.
    pub(crate) idle: Singles,
    /// While the crowd settles.
    pub(crate) loaded: Singles,
    /// What the controller had used when all others were Ready, too.
    pub(crate) settled: Usage,
    /// Queue of the controller when the last sample was taken: series of its metrics.
    pub(crate) queue: BTreeMap<String, f64>,
}

/// Single owners, one after the other.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Singles {
    /// By the controller: from the create of the owner until it is seen Ready.
    pub(crate) ready: Latency,
    /// By the controller: from the create of the owner until its first stamped object is seen.
    pub(crate) first_step: Latency,
    /// The same requests by a bare client.
    pub(crate) bare: Latency,
    /// Seconds for all of them.
    pub(crate) seconds: f64,
    /// CPU seconds by process meanwhile.
    pub(crate) cpu_seconds: BTreeMap<String, f64>,
}

/// By what the loaded p99 exceeds the idle one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratios {
    /// For the controller's owners.
    pub(crate) controller: f64,
    /// For the bare client's: the machine.
    pub(crate) machine: f64,
}

impl Ratios {
    /// What the controller adds to the machine's own.
    pub(crate) fn quotient(self) -> f64 {
        self.controller / self.machine
    }
}

impl Ratios {
    /// Loaded against idle, by a percentile.
    pub(crate) fn of(idle: &Singles, loaded: &Singles, by: impl Fn(&Latency) -> f64) -> Self {
        Self {
            controller: by(&loaded.ready) / by(&idle.ready),
            machine: by(&loaded.bare) / by(&idle.bare),
        }
    }
}

impl Fairness {
    /// Loaded against idle, by a percentile.
    pub(crate) fn ratios(&self, by: impl Fn(&Latency) -> f64) -> Ratios {
        Ratios::of(&self.idle, &self.loaded, by)
    }
}

/// Where the crowd is, in words.
pub(crate) fn of_others(namespaces: usize) -> String {
    match namespaces {
        1 => "another namespace".to_owned(),
        many => format!("{many} other namespaces"),
    }
}

struct Stage<'a> {
    world: &'a mut World,
    program: Program,
    controller: Controller,
    args: &'a Args,
    namespaces: NonZeroUsize,
}

/// Measures it on a control plane of its own.
///
/// # Errors
///
/// When the control plane or the controller fails, or the crowd is settled before enough samples are taken.
pub(crate) async fn measure(
    args: &Args,
    binary: &Path,
    namespaces: NonZeroUsize,
) -> anyhow::Result<Fairness> {
    say(&format!(
        "\nfairness: one Workload beside {} × {} steps of {}",
        args.crowd,
        args.steps,
        of_others(namespaces.get())
    ));
    let mut world = World::start(&SUPPLY_CHAIN, &args.api_server).await?;
    for (prefix, count) in [(CROWD, namespaces.get()), (GUEST, 2), (FLOOR, 1)] {
        world.furnish(prefix, count).await?;
    }
    world.write_blueprint(args.steps).await?;
    let name = format!("fairness-{namespaces}");
    let program = program(args, &world, binary, &name).await?;
    let controller = program.start().await?;
    let mut stage = Stage {
        world: &mut world,
        program,
        controller,
        args,
        namespaces,
    };
    let measured = phases(&mut stage).await.map_err(|error| {
        let log = stage.controller.log_tail();
        error.context(format!("the controller's log ends with:\n{log}"))
    });
    stage.controller.kill();
    if let Some(folder) = &args.logs {
        world.keep_audit_log(&folder.join(format!("audit-{name}.log")))?;
    }
    measured
}

async fn phases(stage: &mut Stage<'_>) -> anyhow::Result<Fairness> {
    blueprint_ready(stage.world).await?;
    stage.world.let_control_plane_rest().await?;
    let (idle, _) = singles(stage, IDLE).await?;
    gather(stage).await?;
    let (loaded, unsettled) = singles(stage, LOADED).await?;
    let queue = stage.controller.queue().await?;
    // What follows takes minutes, and may fail.
    say(&report::ratios(&idle, &loaded));
    let crowd = stage.args.crowd;
    let of_crowd = |key: &Key, owner: &OwnerSeen| key.is_of(CROWD) && owner.is_ready();
    let all_ready = stage
        .world
        .owners
        .reach("the crowd is settled", crowd, LIMIT, of_crowd);
    all_ready.await?;
    stage.world.requests_until_rest(Agent::Controller).await?;
    Ok(Fairness {
        crowd,
        namespaces: stage.namespaces.get(),
        unsettled,
        settled: stage.controller.usage()?,
        idle,
        loaded,
        queue,
    })
}

/// Creates the crowd while the controller is away, so that all of it is to be settled when it comes back.
async fn gather(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let count = stage.args.crowd;
    stage.controller.stop();
    let client = stage.world.client.clone();
    let start = Instant::now();
    each(
        CREATES_IN_FLIGHT,
        crowd(count, stage.namespaces),
        move |owner| {
            let client = client.clone();
            async move {
                let collection = SUPPLY_CHAIN.owners.within(&owner.key.namespace);
                client
                    .create(&collection, &chain_owner(&SUPPLY_CHAIN, &owner, REVISION))
                    .await
                    .map(drop)
            }
        },
    )
    .await?;
    say(&format!(
        "crowd          created in {:.1} s",
        start.elapsed().as_secs_f64()
    ));
    stage.controller = stage.program.start().await?;
    let of_crowd = |key: &Key, owner: &OwnerSeen| key.is_of(CROWD) && owner.is_ready();
    stage
        .world
        .owners
        .reach(
            "the crowd is under way",
            UNDER_WAY.min(count),
            LIMIT,
            of_crowd,
        )
        .await
}

/// What one single and the bare client's took.
struct Sample {
    first_step: Duration,
    ready: Duration,
    bare: Duration,
}

/// Measures single owners and, in turn, the bare client's; and how many of the crowd are left. Ends early when none is.
async fn singles(stage: &Stage<'_>, name: &str) -> anyhow::Result<(Singles, usize)> {
    let (world, args) = (&*stage.world, stage.args);
    let crowded = name == LOADED;
    let pid = Some(stage.controller.pid());
    let (mut samples, mut unsettled) = (Vec::new(), 0);
    for number in 0..WARM_UP {
        sample(world, name, number, args.steps).await?;
    }
    let (before, start) = (world.cpu_seconds(pid)?, Instant::now());
    for number in WARM_UP..WARM_UP + args.singles {
        let taken = sample(world, name, number, args.steps).await?;
        if crowded {
            let left = args.crowd.saturating_sub(world.owners.count().reached);
            if left == 0 {
                break;
            }
            unsettled = left;
        }
        samples.push(taken);
    }
    ensure!(
        samples.len() >= FEWEST.min(args.singles),
        "the crowd was settled after {} samples: make it larger",
        samples.len()
    );
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = spent(&before, world.cpu_seconds(pid)?);
    Ok((sum_up(&samples, seconds, cpu_seconds)?, unsettled))
}

fn sum_up(
    samples: &[Sample],
    seconds: f64,
    cpu_seconds: BTreeMap<String, f64>,
) -> anyhow::Result<Singles> {
    let of = |figure: fn(&Sample) -> Duration| {
        let figures: Vec<Duration> = samples.iter().map(figure).collect();
        Latency::of(&figures).context("no samples were asked for")
    };
    Ok(Singles {
        ready: of(|sample| sample.ready)?,
        first_step: of(|sample| sample.first_step)?,
        bare: of(|sample| sample.bare)?,
        seconds,
        cpu_seconds,
    })
}

async fn sample(world: &World, name: &str, number: usize, steps: u8) -> anyhow::Result<Sample> {
    tokio::time::sleep(PAUSE).await;
    let (first_step, ready) = by_controller(world, &single(guest(name), name, number)).await?;
    tokio::time::sleep(PAUSE).await;
    let bare = by_bare_client(world, &single(format!("{FLOOR}-0"), name, number), steps).await?;
    Ok(Sample {
        first_step,
        ready,
        bare,
    })
}

/// The loaded ones come to a namespace of their own: the idle ones, which the restarted controller looks at again together
/// with the crowd, would stand before them.
fn guest(name: &str) -> String {
    format!("{GUEST}-{}", u8::from(name == LOADED))
}

fn single(namespace: String, name: &str, number: usize) -> Owner {
    Owner {
        key: Key {
            namespace,
            name: format!("{name}-{number}"),
        },
    }
}

async fn by_controller(world: &World, owner: &Owner) -> anyhow::Result<(Duration, Duration)> {
    let first = world.steps.when(&owner.step(1), |_: &Step| true);
    let ready = world.owners.when(&owner.key, OwnerSeen::is_ready);
    let start = Instant::now();
    let collection = SUPPLY_CHAIN.owners.within(&owner.key.namespace);
    world
        .client
        .create(&collection, &chain_owner(&SUPPLY_CHAIN, owner, REVISION))
        .await?;
    let seen = async { anyhow::Ok((first.await?, ready.await?)) };
    let (first, ready) = tokio::time::timeout(SINGLE_LIMIT, seen)
        .await
        .context("a single Workload does not become Ready")??;
    Ok((first - start, ready - start))
}

/// As a controller would: by watch and apply, and with the least of statuses. The owner is a Deliverable, which the
/// controller under test leaves alone.
async fn by_bare_client(world: &World, owner: &Owner, steps: u8) -> anyhow::Result<Duration> {
    let client = &world.client;
    let start = Instant::now();
    let collection = DELIVERY.owners.within(&owner.key.namespace);
    let uid = client
        .create(&collection, &chain_owner(&DELIVERY, owner, REVISION))
        .await?;
    for step in 1..=steps {
        let key = owner.step(step);
        let settled = world.steps.when(&key, Step::is_settled);
        let object = stamped(&DELIVERY, owner, &uid, step, REVISION);
        client.apply(&STEPS.at(&key), &object).await?;
        tokio::time::timeout(SINGLE_LIMIT, settled)
            .await
            .context("a bare client's step gets no status")??;
    }
    let status = owner_status(&DELIVERY, owner, steps, steps);
    client
        .merge(&status_of(&DELIVERY.owners.at(&owner.key)), &status)
        .await?;
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crowd_is_told_by_its_namespace() {
        let spread = NonZeroUsize::new(2).unwrap();
        assert!(crowd(3, spread).iter().all(|owner| owner.key.is_of(CROWD)));
        assert!(!single(guest(IDLE), IDLE, 0).key.is_of(CROWD));
        assert!(!single("crowded-0".to_owned(), IDLE, 0).key.is_of(CROWD));
        assert_ne!(guest(IDLE), guest(LOADED));
    }

    #[test]
    fn what_the_machine_takes_longer_is_told_apart() {
        let singles = |ready, bare| Singles {
            ready,
            first_step: ready,
            bare,
            seconds: 1.0,
            cpu_seconds: BTreeMap::new(),
        };
        let fairness = Fairness {
            crowd: 10_000,
            namespaces: 1,
            unsettled: 5,
            settled: Usage::default(),
            idle: singles(Latency::with(10.0, 20.0), Latency::with(8.0, 10.0)),
            loaded: singles(Latency::with(30.0, 120.0), Latency::with(24.0, 40.0)),
            queue: BTreeMap::new(),
        };
        let ratios = fairness.ratios(|latency| latency.p99_ms);
        let expected = Ratios {
            controller: 6.0,
            machine: 4.0,
        };
        assert_eq!(ratios, expected);
        assert!((ratios.quotient() - 1.5).abs() < 1e-9);
    }
}
