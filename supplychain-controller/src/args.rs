//! The command line.

use std::ffi::OsString;

use clap::Parser;
use controller_kit::args::{CommonArgs, go_style};

/// Realizes Workloads through ClusterSupplyChains: selects the supply chain for each Workload, stamps its objects with the
/// rights of the Workload's service account, passes outputs on, and reports in the Workload's status.
///
/// Needs the CRDs and the credentials of a kubeconfig or a pod, nothing else. Flags of the Go controller are accepted
/// with one dash, too. Each flag can be given by the environment variable shown with it.
#[derive(Debug, Clone, Parser)]
#[command(name = "supplychain-controller", version, max_term_width = 120)]
pub struct Args {
    /// What all controllers have in common.
    #[command(flatten)]
    pub common: CommonArgs,
}

impl Args {
    /// Reads the command line of the process; prints help or what is wrong and exits.
    pub fn from_process() -> Self {
        Self::parse_from(go_style(std::env::args_os()))
    }

    /// Reads a command line.
    ///
    /// # Errors
    /// When a flag is unknown or has a wrong value: the operator must correct the command line.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(go_style(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_command_line_of_the_go_controller_is_accepted() {
        let args = parse("supplychain-controller -cert-dir=/cert -metrics-port=9998 -Port 9443 -dev -log-level debug -max-concurrent-workloads=3 -pprof-port 0").unwrap();
        assert_eq!(args.common.serve.metrics_port, 9998);
        assert_eq!(args.common.concurrency.workloads(), 3);
        assert_eq!(args.common.serve.cert_dir.unwrap().to_str(), Some("/cert"));
    }

    #[test]
    fn an_unknown_flag_is_refused() {
        assert!(parse("supplychain-controller --no-such-flag").is_err());
    }
}
