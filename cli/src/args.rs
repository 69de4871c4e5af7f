//! The command line.

mod migrate;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::render::Webhook;
use crate::target::Target;

pub use migrate::{ApplyArgs, MigrateCommand, PlanArgs, RollbackArgs, WayArgs, WhichArgs};

/// Look at supply chains from the command line.
#[derive(Debug, Parser)]
#[command(name = "carto", version, disable_help_subcommand = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Which cluster to ask.
    #[command(flatten)]
    pub connection: Connection,
}

/// Which cluster to ask.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Connection {
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's service account]
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace [default: that of the context, else `default`]
    #[arg(long, short, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show an owner, its blueprint and every step (of a Runnable: every run): what went in, what came out, and what holds it back
    #[command(
        after_help = "Examples:\n  carto tree web-app\n  carto tree -n dev --watch workload/web-app\n  carto tree deliverable/web-app --output json\n  carto tree runnable/unit-tests\n  carto tree web-app --until-ready --timeout 5m"
    )]
    Tree(TreeArgs),
    /// Say what made the outputs of an owner: object, template and inputs of each step, up to the commit
    #[command(
        after_help = "Examples:\n  carto trace web-app\n  carto trace -n dev deliverable/web-app --output json\n  carto trace web-app --output in-toto\n\nOf templates that say when their outputs are good; see docs/behaviour/attribution.md."
    )]
    Trace(TraceArgs),
    /// From the Go Cartographer to carto, and back
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Conventions for pods
    #[command(subcommand)]
    Convention(ConventionCommand),
    /// Presets of pods
    #[command(subcommand)]
    Preset(PresetCommand),
}

/// What to trace.
#[derive(Debug, Clone, clap::Args)]
pub struct TraceArgs {
    /// Owner: a Workload's name, or workload/NAME, deliverable/NAME, runnable/NAME
    #[arg(value_name = "KIND/NAME")]
    pub target: Target,
    /// How to print it
    #[arg(long, short, value_enum, default_value_t = TraceOutput::Tree)]
    pub output: TraceOutput,
}

/// How to print a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceOutput {
    /// Lines for people
    Tree,
    /// JSON for programs
    Json,
    /// in-toto Statements with SLSA provenance, one on each line
    InToto,
}

/// What to do about presets.
#[derive(Debug, Clone, Subcommand)]
pub enum PresetCommand {
    /// Say which presets touch a pod, what each adds, what conflicts, and why others do not touch it
    #[command(
        after_help = "Examples:\n  carto preset explain deployment.yaml\n  carto preset explain -n dev pod/web-0\n  carto preset explain pod.yaml --presets presets/ --namespace-labels team=web\n  carto preset explain pod.yaml --presets db.yaml --diff"
    )]
    Explain(ExplainArgs),
    /// Print presets as MutatingAdmissionPolicies (Kubernetes 1.36), which need no controller, and say what these do not do
    #[command(after_help = "Example:\n  carto preset export -n dev db.yaml | kubectl apply -f -")]
    Export(ExportArgs),
}

/// What to export.
#[derive(Debug, Clone, clap::Args)]
pub struct ExportArgs {
    /// Files or folders with presets
    #[arg(value_name = "FILE|FOLDER", required = true)]
    pub files: Vec<PathBuf>,
}

/// Which pod to explain, and by which presets.
#[derive(Debug, Clone, clap::Args)]
pub struct ExplainArgs {
    /// File with a Pod or with a workload that has a pod template, or an object of the cluster such as pod/NAME or deployment/NAME
    #[arg(value_name = "FILE|KIND/NAME")]
    pub target: String,
    /// File or folder with presets; give it again for more [default: those of the cluster]
    #[arg(long, value_name = "FILE|FOLDER")]
    pub presets: Vec<PathBuf>,
    /// Labels of the namespace, for ClusterPodPresets out of files
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = parse_label, requires = "presets")]
    pub namespace_labels: Vec<(String, String)>,
    /// Print what changes in the pod, a line for each value; values of variables are hidden
    #[arg(long)]
    pub diff: bool,
    /// Show the values of variables, too
    #[arg(long, requires = "diff")]
    pub show_values: bool,
    /// Lines for people, or JSON for programs
    #[arg(long, short, value_enum, default_value_t = Output::Tree)]
    pub output: Output,
}

