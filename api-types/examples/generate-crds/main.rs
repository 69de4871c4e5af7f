//! Writes every CustomResourceDefinition to a directory: `cargo run -p api-types --example generate-crds -- deploy/crds`.

mod write;
mod yaml;

use std::process::ExitCode;

fn main() -> ExitCode {
    write::to_directory("generate-crds", &api_types::crds())
}
