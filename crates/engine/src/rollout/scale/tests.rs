//! The tables of replica arithmetic.

use super::*;

fn goal(replicas: i32, weight: i32, surge: i32, unavailable: i32) -> SizeGoal {
    SizeGoal { replicas, weight, max_weight: 100, surge, unavailable }
}

#[test]
fn targets_come_closest_to_the_weight() {
    // replicas, weights, surge, canary, stable
    let cases: &[(i32, &[i32], i32, i32, i32)] = &[
        (1, &[1, 49], 0, 0, 1),
        (1, &[50, 99], 0, 1, 0),
        (1, &[1, 50, 99], 1, 1, 1),
        (1, &[100], 1, 1, 0),
        (2, &[1, 74, 76, 99], 0, 1, 1),
        (2, &[1], 1, 1, 2),
        (2, &[99], 1, 2, 1),
        (3, &[10, 49], 0, 1, 2),
        (3, &[50], 0, 2, 1),
        (3, &[10, 25], 1, 1, 3),
        (3, &[33, 34], 1, 1, 2),
        (3, &[49, 50], 1, 2, 2),
        (10, &[1, 14], 0, 1, 9),
        (10, &[15, 16], 0, 2, 8),
        (10, &[99], 0, 9, 1),
        (10, &[1], 1, 1, 10),
        (10, &[18, 19], 1, 2, 9),
        (10, &[20, 23], 1, 2, 8),
        (10, &[24, 25], 1, 3, 8),
        (10, &[99], 1, 10, 1),
        (0, &[50], 1, 0, 0),
    ];
    for (replicas, weights, surge, new, stable) in cases {
        for weight in *weights {
            let found = targets(&goal(*replicas, *weight, *surge, 1));
            let expected = Sizes { new: *new, stable: *stable };
            assert_eq!(found, expected, "replicas {replicas}, weight {weight}, surge {surge}");
        }
    }
}

#[test]
fn a_tie_at_the_top_keeps_one_stable_pod() {
    for (replicas, weight) in [(2, 75), (5, 90), (10, 95), (25, 98), (50, 99)] {
        let found = targets(&goal(replicas, weight, 0, 1));
        assert_eq!(found, Sizes { new: replicas - 1, stable: 1 }, "{replicas} at {weight}");
    }
}

#[test]
fn neither_side_is_empty_between_the_ends() {
    for replicas in 2..60 {
        for weight in 1..100 {
            for surge in 0..3 {
                let found = targets(&goal(replicas, weight, surge, 1));
                assert!(found.new > 0 && found.stable > 0, "{replicas} {weight} {surge} {found:?}");
            }
        }
    }
}

#[test]
fn next_sizes_keep_to_surge_and_unavailable() {
    // what, goal, stable (size, available), new, others, expected new and stable
    let cases = [
        ("unavailable stable waits", goal(10, 100, 3, 0), (7, 8), (6, 3), 0, (6, 7)),
        ("grows first", goal(10, 20, 2, 0), (10, 10), (0, 0), 0, (2, 10)),
        ("then shrinks", goal(10, 20, 2, 0), (10, 10), (2, 2), 0, (2, 8)),
        ("room for two only", goal(10, 30, 2, 0), (10, 10), (0, 0), 0, (2, 10)),
        ("no surge: stable shrinks first", goal(10, 20, 0, 2), (10, 10), (0, 0), 0, (0, 8)),
        ("both at once", goal(10, 50, 2, 1), (10, 10), (0, 0), 0, (2, 9)),
        ("abort drains the canary", goal(10, 0, 1, 1), (10, 10), (1, 1), 0, (0, 10)),
        ("one pod, no surge", goal(1, 51, 0, 1), (1, 1), (0, 0), 0, (0, 0)),
        ("one pod, no surge, second pass", goal(1, 51, 0, 1), (0, 0), (0, 0), 0, (1, 0)),
        ("others block shrinking", goal(10, 30, 1, 0), (1, 1), (0, 0), 3, (1, 7)),
        ("drains the canary to target", goal(10, 30, 0, 3), (8, 5), (4, 4), 0, (3, 7)),
        ("crash-looping stable goes", goal(10, 100, 1, 0), (10, 2), (10, 8), 0, (9, 2)),
        ("others hold everything", goal(10, 30, 0, 1), (8, 6), (4, 2), 3, (4, 8)),
        ("five percent", goal(10, 5, 0, 1), (10, 10), (0, 0), 0, (0, 9)),
        ("five percent, second pass", goal(10, 5, 0, 1), (9, 9), (0, 0), 0, (1, 9)),
        ("bad stable, good new: one at a time", goal(4, 100, 1, 0), (4, 1), (0, 0), 0, (1, 4)),
        ("bad stable goes as new comes", goal(4, 100, 1, 0), (4, 1), (1, 1), 0, (1, 3)),
        ("ninety-nine percent of three", goal(3, 99, 0, 2), (3, 3), (0, 0), 0, (0, 1)),
        ("and its second pass", goal(3, 99, 0, 2), (1, 1), (0, 0), 0, (2, 1)),
        ("abort: stable first", goal(4, 0, 1, 0), (0, 0), (4, 4), 0, (4, 1)),
        ("abort: waits for stable", goal(4, 0, 1, 0), (1, 0), (4, 4), 0, (4, 1)),
        ("abort: then the canary shrinks", goal(4, 0, 1, 0), (1, 1), (4, 4), 0, (3, 1)),
        ("promoted in full with room", goal(4, 100, 4, 4), (4, 4), (0, 0), 0, (4, 0)),
        ("promoted in full, surge three", goal(4, 100, 3, 0), (4, 4), (0, 0), 0, (3, 4)),
    ];
    for (what, goal, stable, new, others, expected) in cases {
        let side = |(size, available)| Some(Side { size, available });
        let found = next(&goal, side(new), side(stable), others);
        assert_eq!((found.new, found.stable), expected, "{what}");
    }
}

