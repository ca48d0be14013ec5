//! Which revision does each Service select, and may a Rollout use it at all?

use std::sync::Arc;

use gradus_api::names::{annotation, event, label};
use gradus_api::rollout::RolloutSpec;
use serde_json::{Value, json};

use super::objects::{Edit, Objects};
use super::plan::Proposal;
use crate::world::{Known, RolloutView, ServiceView, Unusable, World};

/// A Service that a Rollout names, and the field that names it.
pub struct Reference<'s> {
    /// The field, as error messages name it.
    pub field: &'static str,
    /// The Service's name.
    pub name: &'s str,
}

/// The Services a spec names, in the order in which they are checked.
pub fn references(spec: &RolloutSpec) -> impl Iterator<Item = Reference<'_>> {
    let (canary, blue_green) = (&spec.strategy.canary, &spec.strategy.blue_green);
    let canary = canary.iter().flat_map(|canary| {
        let pair = canary.ping_pong.as_ref();
        [
            ("spec.strategy.canary.stableService", canary.stable_service.as_str()),
            ("spec.strategy.canary.canaryService", canary.canary_service.as_str()),
            ("spec.strategy.canary.pingPong.pingService", pair.map_or("", |it| &it.ping_service)),
            ("spec.strategy.canary.pingPong.pongService", pair.map_or("", |it| &it.pong_service)),
        ]
    });
    let blue_green = blue_green.iter().flat_map(|blue_green| {
        [
            ("spec.strategy.blueGreen.activeService", blue_green.active_service.as_str()),
            ("spec.strategy.blueGreen.previewService", blue_green.preview_service.as_str()),
        ]
    });
    let named = canary.chain(blue_green).filter(|(_, name)| !name.is_empty());
    named.map(|(field, name)| Reference { field, name })
}

/// The Services that a spec names, read from its JSON: also of a Rollout that nobody decodes.
pub fn names_in(spec: &Value) -> Vec<&str> {
    let (canary, blue_green) = (&spec["strategy"]["canary"], &spec["strategy"]["blueGreen"]);
    let ping_pong = &canary["pingPong"];
    let fields = [
        &canary["stableService"],
        &canary["canaryService"],
        &ping_pong["pingService"],
        &ping_pong["pongService"],
        &blue_green["activeService"],
        &blue_green["previewService"],
    ];
    let named = fields.into_iter().filter_map(Value::as_str);
    named.filter(|name| !name.is_empty()).collect()
}

/// The first Service that cannot be read, or is not there.
pub(super) fn missing(world: &World) -> Option<Unusable> {
    let rollout = &world.rollout;
    references(&rollout.spec.fields).find_map(|Reference { field, name }| {
        match world.services.get(name) {
            Some(Known::Present(_)) => None,
            Some(Known::Unknown(message)) => Some(Unusable::Unreadable(message.clone())),
            Some(Known::Absent) | None => Some(Unusable::Invalid(format!(
                "{field}: Invalid value: {name:?}: service {name:?} not found"
            ))),
        }
    })
}

/// The first Service that is somebody else's, or selects other pods.
pub(super) fn unfit(world: &World) -> Option<Unusable> {
    let rollout = &world.rollout;
    references(&rollout.spec.fields).find_map(|Reference { field, name }| {
        let service = world.services.get(name).and_then(Known::present)?;
        let detail = mismatch(rollout, service)?;
        Some(Unusable::Invalid(format!("{field}: Invalid value: {name:?}: {detail}")))
    })
}

/// Why this Rollout cannot use this Service; `None` if it can.
pub fn mismatch(rollout: &RolloutView, service: &ServiceView) -> Option<String> {
    let name = &service.name;
    let labels: Value = serde_json::from_str(&rollout.spec.template).unwrap_or_default();
    let labels = &labels["metadata"]["labels"];
    let unmatched = service.selector.iter().find(|(key, value)| labels[*key] != **value);
    if let Some((key, _)) = unmatched {
        return Some(format!("Service {name:?} has unmatch label {key:?} in rollout"));
    }
    let is_foreign = service.managed_by.as_ref().is_some_and(|owner| *owner != rollout.name);
    is_foreign.then(|| format!("Service {name:?} is managed by another Rollout"))
}

/// Points a Service at a revision and marks it as ours. Nothing is written that is so already.
pub(super) fn switch(objects: &Objects<'_>, name: &str, hash: &str) -> Proposal {
    let Some(service) = objects.service(name) else { return Proposal::default() };
    let rollout = objects.rollout();
    let mut body = json!({});
    if service.hash_text() != hash {
        body["spec"] = json!({ "selector": { label::POD_TEMPLATE_HASH: hash } });
    }
    if service.managed_by.is_none() {
        body["metadata"] = json!({ "annotations": { annotation::MANAGED_BY: &*rollout.name } });
    }
    if body == json!({}) {
        return Proposal::default();
    }
    let target = rollout.service(&service.name);
    let manager = service.managed_by.clone().unwrap_or_else(|| Arc::clone(&rollout.name));
    let changed =
        ServiceView { hash: Some(hash.into()), managed_by: Some(manager), ..(**service).clone() };
    let text = format!(
        "Switched selector for service '{name}' from '{}' to '{hash}'",
        service.hash_text()
    );
    Proposal::default()
        .patch(target.clone(), body, service.version, Edit::Service(Arc::new(changed)))
        .tell_of(target, event::SWITCH_SERVICE, text)
}
