//! Parts of documents that are written from what the code knows.

use std::fs;
use std::path::Path;

/// Holds a part of a page against the lines that the code gives; with `rewrite` the part is written instead.
///
/// The part stands between `<!-- begin generated: NAME -->` and `<!-- end generated: NAME -->`.
///
/// # Panics
///
/// When the page is not there, has no such part, or says something else.
#[expect(
    clippy::panic,
    reason = "only tests call it; a test says what went wrong by panicking"
)]
pub fn hold_generated(page: &Path, name: &str, lines: &[String], rewrite: bool) {
    let shown = page.display();
    let read = fs::read_to_string(page);
    let text = read.unwrap_or_else(|error| panic!("{shown}: {error}"));
    let Some(wanted) = with_part(&text, name, lines) else {
        panic!("{shown} has no generated part {name:?}");
    };
    if rewrite {
        let written = fs::write(page, wanted);
        written.unwrap_or_else(|error| panic!("{shown}: {error}"));
    } else {
        assert_eq!(text, wanted, "{shown} is not what `make generate` writes");
    }
}

/// The text with other lines in a part.
fn with_part(text: &str, name: &str, lines: &[String]) -> Option<String> {
    let begin = format!("<!-- begin generated: {name} -->\n");
    let end = format!("<!-- end generated: {name} -->\n");
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    let lines = lines.join("\n");
    Some(format!("{before}{begin}\n{lines}\n\n{end}{after}"))
}

/// A row of a table; a `|` in a cell would end it.
pub fn table_row<'c>(cells: impl IntoIterator<Item = &'c str>) -> String {
    let cells = cells.into_iter();
    let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_the_rest_stays() {
        let page = |part: &str| {
            format!("a\n<!-- begin generated: x -->\n{part}<!-- end generated: x -->\nb\n")
        };
        let lines = ["| 1 |".to_owned(), "| 2 |".to_owned()];
        let written = with_part(&page("old\n"), "x", &lines).unwrap();
        assert_eq!(written, page("\n| 1 |\n| 2 |\n\n"));
        assert_eq!(with_part(&written, "x", &lines), Some(written.clone()));
        assert_eq!(with_part(&written, "y", &lines), None);
    }

    #[test]
    fn a_cell_cannot_end_its_row() {
        assert_eq!(table_row(["`a|b`", "c"]), "| `a\\|b` | c |");
    }
}
