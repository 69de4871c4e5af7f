//! The command line of a controller: the flags of every process, and those that this controller has besides.
//!
//! Every flag of the Go controllers is accepted under its own name and in its own form
//! (docs/behaviour/process.md#flags): one
//! dash or two, `-flag value` or `-flag=value`, `-Port` with a capital. `go_style` turns such a command
//! line into one that clap reads. Those that a controller has no use for are taken and not shown. Each flag
//! has an environment variable, too; the command line wins.

mod accounts;
mod go_style;
mod label_selector;
mod limits;
mod owners;
mod shard;
#[cfg(test)]
mod tests;
mod webhook;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _, value_parser};

use go_style::go_style;
use http::Uri;

pub use accounts::AccountArgs;
pub use limits::LimitArgs;
pub use owners::OwnerArgs;
pub use shard::{Namespaces, ShardArgs};
pub use webhook::WebhookArgs;

use crate::lease::LeaseSettings;
use crate::process::Program;
use crate::telemetry::LogLevel;

/// Objects reconciled at once when nothing is said. The Go controller's 2 were the bottleneck of every
/// larger installation (incident: #929); `docs/compat.md` lists the deviation.
const DEFAULT_CONCURRENCY: usize = 16;

/// Flags of the Go controller. A controller that has no use for one takes it all the same: command lines
/// that were written for the Go controller go on working.
const GO_FLAGS: [&str; 10] = [
    "port",
    "cert-dir",
    "pprof-port",
    "max-concurrent-deliveries",
    "max-concurrent-runnables",
    "max-concurrent-workloads",
    // Those of the logs of kubebuilder's managers, of which Cartographer Conventions is one.
    "zap-encoder",
    "zap-log-level",
    "zap-stacktrace-level",
    "zap-time-encoding",
];
/// The same, of those that need no value.
const GO_SWITCHES: [&str; 1] = ["zap-devel"];

/// The flag that says how many objects a controller reconciles at once. The Go controller has one for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyFlag {
    name: &'static str,
    objects: &'static str,
}

impl ConcurrencyFlag {
    /// Its name, without dashes, and the word for the objects.
    pub const fn new(name: &'static str, objects: &'static str) -> Self {
        Self { name, objects }
    }
}

/// A command line that was read.
#[derive(Debug, Clone)]
pub struct Parsed<F> {
    /// The flags of every process.
    pub process: ProcessArgs,
    /// Those of this controller.
    pub own: F,
}

/// Flags of every controller.
#[derive(Debug, Clone, Args)]
pub struct ProcessArgs {
    /// File with the credentials for the API server; default: KUBECONFIG, then the pod's own, then ~/.kube/config
    #[arg(long, value_name = "FILE", env = "CARTO_KUBECONFIG", value_parser = path_or_nothing())]
    pub kubeconfig: Option<PathBuf>,

    /// Logs and traces.
    #[command(flatten)]
    pub log: LogArgs,

    /// Ports of the probes.
    #[command(flatten)]
    pub serve: ServeArgs,

    /// Objects reconciled at once; its flag has a name of each controller's own.
    #[arg(skip)]
    pub concurrency: usize,

    /// Leader election.
    #[command(flatten)]
    pub lease: LeaseArgs,

    /// How long work under way may take to end after SIGTERM
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_SHUTDOWN_SECONDS",
        default_value_t = 20
    )]
    pub shutdown_seconds: u64,
}

/// What the process tells of itself.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// Log lines for humans instead of JSON
    #[arg(long, env = "CARTO_DEV", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true,
          value_name = "BOOL", value_parser = parse_bool, action = ArgAction::Set)]
    pub dev: bool,

    /// What is logged; may be changed later with PUT /debug/log-level on the health port, from inside the pod
    #[arg(long, env = "CARTO_LOG_LEVEL", default_value = "info", value_name = "LEVEL",
          value_parser = PossibleValuesParser::new(LogLevel::NAMES).try_map(|text| text.parse::<LogLevel>()))]
    pub log_level: LogLevel,

    /// URL of an OpenTelemetry collector, such as http://collector:4318, that gets a trace of each reconcile by OTLP over HTTP;
    /// default: nothing is traced
    #[arg(
        long,
        value_name = "URL",
        env = "CARTO_OTLP_ENDPOINT",
        value_parser = collector
    )]
    pub otlp_endpoint: Option<Uri>,
}

