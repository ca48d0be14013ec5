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
        /// Istio: weights are written into VirtualServices, pod template hashes into a
        /// DestinationRule. Default: not used.
        istio: Option<Box<IstioRouting>>,
        /// ingress-nginx: a canary Ingress with a weight is kept beside each stable Ingress.
        /// Default: not used.
        nginx: Option<Box<NginxRouting>>,
        /// AWS Load Balancer Controller: weights are written into an annotation of the Ingress.
        /// Default: not used.
        alb: Option<Box<AlbRouting>>,
        /// Service Mesh Interface: weights are written into a TrafficSplit. Default: not used.
        smi: Option<Box<SmiRouting>>,
        /// Ambassador: a canary Mapping with a weight is kept beside each Mapping. Default: not
        /// used.
        ambassador: Option<Box<AmbassadorRouting>>,
        /// AWS App Mesh: weights are written into the VirtualRouter of a VirtualService. Default:
        /// not used.
        app_mesh: Option<Box<AppMeshRouting>>,
        /// Traefik: weights are written into a weighted TraefikService. Default: not used.
        traefik: Option<Box<TraefikRouting>>,
        /// Names of the routes that `setHeaderRoute` and `setMirrorRoute` steps create, in order of
        /// precedence. Default: none.
        managed_routes: Vec<ManagedRoute>,
        /// Apache APISIX: weights are written into an ApisixRoute. Default: not used.
        apisix: Option<Box<ApisixRouting>>,
        /// Traffic router plugins by name, each with the configuration that it documents. Default:
        /// none.
        plugins: BTreeMap<String, Arc<Value>> => free_form_object(),
        /// Weight that stands for all traffic. Only with nginx or plugins. Default: 100, weights
        /// are percentages.
        max_traffic_weight: Option<i32>,
    }

    /// A route the steps make.
    pub struct ManagedRoute {
        /// Name of a route that steps create. Every route of a step must be listed. Required.
        required name: String,
    }

    /// Istio: exactly one of `virtualService` and `virtualServices`.
    pub struct IstioRouting {
        /// VirtualService whose routes carry the weights. Exactly one of `virtualService` and
        /// `virtualServices` is required.
        virtual_service: Option<IstioVirtualService>,
        /// DestinationRule with one subset per revision, for a split by subset instead of by
        /// Service. Default: none.
        destination_rule: Option<IstioDestinationRule>,
        /// VirtualServices whose routes carry the weights. Exactly one of `virtualService` and
        /// `virtualServices` is required.
        virtual_services: Vec<IstioVirtualService>,
    }

    /// A VirtualService and its routes that carry the weights.
    pub struct IstioVirtualService {
        /// Name of the VirtualService, in the namespace of the Rollout or with its own, as in
        /// `name.namespace`. Required.
        required name: String,
        /// Names of the HTTP routes that carry the weights. Default: the only HTTP route.
        routes: Vec<String>,
        /// TLS routes that carry the weights. Default: the only TLS route.
        tls_routes: Vec<TlsRoute>,
        /// TCP routes that carry the weights. Default: the only TCP route.
        tcp_routes: Vec<TcpRoute>,
    }

    /// A TLS route, by port, hosts or both.
    pub struct TlsRoute {
        /// Port number that the route matches. Default: 0, a route without a port.
        port: i64,
        /// SNI host names that the route matches, all of them. Default: none.
        sni_hosts: Vec<String>,
    }

    /// A TCP route, by port.
    pub struct TcpRoute {
        /// Port number that the route matches. Default: 0, a route without a port.
        port: i64,
    }

    /// A DestinationRule with a subset per revision.
    pub struct IstioDestinationRule {
        /// Name of the DestinationRule, in the namespace of the Rollout. Required.
        required name: String,
        /// Name of the subset whose label the controller sets to the new revision's hash. Required.
        required canary_subset_name: String,
        /// Name of the subset whose label the controller sets to the stable revision's hash.
        /// Required.
        required stable_subset_name: String,
        /// Names of further subsets in the routes, whose weights are left as they are. Default:
        /// none.
        additional_subset_names: Vec<String>,
    }

    /// Ingress of nginx: exactly one of `stableIngress` and `stableIngresses`.
    pub struct NginxRouting {
        /// Prefix of the annotations that the ingress controller reads. Default:
        /// `nginx.ingress.kubernetes.io`.
        annotation_prefix: String,
        /// Name of the Ingress that routes to the stable Service. Exactly one of `stableIngress`
        /// and `stableIngresses` is required.
        stable_ingress: String,
        /// Annotations to add to the canary Ingress, by key without prefix; the prefix is put
        /// before it. Default: none.
        additional_ingress_annotations: BTreeMap<String, String>,
        /// Names of the Ingresses that route to the stable Service. Exactly one of `stableIngress`
        /// and `stableIngresses` is required.
        stable_ingresses: Vec<String>,
        /// Annotations to add to the canary Ingress, by full key. They override
        /// `additionalIngressAnnotations`. Default: none.
        canary_ingress_annotations: BTreeMap<String, String>,
    }

    /// AWS load balancer controller: exactly one of `ingress` and `ingresses`.
    pub struct AlbRouting {
        /// Name of the Ingress that routes to the root Service. Exactly one of `ingress` and
        /// `ingresses` is required.
        ingress: String,
        /// Port number of the Services that the target groups point at. Required.
        required service_port: i32,
        /// Name of the Service that the Ingress has as its backend, with the port name
        /// `use-annotation`. Required with `pingPong`. Default: the stable Service.
        root_service: String,
        /// Prefix of the annotations that the load balancer controller reads. Default:
        /// `alb.ingress.kubernetes.io`.
        annotation_prefix: String,
        /// Stickiness of the target groups: a client stays with the revision that it first reached.
        /// Default: none.
        stickiness_config: Option<StickinessConfig>,
        /// Names of the Ingresses that route to the root Service. Exactly one of `ingress` and
        /// `ingresses` is required.
        ingresses: Vec<String>,
    }

    /// Whether a client stays with a revision, and how long.
    pub struct StickinessConfig {
        /// Turns stickiness on. Required, true or false.
        required enabled: bool,
        /// Seconds that a client stays with a revision, 1 to 604800 (7 days). Required.
        required duration_seconds: i64,
    }

    /// Service Mesh Interface.
    pub struct SmiRouting {
        /// Name of the Service that clients call. Default: the stable Service.
        root_service: String,
        /// Name of the TrafficSplit, which the controller creates. Default: the name of the
        /// Rollout.
        traffic_split_name: String,
    }

    /// Ambassador.
    pub struct AmbassadorRouting {
        /// Names of the Mappings of the stable Service, at least one, none of which may have a
        /// weight of its own. Required.
        required mappings: Vec<String>,
    }

    /// AWS App Mesh.
    pub struct AppMeshRouting {
        /// VirtualService whose VirtualRouter carries the weights. Required.
        virtual_service: Option<AppMeshVirtualService>,
        /// VirtualNodes of the two revisions, whose pod selectors the controller sets. Default:
        /// none.
        virtual_node_group: Option<AppMeshVirtualNodeGroup>,
    }

    /// A VirtualService of App Mesh and its routes that carry the weights.
    pub struct AppMeshVirtualService {
        /// Name of the VirtualService, in the namespace of the Rollout. Required.
        required name: String,
        /// Names of the routes that carry the weights, each with exactly two targets. Default: all
        /// routes.
        routes: Vec<String>,
    }

    /// The VirtualNodes of both revisions.
    pub struct AppMeshVirtualNodeGroup {
        /// VirtualNode that selects the pods of the new revision. Required.
        required canary_virtual_node_ref: Option<AppMeshVirtualNode>,
        /// VirtualNode that selects the pods of the stable revision. Required.
        required stable_virtual_node_ref: Option<AppMeshVirtualNode>,
    }

    /// A VirtualNode of App Mesh.
    pub struct AppMeshVirtualNode {
        /// Name of the VirtualNode, in the namespace of the Rollout. Required.
        required name: String,
    }

    /// Traefik.
    pub struct TraefikRouting {
        /// Name of the TraefikService whose weighted services include the stable and the canary
        /// Service. Required.
        required weighted_traefik_service_name: String,
    }

    /// Apache APISIX.
    pub struct ApisixRouting {
        /// ApisixRoute whose backends carry the weights. Required.
        route: Option<ApisixRoute>,
    }

    /// An ApisixRoute and its rules that carry the weights.
    pub struct ApisixRoute {
        /// Name of the ApisixRoute, in the namespace of the Rollout. Required.
        required name: String,
        /// Names of the HTTP rules that carry the weights. Default: the rule that has the name of
        /// the route.
        rules: Vec<String>,
    }
}
