//! Which words an Event about weights has.

use serde_json::json;

use super::*;

#[test]
fn the_event_says_what_has_changed() {
    let weights = |canary: i32, additional: serde_json::Value| -> TrafficWeights {
        let part = |weight: i32| json!({ "weight": weight, "serviceName": "s" });
        let whole = json!({
            "canary": part(canary), "stable": part(100 - canary), "additional": additional,
        });
        serde_json::from_value(whole).unwrap()
    };
    let none = json!([]);
    let one = json!([{ "weight": 5, "serviceName": "try", "podTemplateHash": "c" }]);
    let cases = [
        ("the first", None, weights(20, none.clone()), "to 20"),
        ("another", Some(weights(20, none.clone())), weights(40, none.clone()), "from 20 to 40"),
        ("only revisions", Some(weights(0, none.clone())), weights(0, none.clone()), ""),
        (
            "and an Experiment",
            Some(weights(20, none.clone())),
            weights(40, one.clone()),
            "from 20 to 40, additional: [{5 try c}]",
        ),
        ("without it", Some(weights(40, one)), weights(40, none), "additional: []"),
    ];
    for (what, known, weights, expected) in cases {
        let text = told(known.as_ref(), &weights);
        assert_eq!(text, format!("Traffic weight updated {expected}"), "{what}");
    }
}
