//! Text tables for a terminal.

use std::fmt::Write as _;

/// Rows of cells under a heading; the first column is flush left, the others right.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with its heading.
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self {
            rows: vec![heading.map(str::to_owned).to_vec()],
        }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The table as text; each line ends with a line break.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            text.push_str(line(row, &widths).trim_end());
            text.push('\n');
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                text.push_str(&rule.join("  "));
                text.push('\n');
            }
        }
        text
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (column, (cell, &width)) in row.iter().zip(widths).enumerate() {
        let written = if column == 0 {
            write!(text, "{cell:<width$}")
        } else {
            write!(text, "  {cell:>width$}")
        };
        written.expect("writing to a String cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_characters() {
        let mut table = Table::new(["what", "measured", ""]);
        table.row(["cold ≤".into(), "1.2".into(), "pass".into()]);
        table.row(["x".into(), "10 000.0".into(), "MISS".into()]);
        let expected = "\
what    measured
------  --------  ----
cold ≤       1.2  pass
x       10 000.0  MISS
";
        assert_eq!(table.render(), expected);
    }
}
