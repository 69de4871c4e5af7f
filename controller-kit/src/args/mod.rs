//! The command line that all controllers share.
//!
//! Every flag of the Go controller is accepted under its own name and in its own form (spec 8.2): one
//! dash or two, `-flag value` or `-flag=value`, `-Port` with a capital. `go_style` turns such a command
//! line into one that clap reads. Each flag has an environment variable, too; the command line wins.

mod go_style;
mod limits;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Command, FromArgMatches as _};

use go_style::go_style;

pub use limits::LimitArgs;

use crate::process::Program;
use crate::telemetry::LogLevel;
use crate::ytt::MemoryLimit;

/// Owners reconciled at once when nothing is said. The Go controller's 2 were the bottleneck of every
/// larger installation (incident: #929); `docs/compat.md` lists the deviation.
const DEFAULT_CONCURRENCY: usize = 16;

/// Flags of every controller.
#[derive(Debug, Clone, Args)]
pub struct CommonArgs {
    /// File with the credentials for the API server; default: KUBECONFIG, then the pod's own, then ~/.kube/config
    #[arg(long, value_name = "FILE", env = "CARTO_KUBECONFIG", value_parser = path_or_nothing())]
    pub kubeconfig: Option<PathBuf>,

    /// Logs.
    #[command(flatten)]
    pub log: LogArgs,

    /// Ports and certificates.
    #[command(flatten)]
    pub serve: ServeArgs,

    /// Work at once.
    #[command(flatten)]
    pub concurrency: ConcurrencyArgs,

    /// What one owner may ask for.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Leader election.
    #[command(flatten)]
    pub lease: LeaseArgs,

    /// The ytt binary that renders `spec.ytt` templates
    #[arg(long, value_name = "FILE", env = "CARTO_YTT", default_value = "ytt")]
    pub ytt: PathBuf,

    /// Memory that one ytt process may take; at least 128, 0 = no limit. Up to four run at a time: the container needs that and
    /// its own. On Linux only
    #[arg(
        long,
        value_name = "MIB",
        env = "CARTO_YTT_MEMORY_LIMIT",
        default_value = "512",
        value_parser = parse_memory_limit
    )]
    pub ytt_memory_limit: MemoryLimit,

    /// How long work under way may take to end after SIGTERM
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_SHUTDOWN_SECONDS",
        default_value_t = 20
    )]
    pub shutdown_seconds: u64,
}

/// What is logged.
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
}

/// What is served.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// TCP port of the admission webhook
    #[arg(long, value_name = "PORT", env = "CARTO_PORT", default_value_t = 9443)]
    pub port: u16,

    /// Directory with tls.crt and tls.key for the webhook, read again when they change; without it and without --webhook-secret
    /// there is no webhook
    #[arg(
        long,
        value_name = "DIRECTORY",
        env = "CARTO_CERT_DIR",
        value_parser = path_or_nothing(),
        conflicts_with = "webhook_secret"
    )]
    pub cert_dir: Option<PathBuf>,

    /// Secret (in our own namespace) in which the webhook keeps a certificate of its own making, renewed before it expires
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_WEBHOOK_SECRET",
        requires = "webhook_service"
    )]
    pub webhook_secret: Option<String>,

    /// Service (in our own namespace) through which the API server reaches the webhook
    #[arg(long, value_name = "NAME", env = "CARTO_WEBHOOK_SERVICE")]
    pub webhook_service: Option<String>,

    /// ValidatingWebhookConfiguration whose caBundle is kept up to date with --webhook-secret
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_WEBHOOK_CONFIGURATION",
        requires = "webhook_secret"
    )]
    pub webhook_configuration: Option<String>,

    /// Secret (in our own namespace) with the key under which status shows digests of secret values; made when it is empty
    /// or missing, as far as rights allow. Without one no such digest is shown
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_STATUS_KEY_SECRET",
        default_value = "carto-status-key"
    )]
    pub status_key_secret: Option<String>,

    /// TCP port of Prometheus /metrics; 0 = off
    #[arg(
        long,
        value_name = "PORT",
        env = "CARTO_METRICS_PORT",
        default_value_t = 0
    )]
    pub metrics_port: u16,

    /// TCP port of /healthz and /readyz; 0 = off
    #[arg(
        long,
        value_name = "PORT",
        env = "CARTO_HEALTH_PORT",
        default_value_t = 8081
    )]
    pub health_port: u16,

    /// Accepted so that existing command lines work, and unused: Go profiles do not exist here
    #[arg(
        long,
        value_name = "PORT",
        env = "CARTO_PPROF_PORT",
        default_value_t = 0
    )]
    pub pprof_port: u16,

    /// Namespace that this process runs in; default: the pod's own, outside a cluster `default`
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    pub own_namespace: Option<String>,
}

