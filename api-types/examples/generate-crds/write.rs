//! The program that writes CustomResourceDefinitions to a directory; each crate that has some runs it.

use std::path::PathBuf;
use std::process::ExitCode;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::yaml;

/// Writes them to the directory that is the only argument of `program`.
pub(crate) fn to_directory(program: &str, crds: &[CustomResourceDefinition]) -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return fail(&format!("usage: {program} DIRECTORY"));
    };
    for crd in crds {
        let file = directory.join(yaml::file_name(crd));
        let text = match yaml::render(crd) {
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
