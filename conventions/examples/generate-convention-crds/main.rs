//! Writes the CustomResourceDefinitions of conventions to a directory:
//! `cargo run -p conventions --example generate-convention-crds -- deploy/conventions/crds`.

#[path = "../../../api-types/examples/generate-crds/yaml.rs"]
mod yaml;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return fail("usage: generate-convention-crds DIRECTORY");
    };
    for crd in conventions::crds() {
        let file = directory.join(yaml::file_name(&crd));
        let text = match yaml::render(&crd) {
            Ok(text) => text,
            Err(error) => return fail(&format!("{}: {error}", file.display())),
        };
        if let Err(error) = std::fs::write(&file, text) {
            return fail(&format!("{}: {error}", file.display()));
        }
    }
    ExitCode::SUCCESS
}

#[expect(
    clippy::print_stderr,
    reason = "a command-line program says what went wrong"
)]
fn fail(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}
