//! AWS App Mesh: weights stand on the targets of a VirtualRouter, which the user's VirtualService
//! names; two VirtualNodes select the pods of one revision each.

mod mesh;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use gradus_api::names::router_event;
use gradus_api::traffic::{AppMeshRouting, AppMeshVirtualNodeGroup};
use serde_json::{Value, json};

use super::fault::not_found;
use super::own;
use super::registry::{self, routing_in};
use super::{
    Access, ConfigField, FaultCause, Goal, Need, Receiver, Release, RouteFault, RouteOp,
    RouteWrite, Router, RouterEntry, RoutingObjects, Sides, TrafficSide, Undo, WeightPart,
    WeightSplit,
};
use crate::decision::{Kind, ObjectRef};
use crate::world::RolloutView;
use mesh::Nodes;

const GROUP: &str = "appmesh.k8s.aws";
const VERSION: &str = "v1beta2";
const VIRTUAL_SERVICE: Kind = Kind::new(GROUP, VERSION, "VirtualService", "virtualservices");
const VIRTUAL_ROUTER: Kind = Kind::new(GROUP, VERSION, "VirtualRouter", "virtualrouters");
pub(super) const VIRTUAL_NODE: Kind = Kind::new(GROUP, VERSION, "VirtualNode", "virtualnodes");
const VERBS: &[&str] = &["get", "list", "watch", "patch"];

/// This router, for the list.
pub(super) static ENTRY: RouterEntry = RouterEntry {
    config: ConfigField::Field("appMesh"),
    label: Some((5, "AppMesh")),
    access: &[
        Access { kind: VIRTUAL_SERVICE, verbs: &["get", "list", "watch"], weights: "spec" },
        Access { kind: VIRTUAL_ROUTER, verbs: VERBS, weights: "spec.routes" },
        Access { kind: VIRTUAL_NODE, verbs: VERBS, weights: "spec.podSelector" },
    ],
    has_header_routes: false,
    has_mirror_routes: false,
    has_experiments: false,
    has_max_weight: false,
    of: |rollout, routing| {
        let config = routing.app_mesh.as_deref()?;
        Some(Box::new(AppMesh { rollout, config }))
    },
    releases: &[Release {
        kind: VIRTUAL_NODE,
        managers: own::users,
        released: |_, _| Undo::Patch(mesh::released()),
        named_in: |_, spec| {
            let nodes = &routing_in(spec)["appMesh"]["virtualNodeGroup"];
            let both = ["canaryVirtualNodeRef", "stableVirtualNodeRef"].map(|field| &nodes[field]);
            both.iter().filter_map(|node| node["name"].as_str().map(str::to_owned)).collect()
        },
    }],
    refused: registry::untold,
};

/// The router of a Rollout.
struct AppMesh<'r> {
    rollout: &'r RolloutView,
    config: &'r AppMeshRouting,
}

