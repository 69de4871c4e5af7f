//! What must not be in the sources.

use std::collections::BTreeSet;

use crate::repository::files;

/// Crates that look at conditions from outside, as users do.
const NOT_THE_PRODUCT: [&str; 3] = ["test-support/", "e2e/", "bench/"];

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

/// The module of conditions and their reasons.
const CONDITIONS: &str = "api-types/src/condition";
/// Where the same words stand for something else: the reasons of events, the columns of tables, the statuses of a condition.
const OTHER_WORDS: [&str; 3] = ["api-types/src/event.rs", "printcolumn = ", ".one_of(&["];

/// The texts of the variants that a file has: `Text,`, or `Variant = "Text",`.
fn texts_of_variants(text: &str) -> impl Iterator<Item = String> + '_ {
    let variants = text
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','));
    variants.filter_map(|variant| {
        let (name, text) = variant.split_once(" = ").unwrap_or((variant, variant));
        let is_name = name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.chars().all(|next| next.is_ascii_alphanumeric());
        is_name.then(|| text.trim_matches('"').to_owned())
    })
}

/// Where a file, tests and comments aside, has one of these words as a whole literal.
fn literals(path: &str, text: &str, words: &BTreeSet<String>) -> Vec<String> {
    let lines = text.lines().take(own_lines(text)).filter(|line| {
        let is_comment = line.trim_start().starts_with("//");
        !is_comment && !OTHER_WORDS.iter().any(|other| line.contains(other))
    });
    let literals = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    literals
        .filter(|literal| words.contains(*literal))
        .map(|literal| format!("{path}: {literal:?}"))
        .collect()
}

/// A condition whose type or reason is spelled where it is made escapes the tables, the metrics' labels and the documents.
#[test]
fn condition_types_and_reasons_are_text_in_one_module_only() {
    let sources = files(&[".rs"]);
    let (ours, others): (Vec<_>, Vec<_>) = sources
        .iter()
        .filter(|(path, _)| path.contains("/src/") && !is_test(path))
        .filter(|(path, _)| !NOT_THE_PRODUCT.iter().any(|it| path.starts_with(it)))
        .filter(|(path, _)| !OTHER_WORDS.contains(&path.as_str()))
        .partition(|(path, _)| path.starts_with(CONDITIONS));
    let mut words: BTreeSet<String> = ours
        .iter()
        .flat_map(|(_, text)| texts_of_variants(text))
        .collect();
    assert!(words.len() > 50, "{words:?}");
    // Two are statuses of conditions, one is a phase of pods, too.
    for word in ["True", "False", "Failed"] {
        assert!(words.remove(word), "{word}");
    }
    let found: Vec<String> = others
        .iter()
        .flat_map(|(path, text)| literals(path, text, &words))
        .collect();
    assert_eq!(found, Vec::<String>::new());

    let planted = "// \"Healthy\"\nlet condition = make(\"Healthy\", \"a Healthy one\");\n";
    assert_eq!(literals("x", planted, &words), ["x: \"Healthy\""]);
}

pub(crate) fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// Lines before the tests at the end of a file.
pub(crate) fn own_lines(text: &str) -> usize {
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

#[test]
fn lines_of_a_file_are_counted_without_its_tests() {
    let inline = "a\nb\n#[cfg(test)]\nmod tests {\nc\n}\n";
    assert_eq!(own_lines(inline), 2);
    let elsewhere = "#[cfg(test)]\nmod tests;\na\n";
    assert_eq!(own_lines(elsewhere), 3);
}