/// What is served.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// TCP port of Prometheus /metrics; 0 = off
    #[arg(
        long,
        aliases = ["metrics-addr", "metrics-bind-address"],
        value_name = "PORT",
        env = "CARTO_METRICS_PORT",
        default_value_t = 0,
        value_parser = port_of_all
    )]
    pub metrics_port: u16,

    /// TCP port of /healthz and /readyz; 0 = off
    #[arg(
        long,
        aliases = ["probes-addr", "health-probe-bind-address"],
        value_name = "PORT",
        env = "CARTO_HEALTH_PORT",
        default_value_t = 8081,
        value_parser = port_of_all
    )]
    pub health_port: u16,

    /// Namespace that this process runs in; default: the pod's own, outside a cluster `default`
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    pub own_namespace: Option<String>,
}

/// Leader election.
#[derive(Debug, Clone, Args)]
pub struct LeaseArgs {
    /// Let one replica at a time work; default: true inside a cluster, false outside
    #[arg(long, alias = "enable-leader-election", env = "CARTO_LEADER_ELECT", default_missing_value = "true", num_args = 0..=1, require_equals = true,
          value_name = "BOOL", value_parser = parse_bool, action = ArgAction::Set)]
    pub leader_elect: Option<bool>,

    /// Lease that replicas share; default: the controller's name, with that of its shard behind it
    #[arg(long, value_name = "NAME", env = "CARTO_LEASE_NAME")]
    pub lease_name: Option<String>,

    /// Namespace of the Lease; default: our own
    #[arg(long, value_name = "NAME", env = "CARTO_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,

    /// Unique identity of this replica; default: the host name, which is the pod's name
    #[arg(long, value_name = "TEXT", env = "POD_NAME")]
    pub lease_identity: Option<String>,

    /// How long others wait for a leader that is silent; default: 15, or 10 with --share-owners
    #[arg(long, value_name = "SECONDS", env = "CARTO_LEASE_DURATION_SECONDS")]
    pub lease_duration_seconds: Option<u64>,

    /// How long a leader goes on without reaching the API server; less than the duration; default: 10, or 6 with
    /// --share-owners
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_LEASE_RENEW_DEADLINE_SECONDS"
    )]
    pub lease_renew_deadline_seconds: Option<u64>,

    /// How often the Lease is renewed, and looked at
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_LEASE_RETRY_SECONDS",
        default_value_t = 2
    )]
    pub lease_retry_seconds: u64,
}

impl LeaseArgs {
    /// How patient replicas are; `shares` is whether they share the owners: then a part of these waits for the patience of
    /// the others whenever one of them dies.
    pub(crate) fn patience(&self, shares: bool, settings: &mut LeaseSettings) {
        let (duration, deadline) = if shares { (10, 6) } else { (15, 10) };
        let seconds = Duration::from_secs;
        settings.duration = seconds(self.lease_duration_seconds.unwrap_or(duration));
        settings.renew_deadline = seconds(self.lease_renew_deadline_seconds.unwrap_or(deadline));
        settings.retry = seconds(self.lease_retry_seconds);
    }
}