impl Router for AppMesh<'_> {
    fn needs(&self) -> Vec<Need> {
        let nodes = [TrafficSide::Stable, TrafficSide::Canary].map(|side| self.node(side));
        self.service().into_iter().chain(nodes.into_iter().flatten()).collect()
    }

    fn leads_to(&self, seen: &RoutingObjects) -> Vec<Need> {
        self.virtual_router(seen).into_iter().collect()
    }

    fn misconfigured(&self) -> Option<RouteFault> {
        let path = ENTRY.config.path();
        let missing = |field: &str, what: &str| {
            let message = format!("Required value: must provide {what}");
            Some(RouteFault::configuration(format!("{path}.{field}"), message))
        };
        if self.service().is_none_or(|need| need.object.name.is_empty()) {
            return missing("virtualService", "virtual-service");
        }
        match [TrafficSide::Canary, TrafficSide::Stable].map(|side| self.node(side)) {
            [None, _] => missing("virtualNodeGroup.canaryVirtualNodeRef", "virtual-node"),
            [_, None] => missing("virtualNodeGroup.stableVirtualNodeRef", "virtual-node"),
            [Some(_), Some(_)] => None,
        }
    }

    fn missing(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let service = self.service()?;
        let absent = if seen.contains_key(&service.object) {
            self.virtual_router(seen).filter(|need| !seen.contains_key(&need.object))?
        } else {
            service
        };
        let ObjectRef { name, namespace, .. } = &absent.object;
        let place = format!("{name}.{namespace}");
        let message = format!("Invalid value: {place:?}: {}", not_found(&absent.object));
        Some(RouteFault { message, ..RouteFault::missing(&absent) })
    }

    fn unfit(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let service = self.service()?;
        if seen.contains_key(&service.object) && self.virtual_router(seen).is_none() {
            let name = &*service.object.name;
            let message = "Virtual-service is not associated with virtual-router";
            return Some(RouteFault::unfit(
                &service,
                format!("Invalid value: {name:?}: {message}"),
            ));
        }
        let router = self.virtual_router(seen)?;
        let (field, message) = mesh::lacks(seen.get(&router.object)?)?;
        let name = &*router.object.name;
        let need = Need { field, ..router.clone() };
        Some(RouteFault::unfit(&need, format!("Invalid value: {name:?}: {message}")))
    }

    fn splits(&self, sides: &Sides<'_>, seen: &RoutingObjects) -> Vec<WeightSplit> {
        let (Some(nodes), Some(router)) = (self.nodes(), self.virtual_router(seen)) else {
            return Vec::new();
        };
        let Some(known) = seen.get(&router.object) else { return Vec::new() };
        let receiver = |side: TrafficSide, name: &str| match self.revision(side, seen) {
            Some(hash) => Receiver::Revision(hash),
            None => Receiver::Service(name.to_owned()),
        };
        let part = |(side, name, weight): (TrafficSide, &str, i32)| {
            let name = if side == TrafficSide::Canary { sides.fixed.canary } else { name };
            WeightPart { side, receiver: receiver(side, name), weight }
        };
        let routes = mesh::selected(known, self.route_names()).into_iter();
        let split = |at: usize| WeightSplit {
            object: router.object.clone(),
            parts: mesh::weights(known, at, &nodes).into_iter().map(part).collect(),
        };
        routes.map(split).filter(|split| !split.parts.is_empty()).collect()
    }

    fn revision(&self, side: TrafficSide, seen: &RoutingObjects) -> Option<String> {
        let node = self.node(side)?;
        let hash = seen.get(&node.object).and_then(mesh::hash);
        Some(hash.unwrap_or_default().to_owned())
    }

    fn plan(&self, goal: &Goal<'_>, seen: &RoutingObjects) -> Result<Vec<RouteWrite>, RouteFault> {
        let router = self.plan_router(goal, seen)?;
        let stable = self.plan_node(TrafficSide::Stable, goal.stable_subset_hash, seen)?;
        let hash = match goal.subset_hash {
            hash if hash == goal.stable_hash || hash.is_empty() => mesh::NO_CANARY,
            hash => hash,
        };
        let canary = self.plan_node(TrafficSide::Canary, hash, seen)?;
        // Traffic leaves a revision before its node does; it comes to one after its node.
        let falls = goal.weight < self.carried(&goal.sides, seen);
        let ordered = match falls {
            true => [stable, router, canary],
            false => [stable, canary, router],
        };
        Ok(ordered.into_iter().flatten().collect())
    }
}

impl<'r> AppMesh<'r> {
    fn reference(&self, kind: Kind, namespace: &Arc<str>, name: &str) -> ObjectRef {
        ObjectRef::new(kind, namespace, &name.into())
    }

    /// The VirtualService. The contract writes the field in lower case.
    fn service(&self) -> Option<Need> {
        let name = &self.config.virtual_service.as_ref()?.name;
        let object = self.reference(VIRTUAL_SERVICE, &self.rollout.namespace, name);
        let field = format!("{}.trafficRouting.appmesh.virtualService", super::PATH);
        Some(Need::required(object, field))
    }

    /// The VirtualRouter that the VirtualService names.
    fn virtual_router(&self, seen: &RoutingObjects) -> Option<Need> {
        let service = self.service()?;
        let spec = seen.get(&service.object)?.spec();
        let named = &spec["provider"]["virtualRouter"]["virtualRouterRef"];
        let name = named["name"].as_str().filter(|name| !name.is_empty())?;
        let namespace = named["namespace"].as_str().filter(|name| !name.is_empty());
        let namespace = namespace.map_or_else(|| Arc::clone(&service.object.namespace), Arc::from);
        let object = self.reference(VIRTUAL_ROUTER, &namespace, name);
        Some(Need::required(object, service.field))
    }

