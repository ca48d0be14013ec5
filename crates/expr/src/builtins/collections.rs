//! Functions on lists and maps.

use std::collections::BTreeMap;

use super::{Builtin, Call, Check, only, shown};
use crate::error::Fault;
use crate::eval::{Order, element, sort};
use crate::number::to_int;
use crate::types::{ListKind, MapKind, Shape, Type};
use crate::value::{Key, List, Map, Value, equal};

const SORT: &[&[Type]] = &[
    &[Type::ANYTHING, Type::Text],
    &[Type::List(ListKind::Int, None), Type::Text],
    &[Type::List(ListKind::Float, None), Type::Text],
    &[Type::List(ListKind::Text, None), Type::Text],
    &[Type::ANYTHING],
    &[Type::List(ListKind::Float, None)],
    &[Type::List(ListKind::Text, None)],
    &[Type::List(ListKind::Int, None)],
];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin { name: "first", check: Check::Types(|types| end_of("first", types)), call: first },
    Builtin { name: "last", check: Check::Types(|types| end_of("last", types)), call: last },
    // Its types are checked where the tree is: `get($env, …)` is another matter.
    Builtin { name: "get", check: Check::Types(|_| Ok(Type::Unknown)), call: get },
    Builtin { name: "take", check: Check::Types(check_take), call: take },
    Builtin {
        name: "keys",
        check: Check::Types(|types| of_map("get keys from", types)),
        call: |call| entries(call, "cannot get keys from", |key, _| Ok(key.value())),
    },
    Builtin {
        name: "values",
        check: Check::Types(|types| of_map("get values from", types)),
        call: |call| entries(call, "cannot get values from", |_, value| Ok(value.clone())),
    },
    Builtin { name: "toPairs", check: Check::Types(check_to_pairs), call: to_pairs },
    Builtin { name: "fromPairs", check: Check::Types(check_from_pairs), call: from_pairs },
    Builtin {
        name: "reverse",
        check: Check::Types(|types| of_list("reverse", types)),
        call: |call| {
            let list = list(call, 0, "reverse")?;
            call.budget.items(list.items().len())?;
            Value::list(list.items().iter().rev().cloned().collect())
        },
    },
    Builtin { name: "uniq", check: Check::Types(|types| of_list("uniq", types)), call: unique },
    Builtin { name: "concat", check: Check::Types(check_concat), call: concat },
    Builtin {
        name: "flatten",
        check: Check::Types(|types| of_list("flatten", types)),
        call: |call| {
            let mut flat = Vec::new();
            flatten(list(call, 0, "flatten")?, &mut flat);
            call.budget.items(flat.len())?;
            Value::list(flat)
        },
    },
    Builtin { name: "sort", check: Check::Overloads(SORT, Type::ANYTHING), call: sorted },
];

fn is_list_or_unknown(of: &Type) -> bool {
    matches!(of.shape(), Shape::Interface | Shape::List | Shape::Array)
}

fn end_of(name: &str, types: &[Type]) -> Result<Type, String> {
    match only(types)? {
        Type::Any => Ok(Type::Any),
        Type::List(kind, _) => Ok(kind.element()),
        other => Err(format!("cannot get {name} element from {}", shown(other))),
    }
}

fn of_list(verb: &str, types: &[Type]) -> Result<Type, String> {
    let of = only(types)?;
    if is_list_or_unknown(of) {
        Ok(Type::ANYTHING)
    } else {
        Err(format!("cannot {verb} {}", shown(of)))
    }
}

fn of_map(verb: &str, types: &[Type]) -> Result<Type, String> {
    match only(types)? {
        Type::Any | Type::Map(_) => Ok(Type::ANYTHING),
        other => Err(format!("cannot {verb} {}", shown(other))),
    }
}

fn check_to_pairs(types: &[Type]) -> Result<Type, String> {
    match only(types)? {
        Type::Any | Type::Map(_) => Ok(Type::ANYTHING),
        other => Err(format!("cannot transform {} to pairs", shown(other))),
    }
}

fn check_from_pairs(types: &[Type]) -> Result<Type, String> {
    match only(types)? {
        of if is_list_or_unknown(of) => Ok(Type::Map(MapKind::Any)),
        other => Err(format!("cannot transform {} from pairs", shown(other))),
    }
}

fn check_concat(types: &[Type]) -> Result<Type, String> {
    if types.is_empty() {
        return Err("invalid number of arguments (expected at least 1, got 0)".to_owned());
    }
    match types.iter().find(|of| !is_list_or_unknown(of)) {
        Some(of) => Err(format!("cannot concat {}", shown(of))),
        None => Ok(Type::ANYTHING),
    }
}

fn check_take(types: &[Type]) -> Result<Type, String> {
    let [from, count] = types else {
        return Err(format!("invalid number of arguments (expected 2, got {})", types.len()));
    };
    if !is_list_or_unknown(from) {
        return Err(format!("cannot take from {}", shown(from)));
    }
    let counts = matches!(count.shape(), Shape::Interface | Shape::Int | Shape::Int64);
    if !counts {
        return Err(format!("cannot take {} elements", shown(count)));
    }
    // What was known of the elements is forgotten.
    Ok(match from {
        Type::List(kind, _) => Type::List(*kind, None),
        other => other.clone(),
    })
}

fn list<'c>(call: &Call<'c>, at: usize, verb: &str) -> Result<&'c List, Fault> {
    match call.value(at) {
        Value::List(list) => Ok(list),
        other => Err(Fault::run(format!("cannot {verb} {}", kind_of(other)))),
    }
}

