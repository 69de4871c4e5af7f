//! The conventions controller's process.

use std::process::ExitCode;

/// Many small objects come and go; the system allocator keeps the peak of the first listing for
/// ever.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let start = conventions_controller::start;
    controller_kit::process::main(&conventions_controller::PROGRAM, start)
}
