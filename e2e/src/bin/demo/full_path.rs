//! The second half: from a commit to a running Pod, where a node can run.

use anyhow::{Context, bail};
use cli::args::Connection;
use cli::cluster::Cluster;
use cli::follow::{Change, Follower};
use cli::target::Target;
use cli::tree::Tree;
use e2e::example;
use e2e::full_path::{FullPath, PASSING_TEST, WITH_PODS};
use e2e::path_stack::PathStack;
use test_support::Node;
use tokio::time::{Duration, Instant, sleep};

use crate::story::Story;
use crate::{LIMIT, seconds, short};

/// Between two looks at how far a commit is.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs examples/full-path on a node and returns what it ran on, or says in one line why there is none.
pub(crate) async fn show(story: &Story) -> anyhow::Result<Option<PathStack>> {
    if let Some(missing) = Node::missing()? {
        story.chapter(&format!(
            "Left out: examples/full-path, with Jobs and Pods on a real node: {missing}"
        ));
        return Ok(None);
    }
    story.chapter("From a commit to a running Pod: examples/full-path, on a node of its own");
    let stack = PathStack::start_with_node(|part| story.line(&format!("starting {part}"))).await?;
    let (path, first) = FullPath::hand_in(&stack, WITH_PODS).await?;
    story.line("a Workload, a Deliverable and their rights are submitted");
    arrives(story, &path, &first).await?;

    for target in [
        "workload/full-path",
        "runnable/full-path-test",
        "deliverable/full-path",
    ] {
        story.chapter(&format!("carto tree -n dev {target}"));
        story.tree(&*tree(&stack, target, |tree| tree.ready).await?);
    }

    story.chapter("The developer commits a change");
    let second = path.commit("Moin", PASSING_TEST)?;
    arrives(story, &path, &second).await?;

    story.chapter("The developer commits a change whose test fails");
    path.commit("Oops", "exit 1\n")?;
    let held_up = tree(&stack, "workload/full-path", |tree| {
        tree.headline.step.as_deref() == Some("test")
            && tree.headline.next.is_some()
            && !tree.ready
            && tree.headline.state == cli::tree::State::Failing
    })
    .await?;
    story.line(&held_up.headline.text);
    stays(story, &path, &second).await?;
    drop(path);
    Ok(Some(stack))
}

/// Everything behind the test still has this revision, the running Pod among it.
async fn stays(story: &Story, path: &FullPath<'_>, revision: &str) -> anyhow::Result<()> {
    let hops = path.hops().await?;
    // The first place has the commit whose test failed.
    let moved = hops.iter().skip(1).find(|hop| hop.revision != revision);
    if let Some(hop) = moved {
        bail!("{} is at {}, not at {revision}", hop.place, hop.revision);
    }
    story.line(&format!(
        "what runs stays as it is: the Pod is at {}",
        brief(revision)
    ));
    Ok(())
}

/// Tells where the commit is, hop by hop.
async fn arrives(story: &Story, path: &FullPath<'_>, revision: &str) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut told = Vec::new();
    while begun.elapsed() < LIMIT {
        let hops = path.hops().await?;
        let there = hops.iter().filter(|hop| hop.revision == revision);
        for hop in there {
            if !told.contains(&hop.place) {
                story.line(&format!("{} is at {}", hop.place, brief(revision)));
                told.push(hop.place);
            }
        }
        if hops.iter().all(|hop| hop.revision == revision) {
            story.line(&format!(
                "{} from the commit to the last hop",
                seconds(begun.elapsed())
            ));
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    bail!(
        "{revision} has come no further than this after {LIMIT:?}: {:#?}",
        path.hops().await?
    )
}

/// The tree as soon as it is as wanted.
async fn tree(
    stack: &PathStack,
    target: &str,
    wanted: impl Fn(&Tree) -> bool,
) -> anyhow::Result<Box<Tree>> {
    let connection = Connection {
        kubeconfig: Some(stack.control_plane.kubeconfig_path().to_path_buf()),
        namespace: Some(example::NAMESPACE.into()),
        ..Connection::default()
    };
    let cluster = Cluster::connect(&connection).await?;
    let target: Target = target.parse()?;
    let mut follower = Follower::new(&cluster, &target);
    let follow = async {
        loop {
            match follower.next().await? {
                Change::Tree(tree) if wanted(&tree) => return Ok(tree),
                Change::Tree(_) => {}
                Change::Deleted => bail!("{} was deleted", target.name),
            }
        }
    };
    tokio::time::timeout(LIMIT, follow)
        .await
        .context("waited too long")?
}

/// The beginning of the commit in a revision.
fn brief(revision: &str) -> &str {
    short(revision.rsplit(':').next().unwrap_or(revision))
}
