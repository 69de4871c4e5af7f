//! Cold: owners are created at once; how long until all are Ready, and at what cost?

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cpu::CpuSeconds;
use crate::floor::{By, write_chains};
use crate::layout::Key;
use crate::objects::{FIRST_REVISION, LINEAR, all_owners};
use crate::pairs::Pair;
use crate::phases::Stage;
use crate::phases::blocks::{Blocks, bare};
use crate::report::report;
use crate::tally::Requests;
use crate::world::World;

/// The cold phase.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Cold {
    /// Each until its events had ended.
    #[serde(flatten)]
    pub(crate) blocks: Blocks,
    /// The pairs for a bare client that creates in place of applying.
    pub(crate) created: Vec<Pair>,
    /// How long after the last Ready of a block its events went on, at the most, in seconds.
    pub(crate) events_seconds: f64,
    /// The machine's pace meanwhile, in milliseconds.
    pub(crate) pace_ms: f64,
}

/// Measures it, and leaves the objects of the bare client's last block there.
pub(crate) async fn measure(stage: &mut Stage<'_>) -> anyhow::Result<Cold> {
    stage.world.blueprint_ready(LINEAR).await;
    stage.world.requests_until_rest(Requests::all).await?;
    let (mut cold, mut paced) = (Cold::default(), 0.0);
    let apply = write(By::Apply);
    let floor = async |stage: &mut Stage<'_>, count: usize, used: &mut CpuSeconds| {
        bare(stage, count, used, &apply).await
    };
    let controller = async |stage: &mut Stage<'_>, owners: &[Key], blocks: &mut Blocks| {
        let count = owners.len();
        let posted = bare(stage, count, &mut CpuSeconds::new(), &write(By::Create)).await?;
        let written = all_owners(stage.world.family, owners, FIRST_REVISION);
        let done = blocks.work(stage, owners, Requests::all, written).await?;
        let (seconds, pace_ms) = (done.taken.as_secs_f64(), done.pace_ms);
        let events_seconds = done.ready.elapsed().as_secs_f64();
        cold.events_seconds = cold.events_seconds.max(events_seconds);
        cold.created.push(Pair {
            floor: [posted; 2],
            controller: seconds,
        });
        paced += pace_ms * seconds;
        let more = format!(", {posted:.2} s by POST; pace {pace_ms:.2} ms");
        Ok((seconds, more))
    };
    cold.blocks = Blocks::measure(stage, floor, controller).await?;
    cold.pace_ms = paced / cold.blocks.seconds();
    report("cold", &cold)?;
    Ok(cold)
}

/// What the bare client does for chains.
pub(crate) fn write(
    by: By,
) -> impl AsyncFn(&World, usize, usize) -> anyhow::Result<Duration> + Copy {
    async move |world: &World, owners, in_flight| write_chains(world, owners, in_flight, by).await
}
