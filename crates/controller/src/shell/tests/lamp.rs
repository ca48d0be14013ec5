//! A lamp whose status shall say what its spec asks for.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use gradus_engine::ask::{Answer, Ask, AskId, Effect, PluginCall, Question, Recall};
use gradus_engine::decision::{Decision, Frees, Guard, Kind, ObjectRef, Urgency, Why};
use gradus_engine::frame::Frame;
use gradus_engine::interlock::{Harm, Invariant};
use gradus_engine::{Engine, Head, StatusPlace};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::watched::{Key, Scope, Selection, Shelf, Watched, references_to};

pub const LAMP: Kind = Kind::new("example.dev", "v1", "Lamp", "lamps");

pub struct Lamps;

thread_local! {
    /// How many Worlds this thread has gathered.
    pub static GATHERED: Cell<usize> = const { Cell::new(0) };
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lamp {
    namespace: Arc<str>,
    name: Arc<str>,
    version: u64,
    spec: Value,
    status: Value,
    answers: BTreeMap<AskId, Answer>,
}

pub fn frame(name: &str, version: u64, spec: Value, status: Value) -> Frame {
    let meta = json!({ "name": name, "namespace": "home", "resourceVersion": version.to_string() });
    serde_json::from_value(json!({ "metadata": meta, "spec": spec, "status": status })).unwrap()
}

/// Rings a bell beside the lamp: that changes something outside.
fn ring(bell: &str) -> Ask {
    let call = PluginCall {
        name: bell.to_owned(),
        operation: "Run".to_owned(),
        index: 0,
        config: None,
        status: None,
    };
    let (id, question) = (AskId(bell.into()), Question::Plugin(call));
    Ask { id, question, effect: Effect::Acts, after: None }
}

impl Engine for Lamps {
    type World = Lamp;
    type Status = Value;
    type Memo = ();

    const KIND: Kind = LAMP;
    const STATUS: StatusPlace = StatusPlace::Main;

    fn head(lamp: &Lamp) -> Head {
        let object = ObjectRef::new(LAMP, &lamp.namespace, &lamp.name);
        Head { object, uid: gradus_engine::uid::Uid::default(), version: lamp.version }
    }

    fn decide(lamp: &Lamp, _now: Timestamp) -> Decision<Value, ()> {
        assert!(lamp.spec["broken"].is_null(), "a broken lamp");
        let bulb = |name| Ask::read(ObjectRef::new(LAMP, &"home".into(), &Arc::from(name)));
        let asks: Vec<Ask> = lamp.spec["bulb"].as_str().map(bulb).into_iter().collect();
        let is_known = |ask: &Ask| lamp.answers.get(&ask.id).is_some_and(|it| it.reply.is_ok());
        if !asks.iter().all(is_known) {
            return Decision { asks, ..Decision::default() };
        }
        if !lamp.spec["held"].is_null() {
            let is_delay = lamp.spec["held"] == "for a while";
            let why = Why {
                guard: if is_delay { Guard::Delay } else { Guard::SpecPaused },
                object: Lamps::head(lamp).object,
                field: "spec.held".into(),
                since: lamp.spec["since"].as_i64().map(|second| super::at(second * 1_000)),
                frees: Frees::Edit,
            };
            return Decision { why: vec![why], ..Decision::default() };
        }
        let mut asks = asks;
        asks.extend(lamp.spec["call"].as_str().map(ring));
        let mut status = lamp.status.clone();
        for field in ["on", "watts"].into_iter().filter(|field| !lamp.spec[field].is_null()) {
            status[field] = lamp.spec[field].clone();
        }
        let is_switched = lamp.status["on"] != status["on"];
        let urgency = if is_switched { Urgency::Now } else { Urgency::Within1s };
        Decision { status: Some(status), urgency, asks, ..Decision::default() }
    }

    fn check(
        lamp: &Lamp,
        decision: &Decision<Value, ()>,
        _: Timestamp,
    ) -> Option<Harm<Decision<Value, ()>>> {
        let harm = || Harm {
            invariant: Invariant::WeightsWellFormed,
            message: "too bright".to_owned(),
            cut: decision.clone(),
        };
        (!lamp.spec["glaring"].is_null()).then(harm)
    }

    fn stored_status(lamp: &Lamp) -> &Value {
        &lamp.status
    }
}

impl Watched for Lamps {
    type Index = BTreeMap<Key, Lamp>;

    type Source = ();

    fn sources() -> Vec<()> {
        vec![()]
    }

    fn kind_of((): &()) -> Kind {
        LAMP
    }

    fn selection((): &(), scope: &Scope) -> Option<Selection> {
        Some(scope.all(LAMP))
    }

    fn shelf((): &()) -> Shelf<Self::Index> {
        Shelf {
            apply: |index, _, frame| {
                let key = Key::new(&frame.meta.namespace, &frame.meta.name);
                assert!(frame.spec["odd"].is_null(), "an odd lamp");
                let lamp = Lamp {
                    namespace: Arc::clone(&frame.meta.namespace),
                    name: Arc::clone(&frame.meta.name),
                    version: frame.meta.version,
                    spec: (*frame.spec).clone(),
                    status: (*frame.status).clone(),
                    answers: BTreeMap::new(),
                };
                index.insert(key.clone(), lamp);
                vec![key]
            },
            remove: |index, object| {
                let key = Key::of(object);
                let Some(lamp) = index.remove(&key) else { return Vec::new() };
                assert!(lamp.spec["stuck"].is_null(), "a lamp that is stuck");
                vec![key]
            },
            version: |index, object| index.get(&Key::of(object)).map(|lamp| lamp.version),
            objects: |index, kind| references_to(kind, index.keys()),
        }
    }

    fn refuse(index: &mut Self::Index, (): &(), frame: &Frame, message: &str) -> Vec<Key> {
        if frame.spec["odd"] != "told" {
            return Vec::new();
        }
        let refused = json!({ "on": false, "watts": message });
        let bare = Frame { spec: Arc::new(refused), ..frame.clone() };
        (Self::shelf(&()).apply)(index, &LAMP, &bare)
    }

    fn gather(
        index: &Self::Index,
        key: &Key,
        answers: &BTreeMap<AskId, Answer>,
        _: &Recall<()>,
    ) -> Option<Lamp> {
        GATHERED.set(GATHERED.get() + 1);
        let lamp = index.get(key)?;
        assert!(lamp.spec["cracked"].is_null(), "a cracked lamp");
        Some(Lamp { answers: answers.clone(), ..lamp.clone() })
    }

    fn is_urgent(index: &Self::Index, key: &Key) -> bool {
        index.get(key).is_some_and(|lamp| !lamp.spec["urgent"].is_null())
    }
}
