//! Command lines in the style of Go's flag package.

use std::ffi::OsString;

/// Turns `-cert-dir=/cert`, `-Port 9443` and `-dev` into `--cert-dir=/cert`, `--port 9443` and `--dev`.
///
/// The first argument is the program's name and stays. Flags of one letter (`-h`), numbers, and what
/// follows `--` stay as well.
pub(super) fn go_style(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut only_values = false;
    let mut arguments = arguments.into_iter();
    let program = arguments.next();
    let rest = arguments.map(|argument| {
        only_values |= argument == "--";
        if only_values {
            argument
        } else {
            long_flag(argument)
        }
    });
    program.into_iter().chain(rest).collect()
}

fn long_flag(argument: OsString) -> OsString {
    let Some(flag) = argument.to_str().and_then(|text| text.strip_prefix('-')) else {
        return argument;
    };
    let flag = flag.strip_prefix('-').unwrap_or(flag);
    let (name, value) = flag
        .split_once('=')
        .map_or((flag, None), |(name, value)| (name, Some(value)));
    if name.len() < 2 || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return argument;
    }
    let name = if name == "Port" { "port" } else { name };
    match value {
        Some(value) => format!("--{name}={value}").into(),
        None => format!("--{name}").into(),
    }
}
