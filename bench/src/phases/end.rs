//! The end: all owners are deleted.

use std::time::Instant;

use serde::Serialize;

use crate::layout::{TEAM, namespaces, namespaces_of};
use crate::phases::Stage;
use crate::proc_stat::Usage;
use crate::tally::Requests;
use crate::workers::each;
use crate::world::LIMIT;

/// The deletion of all owners.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Deletion {
    /// From the first request until the last stamped object is gone.
    pub(crate) seconds: f64,
    /// Requests of the controller; the objects go by garbage collection.
    pub(crate) requests: Requests,
    /// What the controller used since its restart.
    pub(crate) usage: Usage,
}

/// Measures it.
///
/// # Errors
///
/// When the objects do not go.
pub(crate) async fn measure(stage: &mut Stage<'_>) -> anyhow::Result<Deletion> {
    stage.world.forget_requests()?;
    let (client, family) = (stage.world.client.clone(), stage.world.family);
    let start = Instant::now();
    each(
        stage.concurrency,
        namespaces(TEAM, namespaces_of(stage.count)),
        move |namespace| {
            let client = client.clone();
            async move { client.delete_all(&family.owners.within(&namespace)).await }
        },
    )
    .await?;
    let gone = stage
        .world
        .steps
        .emptied("all stamped objects are gone", LIMIT, |_| true)
        .await;
    gone.map_err(|error| stage.explain(error))?;
    let seconds = start.elapsed().as_secs_f64();
    let requests = stage.requests().await?;
    Ok(Deletion {
        seconds,
        requests,
        usage: stage.controller.usage()?,
    })
}
