//! Does every rollout keep to its budget of writes on the embedded cluster?

use gradus_lab::budgets;

#[test]
fn no_scenario_costs_more_than_its_budget() {
    let over: Vec<String> = budgets::all().iter().filter_map(budgets::Budget::exceeded).collect();
    assert!(over.is_empty(), "{}", over.join("\n\n"));
}
