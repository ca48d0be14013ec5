//! Every rule of a spec, one row each.

use super::*;

fn spec() -> Spec {
    let settled = Settled {
        database: "orders".to_owned(),
        storage: "1Gi".to_owned(),
        user: "clerk".to_owned(),
        version: "15.6".to_owned(),
    };
    Spec { replicas: 1, keep_data: false, settled }
}

#[test]
fn a_spec_is_valid_or_its_field_is_named() {
    type Change = fn(&mut Spec);
    let cases: [(&str, Change, Option<&str>); 11] = [
        ("as it should be", |_| {}, None),
        ("stopped", |spec| spec.replicas = 0, None),
        ("two replicas", |spec| spec.replicas = 2, Some("spec.replicas")),
        ("no minor version", |spec| spec.settled.version = "15".into(), Some("spec.version")),
        ("a word", |spec| spec.settled.version = "latest".into(), Some("spec.version")),
        ("no size", |spec| spec.settled.storage = "large".into(), Some("spec.storage")),
        ("nothing", |spec| spec.settled.storage = "0".into(), Some("spec.storage")),
        ("half a byte", |spec| spec.settled.storage = "500m".into(), Some("spec.storage")),
        ("capitals", |spec| spec.settled.database = "Orders".into(), Some("spec.database")),
        ("a reserved name", |spec| spec.settled.user = "pg_clerk".into(), Some("spec.user")),
        ("an empty name", |spec| spec.settled.user = String::new(), Some("spec.user")),
    ];
    for (what, change, expected) in cases {
        let mut spec = spec();
        change(&mut spec);
        let found = validate("orders", &spec).err();
        assert_eq!(found.is_some(), expected.is_some(), "{what}");
        if let (Some(refusal), Some(field)) = (found, expected) {
            assert!(refusal.message.starts_with(field), "{what}: {}", refusal.message);
            assert_eq!(refusal.reason, "InvalidSpec", "{what}");
            assert!(refusal.message.contains("expected"), "{what}: {}", refusal.message);
        }
    }
    let long = "a".repeat(LONGEST_NAME + 1);
    assert!(validate(&long, &spec()).unwrap_err().message.starts_with("metadata.name"));
}

#[test]
fn more_than_one_replica_is_refused_with_the_reason() {
    let refusal = validate("orders", &Spec { replicas: 3, ..spec() }).unwrap_err();
    assert!(refusal.message.ends_with("would be unrelated databases"), "{}", refusal.message);
}

#[test]
fn what_was_accepted_is_not_taken_back() {
    type Change = fn(&mut Spec);
    let cases: [(&str, Change, Option<&str>); 10] = [
        ("the same", |_| {}, None),
        ("a later minor version", |spec| spec.settled.version = "15.10".into(), None),
        ("an earlier one", |spec| spec.settled.version = "15.5".into(), Some("Downgrade")),
        ("an earlier major one", |spec| spec.settled.version = "14.11".into(), Some("Downgrade")),
        ("a later major one", |spec| spec.settled.version = "16.0".into(), Some("MajorUpgrade")),
        ("more storage", |spec| spec.settled.storage = "2G".into(), None),
        ("the same in other words", |spec| spec.settled.storage = "1024Mi".into(), None),
        ("less storage", |spec| spec.settled.storage = "1G".into(), Some("StorageShrink")),
        ("another database", |spec| spec.settled.database = "other".into(), Some("Renamed")),
        ("another user", |spec| spec.settled.user = "other".into(), Some("Renamed")),
    ];
    for (what, change, expected) in cases {
        let mut new = spec();
        change(&mut new);
        let found = compare(&new.settled, &spec().settled).err().map(|refusal| refusal.reason);
        assert_eq!(found, expected, "{what}");
    }
}
