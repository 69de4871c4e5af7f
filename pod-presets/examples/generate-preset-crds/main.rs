//! Writes the CustomResourceDefinitions of presets to a directory:
//! `cargo run -p pod-presets --example generate-preset-crds -- deploy/conventions/crds`; with `optional` behind it, the one
//! that not every cluster wants.

#[path = "../../../api-types/examples/generate-crds/write.rs"]
mod write;
#[path = "../../../api-types/examples/generate-crds/yaml.rs"]
mod yaml;

use std::process::ExitCode;

fn main() -> ExitCode {
    let is_optional = std::env::args_os()
        .nth(2)
        .is_some_and(|it| it == "optional");
    let crds = if is_optional {
        pod_presets::optional_crds()
    } else {
        pod_presets::crds()
    };
    write::to_directory("generate-preset-crds", &crds)
}
