//! The table of flags in `docs/behaviour/conventions.md` is that of the code.

#![expect(
    clippy::disallowed_methods,
    reason = "a variable says that the test is to write what it compares with"
)]

use std::env;
use std::path::Path;

use clap::{Args as _, Command};
use conventions_controller::ConventionArgs;
use test_support::{hold_generated, table_row};

#[test]
fn every_flag_of_its_own_is_in_the_reference() {
    let command = ConventionArgs::augment_args(Command::new("conventions-controller"));
    let head = ["flag", "variable", "default", "meaning"];
    let mut lines = vec![table_row(head), table_row(["---"; 4])];
    for flag in command.get_arguments() {
        let name = format!("`--{}`", flag.get_long().unwrap());
        let variable = format!("`{}`", flag.get_env().unwrap().to_str().unwrap());
        let defaults = flag.get_default_values().iter();
        let default: Vec<&str> = defaults.map(|default| default.to_str().unwrap()).collect();
        let default = match default[..] {
            [] => String::new(),
            _ => format!("`{}`", default.join(" ")),
        };
        let help = flag.get_help().unwrap().to_string().replace('\n', " ");
        lines.push(table_row(
            [&name, &variable, &default, &help].map(String::as_str),
        ));
    }
    assert!(lines.len() > 20, "{lines:?}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/behaviour/conventions.md");
    let rewrite = env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1");
    hold_generated(&page, "flags", &lines, rewrite);
}
