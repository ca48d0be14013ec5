//! Differences that are meant, each with the row of docs/differences.md that says so. Whatever no
//! rule explains is a mismatch.

use super::{
    case::Case,
    compare::{Checkpoint, Difference},
};

/// One known difference.
#[derive(Debug)]
pub struct Rule {
    /// The first column of its row in docs/differences.md.
    pub row: &'static str,
    /// Is this difference of this checkpoint one of those that the row means?
    pub explains: fn(&Difference, &Checkpoint, &Case) -> bool,
}

/// In the order in which they are tried.
pub const RULES: &[Rule] = &[Rule {
    row: "`RolloutAddedToInformer`",
    explains: |difference, _, _| is_event(difference, "RolloutAddedToInformer"),
}];

fn is_event(difference: &Difference, reason: &str) -> bool {
    let has = |value: &serde_json::Value| {
        value.as_str().is_some_and(|text| text.contains(&format!(" {reason}: ")))
    };
    difference.path.starts_with("events.") && (has(&difference.argo) || has(&difference.ours))
}

#[test]
fn every_rule_names_a_row_of_the_documents() {
    let page = std::fs::read_to_string(crate::repository().join("docs/differences.md")).unwrap();
    for Rule { row, .. } in RULES {
        assert!(page.contains(&format!("\n| {row} | ")), "no row {row}");
    }
}