/// What to do about conventions.
#[derive(Debug, Clone, Subcommand)]
pub enum ConventionCommand {
    /// Write a crate with a convention to begin with: its server, test, Dockerfile, manifests and values for the chart
    #[command(
        after_help = "Example:\n  carto convention new time-zone && cd time-zone && cargo test"
    )]
    New(NewArgs),
    /// Send a PodIntent through servers of conventions, without a cluster, and print the template that comes of it
    #[command(
        after_help = "Example:\n  carto convention render -f podintent.yaml --server https://localhost:9000/ --ca tls.crt --diff"
    )]
    Render(RenderArgs),
}

/// What to send, and where to.
#[derive(Debug, Clone, clap::Args)]
pub struct RenderArgs {
    /// File with a PodIntent
    #[arg(long, short, value_name = "FILE")]
    pub file: PathBuf,
    /// Server of a convention, and its name in receipts; give it again for the next one, in order
    #[arg(long, value_name = "[NAME=]URL", required = true)]
    pub server: Vec<Webhook>,
    /// File with what is known of images: a list as `imageConfig` of a request has it
    #[arg(long, value_name = "FILE")]
    pub images: Option<PathBuf>,
    /// File with the certificates that are trusted [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Print what changed, a line for each value
    #[arg(long)]
    pub diff: bool,
}

/// Which convention to write, and where.
#[derive(Debug, Clone, clap::Args)]
pub struct NewArgs {
    /// Name of the crate, of its image and of the objects: lower case letters, digits and dashes
    pub name: String,
    /// Folder to write it in, as a folder of its name
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub directory: PathBuf,
    /// Folder of convention-webhook-sdk in a clone of carto's repository [default: the published version]
    #[arg(long, value_name = "FOLDER")]
    pub sdk: Option<PathBuf>,
}

/// What to show, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub struct TreeArgs {
    /// `workload/NAME` (wld), `deliverable/NAME` (dlv), `runnable/NAME` (run), or NAME for a workload
    #[arg(value_name = "KIND/NAME")]
    pub target: Target,
    /// Show it again at every change, until interrupted
    #[arg(long, short)]
    pub watch: bool,
    /// Wait until it is ready; exit code 1 when it does not become so in time
    #[arg(long)]
    pub until_ready: bool,
    /// How long to wait with --until-ready, such as 90s, 5m or 1h [default: for ever]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "until_ready")]
    pub timeout: Option<Duration>,
    /// Lines for people, or JSON for programs (with --watch one line for every change)
    #[arg(long, short, value_enum, default_value_t = Output::Tree)]
    pub output: Output,
    /// No colours, even on a terminal (https://no-color.org)
    #[arg(long, env = "NO_COLOR", value_name = "ANYTHING", num_args = 0..=1, default_missing_value = "1", hide_env_values = true)]
    pub no_color: Option<String>,
}

/// How to print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines for people
    Tree,
    /// JSON for programs
    Json,
}

/// `KEY=VALUE`.
fn parse_label(text: &str) -> Result<(String, String), String> {
    let label = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let label = label.map(|(key, value)| (key.to_owned(), value.to_owned()));
    label.ok_or_else(|| "write a label as KEY=VALUE, several with commas between them".to_owned())
}

/// `90`, `90s`, `5m`, `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, seconds) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60),
        Some(number) if text.ends_with('h') => (number, 3600),
        Some(number) => (number, 1),
        None => (text, 1),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "write a whole number of seconds, minutes or hours: 90s, 5m, 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        let seconds = |text: &str| parse_duration(text).map(|duration| duration.as_secs());
        assert_eq!(
            [seconds("90"), seconds("90s"), seconds("5m"), seconds("1h")],
            [Ok(90), Ok(90), Ok(300), Ok(3600)]
        );
        for bad in [
            "",
            "s",
            "5d",
            "-1s",
            "1.5m",
            "99999999999999999999h",
            "9999999999999999999h",
        ] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_timeout_without_something_to_wait_for_is_refused() {
        assert!(Args::try_parse_from(["carto", "tree", "app", "--timeout", "5s"]).is_err());
        assert!(
            Args::try_parse_from(["carto", "tree", "app", "--until-ready", "--timeout", "5s"])
                .is_ok()
        );
    }
}
