//! Text tables for a terminal.

/// Rows of cells under a heading; the first column is flush left, the others right. Each line ends
/// with a line break.
pub(crate) fn render(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let ruler: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let (heading, others) = rows.split_at(rows.len().min(1));
    let lines = heading.iter().chain([&ruler]).chain(others);
    lines.map(|row| line(row, &widths)).collect()
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
        let rows = [
            ["what", "measured", ""],
            ["cold ≤", "1.2", "pass"],
            ["x", "10 000.0", "MISS"],
        ];
        let expected = "\
what    measured
------  --------  ----
cold ≤       1.2  pass
x       10 000.0  MISS
";
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(render(&rows), expected);
    }
}
