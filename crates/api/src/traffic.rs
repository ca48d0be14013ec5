//! Configuration of each traffic router.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::schema::free_form_object;
use crate::view::view;

impl TrafficRouting {
    /// The routers that are asked for by a field of their own, in the order of the fields.
    pub fn asked_for(&self) -> Vec<&'static str> {
        let fields = [
            ("istio", self.istio.is_some()),
            ("nginx", self.nginx.is_some()),
            ("alb", self.alb.is_some()),
            ("smi", self.smi.is_some()),
            ("ambassador", self.ambassador.is_some()),
            ("appMesh", self.app_mesh.is_some()),
            ("traefik", self.traefik.is_some()),
            ("apisix", self.apisix.is_some()),
        ];
        fields.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name).collect()
    }
}

view! {
    /// Who splits the traffic. Several routers may be set; all are served.
    pub struct TrafficRouting {
        /// Istio.
        istio: Option<Box<IstioRouting>>,
        /// Ingress of nginx.
        nginx: Option<Box<NginxRouting>>,
        /// AWS load balancer controller.
        alb: Option<Box<AlbRouting>>,
        /// Service Mesh Interface.
        smi: Option<Box<SmiRouting>>,
        /// Ambassador.
        ambassador: Option<Box<AmbassadorRouting>>,
        /// AWS App Mesh.
        app_mesh: Option<Box<AppMeshRouting>>,
        /// Traefik.
        traefik: Option<Box<TraefikRouting>>,
        /// Routes the steps make, in order of precedence.
        managed_routes: Vec<ManagedRoute>,
        /// Apache APISIX.
        apisix: Option<Box<ApisixRouting>>,
        /// Plugins by name, each with its own configuration.
        plugins: BTreeMap<String, Arc<Value>> => free_form_object(),
        /// What the whole traffic counts as; missing means 100.
        max_traffic_weight: Option<i32>,
    }

    /// A route the steps make.
    pub struct ManagedRoute {
        /// Its name.
        required name: String,
    }

    /// Istio: exactly one of `virtualService` and `virtualServices`.
    pub struct IstioRouting {
        /// The one VirtualService.
        virtual_service: Option<IstioVirtualService>,
        /// The DestinationRule with a subset per revision.
        destination_rule: Option<IstioDestinationRule>,
        /// Several VirtualServices.
        virtual_services: Vec<IstioVirtualService>,
    }

    /// A VirtualService and its routes that carry the weights.
    pub struct IstioVirtualService {
        /// Its name, optionally with `.namespace`.
        required name: String,
        /// Names of HTTP routes; none means the only one.
        routes: Vec<String>,
        /// TLS routes.
        tls_routes: Vec<TlsRoute>,
        /// TCP routes.
        tcp_routes: Vec<TcpRoute>,
    }

    /// A TLS route, by port, hosts or both.
    pub struct TlsRoute {
        /// The port.
        port: i64,
        /// The hosts.
        sni_hosts: Vec<String>,
    }

    /// A TCP route, by port.
    pub struct TcpRoute {
        /// The port.
        port: i64,
    }

    /// A DestinationRule with a subset per revision.
    pub struct IstioDestinationRule {
        /// Its name.
        required name: String,
        /// The subset of the new revision.
        required canary_subset_name: String,
        /// The subset of the stable revision.
        required stable_subset_name: String,
        /// Subsets of the rollout's experiments.
        additional_subset_names: Vec<String>,
    }

    /// Ingress of nginx: exactly one of `stableIngress` and `stableIngresses`.
    pub struct NginxRouting {
        /// Prefix of its annotations; empty means the usual one.
        annotation_prefix: String,
        /// The one Ingress of the stable Service.
        stable_ingress: String,
        /// More annotations for the canary Ingress, under the prefix.
        additional_ingress_annotations: BTreeMap<String, String>,
        /// Several Ingresses of the stable Service.
        stable_ingresses: Vec<String>,
        /// More annotations for the canary Ingress, as they are.
        canary_ingress_annotations: BTreeMap<String, String>,
    }

    /// AWS load balancer controller: exactly one of `ingress` and `ingresses`.
    pub struct AlbRouting {
        /// The one Ingress.
        ingress: String,
        /// The Service's port.
        required service_port: i32,
        /// The Service the Ingress names; empty means the stable one.
        root_service: String,
        /// Prefix of its annotations; empty means the usual one.
        annotation_prefix: String,
        /// Whether a client stays with a revision.
        stickiness_config: Option<StickinessConfig>,
        /// Several Ingresses.
        ingresses: Vec<String>,
    }

    /// Whether a client stays with a revision, and how long.
    pub struct StickinessConfig {
        /// Whether.
        required enabled: bool,
        /// How long.
        required duration_seconds: i64,
    }

    /// Service Mesh Interface.
    pub struct SmiRouting {
        /// The Service clients call; empty means the stable one.
        root_service: String,
        /// Name of the TrafficSplit; empty means the Rollout's.
        traffic_split_name: String,
    }

    /// Ambassador.
    pub struct AmbassadorRouting {
        /// Names of the Mappings.
        required mappings: Vec<String>,
    }

    /// AWS App Mesh.
    pub struct AppMeshRouting {
        /// The VirtualService.
        virtual_service: Option<AppMeshVirtualService>,
        /// The VirtualNodes.
        virtual_node_group: Option<AppMeshVirtualNodeGroup>,
    }

    /// A VirtualService of App Mesh and its routes that carry the weights.
    pub struct AppMeshVirtualService {
        /// Its name.
        required name: String,
        /// Names of its routes; none means the only one.
        routes: Vec<String>,
    }

    /// The VirtualNodes of both revisions.
    pub struct AppMeshVirtualNodeGroup {
        /// Of the new revision.
        required canary_virtual_node_ref: Option<AppMeshVirtualNode>,
        /// Of the stable revision.
        required stable_virtual_node_ref: Option<AppMeshVirtualNode>,
    }

    /// A VirtualNode of App Mesh.
    pub struct AppMeshVirtualNode {
        /// Its name.
        required name: String,
    }

    /// Traefik.
    pub struct TraefikRouting {
        /// Name of the weighted TraefikService.
        required weighted_traefik_service_name: String,
    }

    /// Apache APISIX.
    pub struct ApisixRouting {
        /// The ApisixRoute.
        route: Option<ApisixRoute>,
    }

    /// An ApisixRoute and its rules that carry the weights.
    pub struct ApisixRoute {
        /// Its name.
        required name: String,
        /// Names of its rules; none means all.
        rules: Vec<String>,
    }
}
