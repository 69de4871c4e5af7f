//! Text tables for a terminal.

/// Rows of cells under a heading; the first column is flush left, the others right.
pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table with its heading.
    pub(crate) fn new(heading: [&str; N]) -> Self {
        let rows = vec![heading.map(str::to_owned)];
        Self { rows }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// The table as text; each line ends with a line break.
    pub(crate) fn render(&self) -> String {
        let widths: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        });
        let mut rows = self.rows.clone();
        rows.insert(1, widths.map(|width| "-".repeat(width)));
        rows.iter().map(|row| line(row, &widths)).collect()
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).enumerate();
    let cells = cells.map(|(column, (cell, &width))| match column {
        0 => format!("{cell:<width$}"),
        _ => format!("{cell:>width$}"),
    });
    let cells: Vec<String> = cells.collect();
    format!("{}\n", cells.join("  ").trim_end())
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
