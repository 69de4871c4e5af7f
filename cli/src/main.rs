//! The `carto` command.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Two providers in one process would panic at first use, so the choice is made here, once.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    let args = cli::args::Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(cli::run(args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// `carto tree app | head` has seen enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[expect(
    clippy::print_stderr,
    reason = "a command line tool speaks to its user"
)]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("carto: {error:#}");
    ExitCode::FAILURE
}
