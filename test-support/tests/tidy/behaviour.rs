//! `docs/behaviour`: what the product does, rule by rule. Each rule has an anchor, by which code, tests and documents cite it,
//! and a row in `docs/behaviour/map.md` that names the code and the tests.

use std::collections::BTreeSet;

use crate::repository::{dangling, files, names_a_path, read, table};

const FOLDER: &str = "docs/behaviour/";

/// What a page has before a rule.
const ANCHOR: &str = "<a id=\"";

/// Every anchor as it is cited, in the order of the files and of the rules in them.
fn anchors() -> Vec<String> {
    let mut anchors = Vec::new();
    for (path, text) in files(&[".md"]) {
        if let Some(page) = path.strip_prefix(FOLDER) {
            anchors.extend(anchors_of(&text).map(|anchor| format!("{page}#{anchor}")));
        }
    }
    anchors
}

fn anchors_of(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(ANCHOR));
    lines.filter_map(|rest| rest.strip_suffix("\"></a>"))
}

fn rows() -> Vec<Vec<String>> {
    table(&read("docs/behaviour/map.md"), "## Rules")
}

/// The anchor that a row is about: it links to it.
fn anchor_of(cell: &str) -> &str {
    let link = cell.split_once("](").map(|(_, link)| link);
    link.and_then(|link| link.strip_suffix(')')).unwrap_or(cell)
}

#[test]
fn every_rule_has_one_anchor_and_one_row() {
    let anchors = anchors();
    let distinct: BTreeSet<&String> = anchors.iter().collect();
    assert_eq!(anchors.len(), distinct.len(), "{anchors:?}");
    assert!(anchors.len() > 80, "{anchors:?}");
    let rows = rows();
    let mut named: Vec<&str> = rows.iter().map(|row| anchor_of(&row[0])).collect();
    named.sort_unstable();
    let mut expected: Vec<&str> = anchors.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(named, expected);
}

#[test]
fn every_row_names_code_and_tests_that_exist_or_says_why_not() {
    let mut wrong = Vec::new();
    for row in rows() {
        let [rule, code, tests] = &row[..] else {
            panic!("not three cells: {row:?}");
        };
        let built = names_a_path(code) && names_a_path(tests);
        if !built && !tests.contains("not yet: ") {
            wrong.push(format!("{rule}: neither code and tests nor a reason"));
        }
        let missing = [code, tests].into_iter().flat_map(|cell| dangling(cell));
        wrong.extend(missing.map(|missing| format!("{rule}: {missing}")));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// What a text cites of these pages, wherever it stands: `page.md#anchor`.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    let cited = text.split("behaviour/").skip(1);
    cited.filter_map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || ".#-_".contains(c)));
        let cited = &rest[..end.unwrap_or(rest.len())];
        cited.contains(".md#").then(|| cited.trim_end_matches('.'))
    })
}

/// What a page links to among these pages, or in itself.
fn links<'t>(page: &str, text: &'t str) -> impl Iterator<Item = String> + use<'t> {
    let page = page.to_owned();
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split([')', ' ']).next());
    targets.filter_map(move |target| {
        let (file, anchor) = target.split_once('#')?;
        match file {
            "" => Some(format!("{page}#{anchor}")),
            file if file.contains([':', '/']) => None,
            file => Some(format!("{file}#{anchor}")),
        }
    })
}

#[test]
fn every_anchor_that_is_cited_exists() {
    let anchors: BTreeSet<String> = anchors().into_iter().collect();
    let mut wrong = Vec::new();
    let mut cited = 0;
    for (path, text) in files(&[]) {
        let mut names: Vec<String> = citations(&text).map(str::to_owned).collect();
        if let Some(page) = path.strip_prefix(FOLDER) {
            names.extend(links(page, &text));
        }
        cited += names.len();
        let missing = names.into_iter().filter(|name| !anchors.contains(name));
        wrong.extend(missing.map(|name| format!("{path}: {name}")));
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cited > 200, "{cited} citations");
}

#[test]
fn citations_and_links_are_read() {
    let text = "(see docs/behaviour/tags.md#strings). In docs/behaviour/README.md it is not.";
    assert_eq!(citations(text).collect::<Vec<_>>(), ["tags.md#strings"]);
    let page = "[a](#here), [b](paths.md#dialect), [c](../compat.md), [d](https://e.example/#f)";
    let found: Vec<String> = links("tags.md", page).collect();
    assert_eq!(found, ["tags.md#here", "paths.md#dialect"]);
    let rules = "<a id=\"one\"></a>\n## One\ntext <a id=\"no\"></a>\n";
    assert_eq!(anchors_of(rules).collect::<Vec<_>>(), ["one"]);
}

/// The letter and number that a rule of admission has, as in `S4`.
fn code_of(rule: &str) -> Option<&str> {
    let code = rule.split([' ', ',']).next()?;
    let (letter, number) = code.split_at_checked(1)?;
    let is_code = letter.chars().all(|c| c.is_ascii_uppercase())
        && number.parse::<u8>().is_ok_and(|number| number > 0);
    is_code.then_some(code)
}

#[test]
fn every_case_of_the_admission_corpus_names_a_rule_of_the_reference() {
    let page = read("docs/behaviour/admission.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let mut known: BTreeSet<String> = rows.filter_map(code_of).map(str::to_owned).collect();
    // Deliveries share rules with supply chains; the page names them in one row.
    known.extend((1..=11).map(|number| format!("D{number}")));
    let mut named = BTreeSet::new();
    for (path, text) in files(&[".yaml"]) {
        if !path.starts_with("api-types/tests/corpus/") {
            continue;
        }
        let lines = text.lines().map(|line| line.trim_start_matches([' ', '-']));
        let rules = lines.filter_map(|line| line.strip_prefix("rule: "));
        for code in rules.filter_map(code_of) {
            assert!(known.contains(code), "{path}: no rule {code}");
            named.insert(code.to_owned());
        }
    }
    assert!(named.len() > 30, "{named:?}");
}
