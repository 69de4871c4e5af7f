//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;

use crate::family::Family;

/// Measures the controllers against a bare client on a real API server.
///
/// Everything is measured in one run on one machine, and given as a ratio: seconds alone say more about the machine than
/// about a controller. See docs/benchmarks.md.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench")]
pub(crate) struct Args {
    /// Which controllers are measured: supply-chain (and fairness), delivery, runnable, conventions.
    #[arg(
        long = "family",
        value_delimiter = ',',
        default_value = "supply-chain,delivery,runnable,conventions",
        value_parser = Family::named,
    )]
    pub(crate) families: Vec<&'static Family>,
    /// Numbers of Workloads; each is measured on a control plane of its own.
    #[arg(long, value_delimiter = ',', default_value = "300,1000")]
    pub(crate) owners: Vec<usize>,
    /// Numbers of Deliverables, likewise.
    #[arg(long, value_delimiter = ',', default_value = "300")]
    pub(crate) deliverables: Vec<usize>,
    /// Number of Runnables.
    #[arg(long, default_value_t = 1000)]
    pub(crate) runnables: usize,
    /// How often each Runnable is run again, at the least.
    #[arg(long, default_value_t = 8)]
    pub(crate) reruns: usize,
    /// Number of PodIntents.
    #[arg(long, default_value_t = 1000)]
    pub(crate) intents: usize,
    /// Conventions that are for each PodIntent.
    #[arg(long, default_value_t = 5)]
    pub(crate) conventions: usize,
    /// Different images of the PodIntents.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) images: u16,
    /// Images with bills of materials of 20 MB that are read afterwards; 0 leaves this phase out.
    #[arg(long, default_value_t = 200)]
    pub(crate) bom_images: usize,
    /// Presets in the namespace of pods whose admission is measured; 0 leaves this phase out, as does
    /// --counts-only.
    #[arg(long, default_value_t = 1000)]
    pub(crate) presets: usize,
    /// Number of Workloads whose chain says when its outputs are good, against one that does not; 0 leaves this phase out.
    #[arg(long, default_value_t = 300)]
    pub(crate) attributed: usize,
    /// Steps of the supply chain and of the delivery.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub(crate) steps: u8,
    /// Reconciles forced in the steady state.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) reconciles: u64,
    /// Single changes of an owner's source.
    #[arg(long, default_value_t = 50)]
    pub(crate) source_changes: usize,
    /// Owners that settle while single owners of another namespace are measured; 0 leaves this phase out.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) crowd: usize,
    /// Numbers of namespaces that the crowd is spread over; each is measured on a control plane of its own.
    #[arg(long, value_delimiter = ',', default_value = "1,500")]
    pub(crate) crowd_namespaces: Vec<NonZeroUsize>,
    /// Single owners that are measured alone, and again beside the crowd; of fewer than 100, the p99 is the longest.
    #[arg(long, default_value_t = 100)]
    pub(crate) singles: usize,
    /// Measures only the single Workloads, alone and beside the crowd.
    #[arg(long)]
    pub(crate) fairness_only: bool,
    /// Requests in flight of the bare client; without it, the best of 4, 8, 16 and 32 is found first.
    #[arg(long)]
    pub(crate) concurrency: Option<usize>,
    /// The binary of the one controller named by --family; without it, the one beside this program, built if it is not there.
    #[arg(long, value_name = "PATH")]
    pub(crate) controller: Option<PathBuf>,
    /// A further argument of the controller; may be repeated.
    #[arg(
        long = "controller-arg",
        value_name = "ARG",
        allow_hyphen_values = true
    )]
    pub(crate) more: Vec<String>,
    /// A further argument of kube-apiserver; may be repeated. The bars are for a server with its defaults.
    #[arg(
        long = "api-server-arg",
        value_name = "ARG",
        allow_hyphen_values = true
    )]
    pub(crate) api_server: Vec<String>,
    /// Where the controller serves its metrics; 0 takes a free port.
    #[arg(long, default_value_t = 0)]
    pub(crate) metrics_port: u16,
    /// Judges only what is the same on any machine: how many requests are sent. Times are taken once and not judged.
    #[arg(long)]
    pub(crate) counts_only: bool,
    /// Writes all figures to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keeps the controller's logs and the audit logs in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) logs: Option<PathBuf>,
    /// Ends well even when a bar is missed.
    #[arg(long)]
    pub(crate) lenient: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn parsed(line: &str) -> Result<Args, clap::Error> {
        let words = line.split_whitespace();
        Args::try_parse_from(["bench"].into_iter().chain(words))
    }

    #[test]
    fn all_is_measured_unless_something_is_chosen() {
        Args::command().debug_assert();
        let args = parsed("").unwrap();
        let kinds: Vec<&str> = args.families.iter().map(|family| family.kind).collect();
        assert_eq!(kinds, ["Workload", "Deliverable", "Runnable", "PodIntent"]);
        assert_eq!(args.owners, [300, 1000]);
        let crowds: Vec<usize> = args.crowd_namespaces.iter().map(|it| it.get()).collect();
        assert_eq!(crowds, [1, 500]);
        // The bars are for a server with its defaults.
        assert_eq!(args.api_server, [""; 0]);
        let chosen = parsed("--owners 30,300 --family runnable --api-server-arg --a=b").unwrap();
        assert_eq!(
            (chosen.owners, chosen.families[0].kind),
            (vec![30, 300], "Runnable")
        );
        assert_eq!(chosen.api_server, ["--a=b"]);
    }

    #[test]
    fn a_crowd_in_no_namespace_and_a_family_that_nobody_knows_are_refused() {
        assert!(parsed("--crowd-namespaces 0").is_err());
        let unknown = parsed("--family pod").unwrap_err().to_string();
        let known = "one of: supply-chain, delivery, runnable, conventions";
        assert!(unknown.contains(known), "{unknown}");
    }
}
