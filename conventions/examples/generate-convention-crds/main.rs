//! Writes the CustomResourceDefinitions of conventions to a directory:
//! `cargo run -p conventions --example generate-convention-crds -- deploy/conventions/crds`.

#[path = "../../../api-types/examples/generate-crds/write.rs"]
mod write;
#[path = "../../../api-types/examples/generate-crds/yaml.rs"]
mod yaml;

use std::process::ExitCode;

fn main() -> ExitCode {
    write::to_directory("generate-convention-crds", &conventions::crds())
}