impl<F: Args> Parsed<F> {
    /// Reads a command line, the program's name first.
    ///
    /// # Errors
    /// When a flag is unknown or has a wrong value: the operator must correct the command line. Also when help or the
    /// version is asked for; `exit` prints either.
    pub fn parse(
        program: &Program,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, clap::Error> {
        let mut command = command::<F>(program);
        let mut matches = command.try_get_matches_from_mut(go_style(arguments))?;
        forget_what_is_empty(&command, &mut matches);
        let concurrency = matches.get_one(program.concurrency.name).copied();
        let mut process = ProcessArgs::from_arg_matches(&matches)?;
        process.concurrency = concurrency
            .filter(|count| *count > 0)
            .unwrap_or(DEFAULT_CONCURRENCY);
        let own = F::from_arg_matches(&matches)?;
        Ok(Self { process, own })
    }
}

impl ProcessArgs {
    /// [`ProcessArgs::shutdown_seconds`] as a duration.
    pub(crate) fn shutdown_deadline(&self) -> Duration {
        Duration::from_secs(self.shutdown_seconds)
    }
}

/// `-cert-dir=` is how the Go controller spells its default (docs/behaviour/process.md#flags), and
/// an empty variable is how a manifest leaves
/// one out.
fn forget_what_is_empty(command: &Command, matches: &mut ArgMatches) {
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let given = matches.try_get_raw(id).ok().flatten();
        if given.is_some_and(|mut given| given.all(OsStr::is_empty)) {
            // It is one of the command's own, so there is something to clear.
            let _ = matches.try_clear_id(id);
        }
    }
}

/// What `--help` says of every controller, after what it says of this one.
const ALL_CONTROLLERS: &str = "Needs the CRDs and the credentials of a kubeconfig or a pod, nothing else. Flags of the Go \
controller are accepted with one dash, too. Each flag can be given by the environment variable shown with it.";

/// The flags of one controller.
fn command<F: Args>(program: &Program) -> Command {
    let summary = program.about.lines().next().unwrap_or_default();
    let command = Command::new(program.name)
        .version(program.version)
        // As with Go's flags the last one counts, so that a line can be appended to.
        .args_override_self(true)
        .max_term_width(120)
        .arg(concurrency(program.concurrency));
    // What is flattened into the arguments comes with a description of its own.
    let command = F::augment_args(ProcessArgs::augment_args(command))
        .about(summary)
        .long_about(format!("{}\n\n{ALL_CONTROLLERS}", program.about));
    let is_used = |flag: &str| {
        command
            .get_arguments()
            .any(|it| it.get_long() == Some(flag))
    };
    let unused: Vec<&str> = GO_FLAGS.into_iter().filter(|flag| !is_used(flag)).collect();
    let unused = unused.into_iter().map(|flag| Arg::new(flag).long(flag));
    let switches = GO_SWITCHES.into_iter().map(|flag| {
        let switch = Arg::new(flag).long(flag).num_args(0..=1);
        switch.require_equals(true)
    });
    command.args(unused.chain(switches).map(|flag| flag.hide(true)))
}

fn concurrency(ConcurrencyFlag { name, objects }: ConcurrencyFlag) -> Arg {
    let variable = format!("CARTO_{}", name.to_uppercase().replace('-', "_"));
    Arg::new(name)
        .long(name)
        .value_name("COUNT")
        // A command line is read once, and what is known of its flags lives as long as the process.
        .env(&*variable.leak())
        .help(format!("{objects} reconciled at once; 0 = 16"))
        .default_value("0")
        .value_parser(value_parser!(usize))
}

/// A port, or as kubebuilder's managers have it an address of all interfaces, such as `:8080`.
fn port_of_all(text: &str) -> Result<u16, String> {
    let all = ["0.0.0.0:", "[::]:", ":"];
    let port = all.iter().find_map(|all| text.strip_prefix(all));
    let port = port.unwrap_or(text);
    let told = |_| "it is neither a port nor an address of all interfaces such as :8080".to_owned();
    port.parse().map_err(told)
}

/// A path, which may be empty; clap's own parser of paths refuses that.
fn path_or_nothing() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// An empty one is none.
fn collector(text: &str) -> Result<Uri, String> {
    if text.is_empty() {
        return Ok(Uri::default());
    }
    let uri = text.parse::<Uri>().map_err(|error| error.to_string())?;
    match (uri.scheme_str(), uri.query()) {
        (Some("http" | "https"), None) => Ok(uri),
        _ => Err("it is no URL such as http://collector:4318".to_owned()),
    }
}

/// The spellings that Go's flag package takes.
fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}