/// As Go names the kind of a value.
fn kind_of(value: &Value) -> String {
    match value {
        Value::Nil => "invalid".to_owned(),
        Value::List(_) => "slice".to_owned(),
        Value::Map(_) => "map".to_owned(),
        Value::Time(_) => "struct".to_owned(),
        other => other.type_name(),
    }
}

/// Nothing there is `nil`, not an error.
fn first(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(element(call.value(0), &Value::int(0)).unwrap_or_default())
}

fn last(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(element(call.value(0), &Value::int(-1)).unwrap_or_default())
}

fn get(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (from, key) = (call.value(0), call.value(1));
    match from {
        Value::List(_) | Value::Text(_) => {
            to_int(key)?;
            Ok(element(from, key).unwrap_or_default())
        }
        Value::Map(map) => Ok(map.look_up(key)?.cloned().unwrap_or_default()),
        _ => Ok(Value::Nil),
    }
}

fn take(call: &mut Call<'_>) -> Result<Value, Fault> {
    let list = list(call, 0, "take from")?;
    let Value::Int(_, count) = call.value(1) else {
        return Err(Fault::run(format!("cannot take {} elements", kind_of(call.value(1)))));
    };
    let out_of_bounds = || Fault::run("reflect.Value.Slice: slice index out of bounds");
    let count = usize::try_from(*count).map_err(|_| out_of_bounds())?;
    Ok(Value::List(list.part(0, count.min(list.items().len()))))
}

fn entries(
    call: &mut Call<'_>,
    refusal: &str,
    pick: fn(&Key, &Value) -> Result<Value, Fault>,
) -> Result<Value, Fault> {
    let map = match call.value(0) {
        Value::Map(map) => map,
        other => return Err(Fault::run(format!("{refusal} {}", kind_of(other)))),
    };
    call.budget.items(map.entries().len())?;
    let picked: Result<Vec<_>, Fault> =
        map.entries().iter().map(|(key, value)| pick(key, value)).collect();
    Value::list(picked?)
}

fn to_pairs(call: &mut Call<'_>) -> Result<Value, Fault> {
    let pair = |key: &Key, value: &Value| {
        List::new(ListKind::Pair, vec![key.value(), value.clone()]).map(Value::List)
    };
    match entries(call, "cannot transform", pair)? {
        Value::List(pairs) => List::new(ListKind::Pairs, pairs.items().to_vec()).map(Value::List),
        other => Ok(other),
    }
}

fn from_pairs(call: &mut Call<'_>) -> Result<Value, Fault> {
    let pairs = match call.value(0) {
        Value::List(list) => list,
        other => return Err(Fault::run(format!("cannot transform {other} from pairs"))),
    };
    call.budget.items(pairs.items().len())?;
    let mut found = BTreeMap::new();
    for pair in pairs.items() {
        match pair {
            Value::List(list) => match list.items() {
                [key, value] => drop(found.insert(Key::of(key)?, value.clone())),
                _ => return Err(Fault::run(format!("invalid pair length {pair}"))),
            },
            other => return Err(Fault::run(format!("invalid pair {other}"))),
        }
    }
    Map::new(MapKind::Any, found).map(Value::Map)
}

fn unique(call: &mut Call<'_>) -> Result<Value, Fault> {
    let mut found: Vec<Value> = Vec::new();
    for item in list(call, 0, "uniq")?.items() {
        call.budget.steps(found.len())?;
        if !found.iter().any(|known| equal(item, known)) {
            found.push(item.clone());
        }
    }
    call.budget.items(found.len())?;
    Value::list(found)
}

fn concat(call: &mut Call<'_>) -> Result<Value, Fault> {
    let mut all = Vec::new();
    for at in 0..call.arguments.len() {
        let part = list(call, at, "concat")?.items();
        call.budget.items(part.len())?;
        all.extend(part.iter().cloned());
    }
    if all.is_empty() { Ok(Value::List(List::nil_of(ListKind::Any))) } else { Value::list(all) }
}

fn flatten(list: &List, flat: &mut Vec<Value>) {
    for item in list.items() {
        match item {
            Value::List(inside) => flatten(inside, flat),
            other => flat.push(other.clone()),
        }
    }
}

fn sorted(call: &mut Call<'_>) -> Result<Value, Fault> {
    let order = if call.arguments.len() < 2 { Order::Less } else { order(call.value(1), "sort")? };
    let is_known = |kind| !matches!(kind, ListKind::Byte | ListKind::Pair | ListKind::Pairs);
    let list = match call.value(0) {
        Value::List(list) if is_known(list.kind()) => list,
        // What the original cannot sort it takes for nothing.
        _ => return Ok(Value::List(List::nil_of(ListKind::Any))),
    };
    call.budget.items(list.items().len())?;
    let pairs = list.items().iter().map(|item| (item.clone(), item.clone())).collect();
    Value::list(sort(pairs, order, call.budget)?)
}

/// The order that a text names.
pub(crate) fn order(value: &Value, name: &str) -> Result<Order, Fault> {
    match value {
        Value::Text(text) => match &**text {
            "asc" => Ok(Order::Less),
            "desc" => Ok(Order::More),
            other => Err(Fault::run(format!("invalid order {other}, expected asc or desc"))),
        },
        other => {
            let found = other.type_name();
            Err(Fault::run(format!("{name} order argument must be a string (got {found})")))
        }
    }
}