/// How many owners are reconciled at once.
#[derive(Debug, Clone, Args)]
pub struct ConcurrencyArgs {
    /// Workloads reconciled at once; 0 = 16
    #[arg(
        long,
        value_name = "COUNT",
        env = "CARTO_MAX_CONCURRENT_WORKLOADS",
        default_value_t = 0
    )]
    pub max_concurrent_workloads: usize,

    /// Deliverables reconciled at once; 0 = 16
    #[arg(
        long,
        value_name = "COUNT",
        env = "CARTO_MAX_CONCURRENT_DELIVERIES",
        default_value_t = 0
    )]
    pub max_concurrent_deliveries: usize,

    /// Runnables reconciled at once; 0 = 16
    #[arg(
        long,
        value_name = "COUNT",
        env = "CARTO_MAX_CONCURRENT_RUNNABLES",
        default_value_t = 0
    )]
    pub max_concurrent_runnables: usize,
}

/// Leader election.
#[derive(Debug, Clone, Args)]
pub struct LeaseArgs {
    /// Let one replica at a time work; default: true inside a cluster, false outside
    #[arg(long, env = "CARTO_LEADER_ELECT", default_missing_value = "true", num_args = 0..=1, require_equals = true,
          value_name = "BOOL", value_parser = parse_bool, action = ArgAction::Set)]
    pub leader_elect: Option<bool>,

    /// Lease that replicas share; default: the controller's name
    #[arg(long, value_name = "NAME", env = "CARTO_LEASE_NAME")]
    pub lease_name: Option<String>,

    /// Namespace of the Lease; default: our own
    #[arg(long, value_name = "NAME", env = "CARTO_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,

    /// Unique identity of this replica; default: the host name, which is the pod's name
    #[arg(long, value_name = "TEXT", env = "POD_NAME")]
    pub lease_identity: Option<String>,

    /// How long others wait for a leader that is silent
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_LEASE_DURATION_SECONDS",
        default_value_t = 15
    )]
    pub lease_duration_seconds: u64,

    /// How long a leader goes on without reaching the API server; less than the duration
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_LEASE_RENEW_DEADLINE_SECONDS",
        default_value_t = 10
    )]
    pub lease_renew_deadline_seconds: u64,

    /// How often the Lease is renewed, and looked at
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_LEASE_RETRY_SECONDS",
        default_value_t = 2
    )]
    pub lease_retry_seconds: u64,
}

impl ConcurrencyArgs {
    /// Workloads at once.
    pub fn workloads(&self) -> usize {
        or_default(self.max_concurrent_workloads)
    }

    /// Deliverables at once.
    pub fn deliveries(&self) -> usize {
        or_default(self.max_concurrent_deliveries)
    }

    /// Runnables at once.
    pub fn runnables(&self) -> usize {
        or_default(self.max_concurrent_runnables)
    }
}

impl CommonArgs {
    /// Reads a command line, the program's name first.
    ///
    /// # Errors
    /// When a flag is unknown or has a wrong value: the operator must correct the command line. Also when help or the
    /// version is asked for; `exit` prints either.
    pub fn parse(
        program: &Program,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, clap::Error> {
        let matches = command(program).try_get_matches_from(go_style(arguments))?;
        let mut args = Self::from_arg_matches(&matches)?;
        args.forget_what_is_empty();
        Ok(args)
    }

    /// `-cert-dir=` is how the Go controller spells its default (spec 8.2), and an empty variable is how a manifest leaves
    /// one out.
    fn forget_what_is_empty(&mut self) {
        let (serve, lease) = (&mut self.serve, &mut self.lease);
        for path in [&mut self.kubeconfig, &mut serve.cert_dir] {
            path.take_if(|path| path.as_os_str().is_empty());
        }
        for text in [
            &mut serve.webhook_secret,
            &mut serve.webhook_service,
            &mut serve.webhook_configuration,
            &mut serve.own_namespace,
            &mut serve.status_key_secret,
            &mut lease.lease_name,
            &mut lease.lease_namespace,
            &mut lease.lease_identity,
        ] {
            text.take_if(|text| text.is_empty());
        }
    }

    /// [`CommonArgs::shutdown_seconds`] as a duration.
    pub(crate) fn shutdown_deadline(&self) -> Duration {
        Duration::from_secs(self.shutdown_seconds)
    }
}

/// What `--help` says of every controller, after what it says of this one.
const ALL_CONTROLLERS: &str = "Needs the CRDs and the credentials of a kubeconfig or a pod, nothing else. Flags of the Go \
controller are accepted with one dash, too. Each flag can be given by the environment variable shown with it.";

/// The flags of one controller.
fn command(program: &Program) -> Command {
    let summary = program.about.lines().next().unwrap_or_default();
    let command = Command::new(program.name)
        .version(program.version)
        // As with Go's flags the last one counts, so that a line can be appended to.
        .args_override_self(true)
        .max_term_width(120);
    // What is flattened into the arguments comes with a description of its own.
    CommonArgs::augment_args(command)
        .about(summary)
        .long_about(format!("{}\n\n{ALL_CONTROLLERS}", program.about))
}

fn or_default(count: usize) -> usize {
    if count == 0 {
        DEFAULT_CONCURRENCY
    } else {
        count
    }
}

/// A path, which may be empty; clap's own parser of paths refuses that.
fn path_or_nothing() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn parse_memory_limit(text: &str) -> Result<MemoryLimit, String> {
    let mebibytes: u64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no whole number of MiB"))?;
    MemoryLimit::new(mebibytes).map_err(|error| error.to_string())
}

/// The spellings that Go's flag package takes.
fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}
