//! What a measurement shows, for every kind of answer.

use super::*;
use crate::traffic::{Backends, Sides};

fn goal(weight: i32, max_weight: i32) -> Goal<'static> {
    let none = Backends { stable: "", canary: "" };
    Goal {
        weight,
        max_weight,
        canary_hash: "new",
        subset_hash: "new",
        stable_subset_hash: "old",
        stable_hash: "old",
        sides: Sides { fixed: none, ping_pong: None },
        additional: &[],
        header_routes: Vec::new(),
        mirror_routes: Vec::new(),
        route_steps: None,
        managed_routes: &[],
        canary_empty: false,
    }
}

fn said(new: u32, old: u32, lost: u32) -> ProbeSaid {
    let answers = [("new", new), ("old", old)].into_iter().filter(|(_, count)| *count > 0);
    let answers = answers.map(|(hash, count)| (hash.to_owned(), count)).collect();
    ProbeSaid { answers, lost, reason: "no answer within 5s".to_owned() }
}

#[test]
fn a_weight_is_in_force_where_chance_alone_explains_the_measurement() {
    let other = ProbeResult::Otherwise;
    let cases = [
        ("exact", goal(20, 100), said(200, 800, 0), ProbeResult::InForce),
        ("within 99 %, above", goal(20, 100), said(231, 769, 0), ProbeResult::InForce),
        ("within 99 %, below", goal(20, 100), said(169, 831, 0), ProbeResult::InForce),
        ("too many", goal(20, 100), said(240, 760, 0), other.clone()),
        ("too few", goal(20, 100), said(160, 840, 0), other.clone()),
        ("the weight before", goal(60, 100), said(200, 800, 0), other.clone()),
        ("of another whole", goal(1, 1000), said(1, 999, 0), ProbeResult::InForce),
        ("of another whole, and nobody", goal(100, 1000), said(0, 1000, 0), other.clone()),
        ("nobody, as wanted", goal(0, 100), said(0, 1000, 0), ProbeResult::InForce),
        ("one, and nobody is wanted", goal(0, 100), said(1, 999, 0), other.clone()),
        ("all, as wanted", goal(100, 100), said(1000, 0, 0), ProbeResult::InForce),
        ("all but one", goal(100, 100), said(999, 1, 0), other.clone()),
        ("a few are lost", goal(20, 100), said(198, 793, 9), ProbeResult::InForce),
        (
            "too many are lost",
            goal(20, 100),
            said(196, 784, 20),
            ProbeResult::Nothing("20 of 1000 requests: no answer within 5s".to_owned()),
        ),
        (
            "nobody answers",
            goal(20, 100),
            said(0, 0, 20),
            ProbeResult::Nothing("20 of 20 requests: no answer within 5s".to_owned()),
        ),
    ];
    for (what, goal, said, expected) in cases {
        assert_eq!(judge(&said, &goal), expected, "{what}");
    }
}
