//! The supply-chain controller's process.

use std::process::ExitCode;

use controller_kit::process;
use supplychain_controller::{PROGRAM, wire_up};

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
    process::main(&PROGRAM, wire_up)
}
