//! `docs/spec-map.md`: where each section of the behaviour specification became code, and what proves it.

use crate::repository::{dangling, names_a_path, read, table};

/// Every section that says how the system behaves, in the order of the specification.
const SECTIONS: [&str; 56] = [
    "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "2.1", "2.2", "2.3", "2.4",
    "2.5", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.8.1", "3.9", "3.10", "3.11",
    "3.12", "3.13", "4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "5", "6", "7", "7.1", "7.2",
    "7.3", "7.4", "7.5", "7.6", "8.1", "8.2", "8.3", "8.4", "9", "13", "A.1", "A.2", "A.3", "A.4",
    "A.5", "A.6",
];

/// The one section without a number of its own.
const CHECKLIST: &str = "B";

fn rows() -> Vec<Vec<String>> {
    table(&read("docs/spec-map.md"), "## Sections")
}

#[test]
fn every_section_has_exactly_one_row() {
    let rows = rows();
    let named: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let expected: Vec<&str> = SECTIONS.into_iter().chain([CHECKLIST]).collect();
    assert_eq!(named, expected);
}

#[test]
fn every_row_names_code_and_tests_that_exist_or_says_why_not() {
    let mut wrong = Vec::new();
    for row in rows() {
        let [section, title, code, tests] = &row[..] else {
            panic!("not four cells: {row:?}");
        };
        assert!(!title.is_empty(), "{section} has no title");
        let built = names_a_path(code) && names_a_path(tests);
        if !built && !tests.contains("not yet: ") {
            wrong.push(format!("{section}: neither code and tests nor a reason"));
        }
        let missing = [code, tests].into_iter().flat_map(|cell| dangling(cell));
        wrong.extend(missing.map(|missing| format!("{section}: {missing}")));
    }
    assert_eq!(wrong, Vec::<String>::new());
}
