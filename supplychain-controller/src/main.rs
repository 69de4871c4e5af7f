//! The supply-chain controller's process.

use std::process::ExitCode;

use supplychain_controller::args::Args;

/// Many small objects come and go; the system allocator keeps the peak of the first listing for ever.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Two providers in one process would panic at first use, so the choice is made here, once.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    let args = Args::from_process();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(supplychain_controller::run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "logging may not be set up when this is needed"
)]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("supplychain-controller: {error:#}");
    ExitCode::FAILURE
}
