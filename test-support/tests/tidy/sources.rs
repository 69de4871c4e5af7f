//! What must not be in the sources.

use crate::repository::files;

/// Longer files, tests aside, say at their top why they are one thing.
const MOST_LINES: usize = 500;
const REASON: &str = "//! One thing: ";

/// Written in pieces, so that this file does not hold what it forbids.
fn found(path: &str, text: &str, forbidden: &[[&str; 2]]) -> Vec<String> {
    let forbidden = forbidden.iter().map(|pieces| pieces.concat());
    forbidden
        .filter(|word| text.contains(word))
        .map(|word| format!("{path}: {word}"))
        .collect()
}

#[test]
fn no_test_is_left_out_and_nothing_is_left_to_do() {
    let forbidden = [["#[", "ignore"], ["todo", "!("], ["unimplemented", "!("]];
    let sources = files(&[".rs"]);
    let wrong: Vec<String> = sources
        .iter()
        .flat_map(|(path, text)| found(path, text, &forbidden))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

/// Where packages come from is for the user's own settings to say, and nobody else has our folders.
#[test]
fn no_registry_and_no_machine_is_named() {
    let forbidden = [
        ["crates", ".io"],
        ["proxy.", "golang"],
        ["sum.", "golang"],
        ["registry.", "npm"],
        ["npmjs", "."],
        ["pypi", "."],
        ["python", "hosted"],
        ["debian", ".org"],
        ["ubuntu", ".com"],
        ["/ro", "ot/"],
        ["/ho", "me/"],
        ["/wo", "rk/"],
    ];
    let locks = ["Cargo.lock", "go.sum"];
    let wrong: Vec<String> = files(&[])
        .iter()
        .filter(|(path, _)| !locks.iter().any(|lock| path.ends_with(lock)))
        .flat_map(|(path, text)| found(path, text, &forbidden))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn long_files_say_why_they_are_one_thing() {
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    let wrong: Vec<String> = files(&[".rs"])
        .iter()
        .filter(|(path, text)| !is_test(path) && own_lines(text) > MOST_LINES && !says_why(text))
        .map(|(path, text)| format!("{path}: {} lines", own_lines(text)))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

/// Lines before the tests at the end of a file.
fn own_lines(text: &str) -> usize {
    let is_test = |line: &&str| line.starts_with("#[cfg(test)]");
    let tests = text.lines().enumerate().filter(|(_, line)| is_test(line));
    // `#[cfg(test)] mod tests;` may also stand at the top, where nothing of the file is a test.
    let module = tests.filter(|(at, _)| {
        let next = text.lines().nth(at + 1).unwrap_or_default();
        next.starts_with("mod ") && next.ends_with('{')
    });
    let first = module.map(|(at, _)| at).next();
    first.unwrap_or_else(|| text.lines().count())
}

fn says_why(text: &str) -> bool {
    text.lines().take(15).any(|line| line.starts_with(REASON))
}

#[test]
fn lines_of_a_file_are_counted_without_its_tests() {
    let inline = "a\nb\n#[cfg(test)]\nmod tests {\nc\n}\n";
    assert_eq!(own_lines(inline), 2);
    let elsewhere = "#[cfg(test)]\nmod tests;\na\n";
    assert_eq!(own_lines(elsewhere), 3);
    assert!(says_why("//! x\n//!\n//! One thing: a table.\n"));
    assert!(!says_why("//! x\n"));
}
