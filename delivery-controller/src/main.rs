//! The delivery controller's process.

use std::process::ExitCode;

use controller_kit::owner::Deliveries;

/// Many small objects come and go; the system allocator keeps the peak of the first listing for ever.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let start = controller_kit::owner::start::<Deliveries>;
    controller_kit::process::main(&delivery_controller::PROGRAM, start)
}
