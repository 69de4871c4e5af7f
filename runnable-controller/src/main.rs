//! The runnable controller's process.

use std::process::ExitCode;

/// Many small objects come and go; the system allocator keeps the peak of the first listing for ever.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    controller_kit::process::main(&runnable_controller::PROGRAM, runnable_controller::start)
}
