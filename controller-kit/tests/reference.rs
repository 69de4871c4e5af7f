//! The table of flags in `docs/behaviour/process.md` is that of the code.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test says what went wrong by panicking, and is told by a variable to write what it compares with"
)]

use std::env;
use std::path::Path;

use clap::{Arg, Args as _, Command};
use controller_kit::args::{OwnerArgs, ProcessArgs};
use test_support::{hold_generated, table_row};

fn row(flag: &Arg) -> String {
    let name = format!("`--{}`", flag.get_long().unwrap());
    let variable = format!("`{}`", flag.get_env().unwrap().to_str().unwrap());
    let defaults = flag.get_default_values().iter();
    let defaults: Vec<String> = defaults
        .map(|default| format!("`{}`", default.to_str().unwrap()))
        .collect();
    let defaults = defaults.join(" ");
    let help = flag.get_help().unwrap().to_string().replace('\n', " ");
    table_row([&name, &variable, &defaults, &help].map(String::as_str))
}

#[test]
fn every_flag_is_in_the_reference() {
    let command = ProcessArgs::augment_args(Command::new("controller"));
    let command = OwnerArgs::augment_args(command);
    let head = ["flag", "variable", "default", "meaning"];
    let mut lines = vec![table_row(head), table_row(["---"; 4])];
    lines.extend(command.get_arguments().map(row));
    assert!(lines.len() > 20, "{lines:?}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/behaviour/process.md");
    let rewrite = env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1");
    hold_generated(&page, "flags", &lines, rewrite);
}
