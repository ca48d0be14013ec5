//! How are rows aligned, whatever colours they carry?

/// Blanks between two columns.
const GAP: usize = 2;

/// A cell: what is seen, and what is printed for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Without colours; its length counts.
    pub seen: String,
    /// With colours.
    pub printed: String,
}

impl Cell {
    /// A cell without colours.
    pub fn plain(text: impl Into<String>) -> Self {
        let seen = text.into();
        Cell { printed: seen.clone(), seen }
    }

    fn len(&self) -> usize {
        self.seen.chars().count()
    }
}

/// Rows under each other: every column as wide as its widest cell, at least `least`, the last one
/// only padded to its least width.
pub fn align(rows: &[Vec<Cell>], least: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            let widest = rows.iter().filter_map(|row| row.get(at)).map(Cell::len).max();
            widest.unwrap_or(0).max(least.get(at).copied().unwrap_or(0))
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            text.push_str(&cell.printed);
            let is_last = at + 1 == columns;
            let width =
                if is_last { least.get(at).copied().unwrap_or(0) } else { widths[at] + GAP };
            text.push_str(&" ".repeat(width.saturating_sub(cell.len())));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_seen() {
        let painted = Cell { seen: "ok".into(), printed: "\x1b[32mok\x1b[0m".into() };
        let rows = [
            vec![Cell::plain("NAME"), Cell::plain("STATUS"), Cell::plain("X")],
            vec![Cell::plain("⟳ checkout"), painted, Cell::default()],
        ];
        let expected = "NAME        STATUS  X  \n⟳ checkout  \x1b[32mok\x1b[0m         \n";
        assert_eq!(align(&rows, &[0, 0, 3]), expected);
    }
}