#[test]
fn zero_percent_of_both_still_moves() {
    // replicas, maxSurge, maxUnavailable, resolved
    let cases: [(i32, IntOrPercent, IntOrPercent, (i32, i32)); 6] = [
        (10, "0%".into(), "0%".into(), (0, 1)),
        (4, "25%".into(), "25%".into(), (1, 1)),
        (5, 1.into(), 0.into(), (1, 0)),
        (10, "25".into(), "25".into(), (3, 2)),
        (0, 1.into(), 1.into(), (1, 0)),
        (3, 0.into(), 9.into(), (0, 3)),
    ];
    for (replicas, surge, unavailable, expected) in cases {
        let found = resolve_limits(replicas, &surge, &unavailable);
        assert_eq!(found, expected, "{replicas} {surge} {unavailable}");
    }
}

#[test]
fn no_state_breaks_the_floor_or_the_ceiling() {
    // Every small state: the sum of kept available pods never falls below the lesser of what there
    // was and the minimum; the sum of sizes never rises above the greater of what there was and
    // the maximum.
    for replicas in 0..5 {
        for (surge, unavailable) in [(0, 1), (1, 0), (1, 1), (2, 0)] {
            for weight in [0, 20, 50, 75, 100] {
                let unavailable = i32::min(unavailable, replicas);
                each_state(goal(replicas, weight, surge, unavailable));
            }
        }
    }
}

fn each_state(goal: SizeGoal) {
    for state in 0..6 * 6 * 6 * 6 {
        let (new, stable) = (state % 6, state / 6 % 6);
        let (new_up, stable_up) = (state / 36 % 6, state / 216 % 6);
        if new_up > new || stable_up > stable {
            continue;
        }
        let found = next(
            &goal,
            Some(Side { size: new, available: new_up }),
            Some(Side { size: stable, available: stable_up }),
            0,
        );
        let kept = new_up.min(found.new) + stable_up.min(found.stable);
        let floor = (new_up + stable_up).min(goal.replicas - goal.unavailable);
        assert!(kept >= floor, "{goal:?} {new}/{new_up} {stable}/{stable_up} {found:?}");
        let ceiling = (new + stable).max(goal.replicas + goal.surge);
        assert!(found.new + found.stable <= ceiling, "{goal:?} {new} {stable} {found:?}");
    }
}

/// What, then: weight, exact size, carried weight, fewest pods, dynamic, aborted; new and stable.
const ROUTED: &str = "
a quarter, rounded up             | 10 | 25  | - | 0  | - | no  | no  | 3 10
a third, rounded up               | 10 | 33  | - | 0  | - | no  | no  | 4 10
all but one per cent              | 10 | 99  | - | 0  | - | no  | no  | 10 10
twice as many as there are        | 4  | 200 | - | 0  | - | no  | no  | 8 4
an exact size                     | 10 | 50  | 1 | 0  | - | no  | no  | 1 10
an exact size knows no fewest     | 10 | 50  | 1 | 0  | 3 | no  | no  | 1 10
at least two of each              | 10 | 5   | - | 0  | 2 | no  | no  | 2 10
never more than there are         | 1  | 100 | - | 0  | 2 | no  | no  | 1 1
none is none                      | 10 | 0   | - | 0  | 2 | no  | no  | 0 10
dynamic: stable follows traffic   | 10 | 20  | - | 20 | - | yes | no  | 2 8
dynamic: but not ahead of it      | 10 | 20  | - | 10 | - | yes | no  | 2 9
dynamic: two of each              | 10 | 95  | - | 95 | 2 | yes | no  | 10 2
dynamic: exact keeps stable whole | 10 | 50  | 3 | 50 | - | yes | no  | 3 10
dynamic: more than all            | 10 | 150 | - | 0  | - | yes | no  | 15 10
dynamic, aborted: kept by traffic | 10 | 0   | - | 20 | - | yes | yes | 2 10
dynamic, aborted: nothing kept    | 10 | 0   | - | 0  | 2 | yes | yes | 0 10
nothing at all                    | 0  | 50  | - | 0  | 2 | yes | no  | 0 0";

#[test]
fn sizes_of_a_routed_canary() {
    for row in ROUTED.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [what, replicas, weight, exact, carried, least, dynamic, aborted, expected] = cells[..]
        else {
            panic!("nine cells: {row}");
        };
        let goal = Routed {
            replicas: replicas.parse().unwrap(),
            max_weight: 100,
            weight: weight.parse().unwrap(),
            exact: exact.parse().ok(),
            carried: carried.parse().unwrap(),
            least: least.parse().ok(),
            is_dynamic: dynamic == "yes",
            is_aborted: aborted == "yes",
        };
        let Sizes { new, stable } = routed(&goal);
        assert_eq!(format!("{new} {stable}"), expected, "{what}");
    }
}

#[test]
fn pods_for_a_weight_are_those_of_whole_numbers() {
    for max in [100, 1000] {
        for replicas in [0, 1, 3, 7, 50, 333, 99_999] {
            for weight in 0..=max {
                let whole =
                    (i64::from(weight) * i64::from(replicas) + i64::from(max) - 1) / i64::from(max);
                let found = i64::from(pods_for(replicas, weight, max));
                assert_eq!(found, whole, "{weight} of {max} for {replicas}");
            }
        }
    }
}
