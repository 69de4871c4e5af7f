//! Printing the tree, once or at every change.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use crate::args::{Connection, Output, TraceArgs, TraceOutput, TreeArgs};
use crate::cluster::Cluster;
use crate::descend::descend;
use crate::follow::{Change, Follower};
use crate::trace::{self, Past, Trace};
use crate::tree::{Colors, Tree, render};
use crate::trouble;

/// Clears the screen and moves to its top left corner.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// How often a watch looks again at what is below the owner's objects, while the owner is not ready.
const AGAIN: Duration = Duration::from_secs(3);

/// How a command that waits has ended.
enum End {
    Satisfied,
    TimedOut(Option<Box<Tree>>),
    Interrupted,
    Deleted,
}

/// Shows the tree as the command line says. Returns whether what was waited for came about.
///
/// # Errors
///
/// When the owner cannot be read; the text says what to do.
pub async fn tree(connection: &Connection, args: &TreeArgs) -> anyhow::Result<bool> {
    let cluster = Cluster::connect(connection).await?;
    let mut follower = Follower::new(&cluster, &args.target);
    let screen = Screen::new(args);
    let name = format!(
        "{} {}/{}",
        args.target.kind.word(),
        cluster.namespace,
        args.target.name
    );
    match show(&cluster, &mut follower, &screen, args).await? {
        End::Satisfied => Ok(true),
        End::Interrupted => Ok(!args.until_ready),
        End::Deleted => {
            complain(&format!("{name} was deleted"));
            Ok(false)
        }
        End::TimedOut(last) => {
            if let Some(mut last) = last.filter(|_| !args.watch) {
                descend(&cluster, &mut last).await;
                screen.draw(&last)?;
            }
            complain(&format!(
                "{name} did not become ready within {}",
                in_words(args.timeout)
            ));
            Ok(false)
        }
    }
}

/// Shows once what made the outputs of an owner.
///
/// # Errors
///
/// When the owner cannot be read; the text says what to do.
pub async fn trace(connection: &Connection, args: &TraceArgs) -> anyhow::Result<bool> {
    let cluster = Cluster::connect(connection).await?;
    let mut follower = Follower::new(&cluster, &args.target);
    let Change::Tree(tree) = follower.next().await? else {
        return Err(trouble::no_such_owner(&cluster, &args.target).await);
    };
    let trace = with_past(&cluster, &tree).await;
    let text = match args.output {
        TraceOutput::Tree => trace::render(&trace).join("\n"),
        TraceOutput::Json => serde_json::to_string_pretty(&trace)?,
        TraceOutput::InToto => {
            let statements = trace::in_toto(&trace);
            let lines: Vec<String> = statements.iter().map(ToString::to_string).collect();
            lines.join("\n")
        }
    };
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(true)
}

/// The trace, with what Artifacts tell of outputs that no step has any more. Each is asked for by its name; what is made from
/// one that is found may be in another.
async fn with_past(cluster: &Cluster, tree: &Tree) -> Trace {
    let (artifacts, mut past) = (cluster.artifacts(), Past::default());
    loop {
        let trace = Trace::with(tree, &past);
        let gone = trace.gone(&past);
        if gone.is_empty() {
            return trace;
        }
        for (step, identity) in gone {
            let name = trace.artifact_of(&step, &identity);
            let found = match artifacts.get_opt(&name).await {
                Ok(found) => found.and_then(|object| serde_json::to_value(object).ok()),
                Err(error) => {
                    complain(&format!(
                        "the past is not told: Artifact {name} cannot be read: {error}"
                    ));
                    return trace;
                }
            };
            past.put(&step, &identity, found.as_ref());
        }
    }
}

async fn show(
    cluster: &Cluster,
    follower: &mut Follower<'_>,
    screen: &Screen,
    args: &TreeArgs,
) -> anyhow::Result<End> {
    let limit = passed(args.timeout);
    tokio::pin!(limit);
    let mut again = tokio::time::interval(AGAIN);
    let (mut last, mut drawn): (Option<Box<Tree>>, Option<Box<Tree>>) = (None, None);
    loop {
        let moves = args.watch
            && last
                .as_ref()
                .is_some_and(|last| !last.ready && last.may_descend());
        let change = tokio::select! {
            change = follower.next() => change?,
            // What is below an object of the owner changes without the owner.
            _ = again.tick(), if moves => match &last {
                Some(last) => Change::Tree(last.clone()),
                None => continue,
            },
            () = &mut limit => return Ok(End::TimedOut(last)),
            _ = tokio::signal::ctrl_c() => return Ok(End::Interrupted),
        };
        let Change::Tree(tree) = change else {
            return Ok(End::Deleted);
        };
        let done = if args.until_ready {
            tree.ready
        } else {
            !args.watch
        };
        if args.watch || done {
            let mut shown = tree.clone();
            descend(cluster, &mut shown).await;
            // A write that changes nothing that is shown is no change.
            if drawn.as_ref() != Some(&shown) {
                screen.draw(&shown)?;
            }
            drawn = Some(shown);
        }
        if done {
            return Ok(End::Satisfied);
        }
        last = Some(tree);
    }
}

/// Returns when the time is over; without a limit never.
async fn passed(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Where the tree goes.
struct Screen {
    output: Output,
    watch: bool,
    terminal: bool,
    colors: Colors,
}

impl Screen {
    fn new(args: &TreeArgs) -> Self {
        let terminal = io::stdout().is_terminal();
        // As the convention says: present and not empty.
        let unwanted = args
            .no_color
            .as_ref()
            .is_some_and(|value| !value.is_empty());
        let colors = if terminal && !unwanted {
            Colors::On
        } else {
            Colors::Off
        };
        Self {
            output: args.output,
            watch: args.watch,
            terminal,
            colors,
        }
    }

    fn draw(&self, tree: &Tree) -> io::Result<()> {
        let text = match self.output {
            Output::Json if self.watch => serde_json::to_string(tree)?,
            Output::Json => serde_json::to_string_pretty(tree)?,
            Output::Tree => self.lines(tree),
        };
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}")?;
        stdout.flush()
    }

    fn lines(&self, tree: &Tree) -> String {
        let text = render(tree, self.colors).join("\n");
        match (self.watch, self.terminal) {
            (false, _) => text,
            (true, true) => format!("{CLEAR}{text}"),
            (true, false) => format!("{text}\n"),
        }
    }
}

fn in_words(limit: Option<Duration>) -> String {
    limit.map_or_else(
        || "any time".to_owned(),
        |limit| format!("{} s", limit.as_secs()),
    )
}

#[expect(
    clippy::print_stderr,
    reason = "a command line tool speaks to its user"
)]
fn complain(text: &str) {
    eprintln!("carto: {text}");
}
