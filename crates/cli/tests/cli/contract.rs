//! Is every row of the contract told by a test or a scenario that exists?

use crate::docs::{code, root};

/// The cells of every row of the page's tables, without the heads.
fn rows(page: &str) -> Vec<Vec<String>> {
    let is_row = |line: &&str| {
        line.starts_with("| ") && !["| row |", "| what |"].iter().any(|head| line.starts_with(head))
    };
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect();
    page.lines().filter(is_row).map(cells).collect()
}

#[test]
fn every_row_of_the_contract_is_told_by_something_that_exists() {
    let rows = rows(&std::fs::read_to_string(root().join("docs/contract.md")).unwrap());
    let numbers: Vec<usize> = rows.iter().filter_map(|cells| cells[0].parse().ok()).collect();
    assert_eq!(numbers, (1..=111).collect::<Vec<_>>(), "each row once, in order");
    let code = code();
    for cells in &rows {
        let shown = cells.last().unwrap();
        // A name stands between every other pair of backticks.
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() || shown.starts_with("not yet: "), "{cells:?}");
        for name in names {
            let exists = match name.ends_with(".yaml") {
                true => root().join("scenarios").join(name).is_file(),
                false => code.contains(&format!("fn {name}()")),
            };
            assert!(exists, "there is no {name}: {cells:?}");
        }
    }
}
