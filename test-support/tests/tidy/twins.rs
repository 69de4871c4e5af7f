//! Controllers share their code; what one has, another does not have again.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::files;

/// More lines in a row that are the same but for the words of their family are a twin.
const MOST_ALIKE: usize = 5;
/// What names a family; the longest first.
const FAMILY_WORDS: [&str; 11] = [
    "clustersupplychain",
    "clusterdelivery",
    "clusterruntemplate",
    "supplychains",
    "supplychain",
    "deliveries",
    "deliverable",
    "delivery",
    "workload",
    "runnable",
    "runtemplate",
];

/// A line with the family's words, spaces and underlines taken out; nothing for what is no code.
fn shape(line: &str) -> Option<String> {
    let line = line.trim();
    if line.len() < 3 || line.starts_with("//") || line.starts_with("use ") {
        return None;
    }
    let plain: String = line
        .to_lowercase()
        .chars()
        .filter(|character| !matches!(character, ' ' | '_' | '-'))
        .collect();
    Some(
        FAMILY_WORDS
            .iter()
            .fold(plain, |line, word| line.replace(word, "~")),
    )
}

/// Every run of lines in a text, as one text of shapes.
fn runs(text: &str) -> BTreeSet<String> {
    let shapes: Vec<String> = text.lines().filter_map(shape).collect();
    let windows = shapes.windows(MOST_ALIKE + 1);
    windows.map(|lines| lines.join("\n")).collect()
}

fn twins(sources: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut found = Vec::new();
    for (one, runs) in sources {
        for (other, others) in sources.range::<str, _>((
            std::ops::Bound::Excluded(one.as_str()),
            std::ops::Bound::Unbounded,
        )) {
            let alike = runs.intersection(others);
            found.extend(alike.map(|run| format!("{one} and {other}:\n{run}")));
        }
    }
    found
}

#[test]
fn no_controller_has_a_twin_of_anothers_code() {
    let mut sources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in files(&[".rs"]) {
        if let Some((controller, "src")) = path
            .split_once('/')
            .map(|(controller, rest)| (controller, rest.split('/').next().unwrap_or_default()))
            && controller.ends_with("-controller")
        {
            sources
                .entry(controller.to_owned())
                .or_default()
                .extend(runs(&text));
        }
    }
    assert!(sources.len() >= 2, "{:?}", sources.keys());
    assert_eq!(twins(&sources), Vec::<String>::new());
}

#[test]
fn a_twin_in_the_words_of_another_family_is_found() {
    let of = |words: [&str; 3]| {
        let [kind, variable, plural] = words;
        runs(&format!(
            "fn reconcile({variable}: {kind}) {{\n    let queue = {plural}();\n    // why\n    let first = 1;\n    \
             let second = 2;\n\n    let third = first + second;\n    wake({variable}, third);\n    done()\n}}\n"
        ))
    };
    let sources = BTreeMap::from([
        (
            "one".to_owned(),
            of(["Workload", "workload", "supply_chains"]),
        ),
        (
            "other".to_owned(),
            of(["Deliverable", "deliverable", "deliveries"]),
        ),
    ]);
    assert!(!twins(&sources).is_empty());
}