    /// The VirtualNode of a side. The contract does not look for it before it is written.
    fn node(&self, side: TrafficSide) -> Option<Need> {
        let group: &AppMeshVirtualNodeGroup = self.config.virtual_node_group.as_ref()?;
        let (named, field) = match side {
            TrafficSide::Canary => (&group.canary_virtual_node_ref, "canaryVirtualNodeRef"),
            TrafficSide::Stable => (&group.stable_virtual_node_ref, "stableVirtualNodeRef"),
            TrafficSide::Other => return None,
        };
        let name = &named.as_ref().filter(|named| !named.name.is_empty())?.name;
        let object = self.reference(VIRTUAL_NODE, &self.rollout.namespace, name);
        let field = format!("{}.virtualNodeGroup.{field}.name", ENTRY.config.path());
        Some(Need::optional(object, field))
    }

    fn nodes(&self) -> Option<Nodes> {
        let name = |side| Some(Arc::clone(&self.node(side)?.object.name));
        Some(Nodes {
            canary: name(TrafficSide::Canary)?,
            stable: name(TrafficSide::Stable)?,
            namespace: Arc::clone(&self.rollout.namespace),
        })
    }

    /// Names of the routes that carry the weights; none means all.
    fn route_names(&self) -> &'r [String] {
        self.config.virtual_service.as_ref().map_or(&[], |service| &service.routes)
    }

    /// The VirtualService or its VirtualRouter is gone although it was there a moment ago.
    fn gone(&self, seen: &RoutingObjects) -> Option<RouteFault> {
        let fault = self.missing(seen)?;
        let ObjectRef { name, namespace, .. } = &self.service()?.object;
        let (what, reason) = match &fault.cause {
            FaultCause::Missing(object) if object.kind == VIRTUAL_ROUTER => {
                ("VirtualRouter for", router_event::VIRTUAL_ROUTER_NOT_FOUND)
            }
            _ => ("VirtualService", router_event::VIRTUAL_SERVICE_NOT_FOUND),
        };
        let message = format!("{what} `{name}` not found in namespace `{namespace}`");
        Some(fault.told(reason, message))
    }

    fn plan_router(
        &self,
        goal: &Goal<'_>,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteWrite>, RouteFault> {
        if let Some(fault) = self.misconfigured().or_else(|| self.gone(seen)) {
            return Err(fault);
        }
        let (Some(need), Some(nodes)) = (self.virtual_router(seen), self.nodes()) else {
            let service = self.service().expect("the configuration names one");
            let message = "Virtual-service is not associated with virtual-router";
            return Err(RouteFault::unfit(&service, message));
        };
        let known = seen.get(&need.object).ok_or_else(|| RouteFault::missing(&need))?;
        let after = mesh::weighted(known, self.route_names(), &nodes, goal)
            .map_err(|message| RouteFault::unfit(&need, message))?;
        Ok(after.map(|routes| {
            let op = RouteOp::Merge(json!({ "spec": { "routes": routes } }));
            RouteWrite { target: need.object, op, told: Vec::new() }
        }))
    }

    fn plan_node(
        &self,
        side: TrafficSide,
        hash: &str,
        seen: &RoutingObjects,
    ) -> Result<Option<RouteWrite>, RouteFault> {
        let Some(need) = self.node(side) else { return Ok(None) };
        let known = seen.get(&need.object).ok_or_else(|| {
            let ObjectRef { name, namespace, .. } = &need.object;
            let message = format!("VirtualNode `{name}` not found in namespace `{namespace}`");
            RouteFault::missing(&need).told(router_event::VIRTUAL_NODE_NOT_FOUND, message)
        })?;
        let patch: Option<Value> = mesh::selecting(known, hash, &self.rollout.name);
        let op = patch.map(RouteOp::Merge);
        Ok(op.map(|op| RouteWrite { target: need.object, op, told: Vec::new() }))
    }
}
