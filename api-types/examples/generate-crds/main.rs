//! Writes every CustomResourceDefinition to a directory: `cargo run -p api-types --example generate-crds -- deploy/crds`.

mod yaml;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return fail("usage: generate-crds DIRECTORY");
    };
    for crd in api_types::crds() {
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
