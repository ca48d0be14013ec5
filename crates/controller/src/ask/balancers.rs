//! Asks AWS how the load balancers of Ingresses split the traffic. The AWS load balancer controller
//! tags each target group with the Ingress, the Service and the port that it stands for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gradus_api::rollout::status::{AlbStatus, AwsResource};
use gradus_engine::ask::http::{Auth, HttpError, HttpRequest};
use gradus_engine::ask::secret::Encoding;
use gradus_engine::ask::{Class, Split, TargetsOf, WeightsOf, WeightsSaid};
use gradus_engine::decision::{Kind, ObjectRef};
use gradus_engine::frame::Frame;
use jiff::SignedDuration;
use serde_json::Value;

use super::aws;
use super::http::HttpClient;
use super::secrets::{Secrets, Values};
use super::xml::Element;
use crate::cluster::{Cluster, Listing, WriteError};

/// The version of the API of load balancers.
const VERSION: &str = "2015-12-01";

/// How long one request may take.
const PATIENCE: SignedDuration = SignedDuration::from_secs(20);

/// The label of the EndpointSlices of a Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// So many resources are named in one question about tags: the most that AWS takes.
const TAGS_AT_ONCE: usize = 20;

/// The pages of one list that are read at most: 400 load balancers each.
const PAGES_LIMIT: usize = 50;

/// Asks load balancers.
pub(super) struct Balancers<'b, C> {
    pub(super) http: &'b HttpClient,
    pub(super) secrets: Secrets<'b, C>,
    pub(super) names: &'b BalancerNames,
}

/// How things of load balancers are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancerNames {
    /// The tag that says what a target group stands for.
    pub resource_tag: String,
    /// Group and version of TargetGroupBindings.
    pub bindings: (String, String),
}

/// The weights that rules give to target groups, by ARN.
type GroupWeights = BTreeMap<String, BTreeSet<i32>>;

/// What is known of one load balancer.
struct Seen {
    status: AlbStatus,
    /// The weights of target groups, by ARN: one where all rules agree.
    weights: GroupWeights,
    /// The target groups, by what they stand for.
    groups: BTreeMap<String, AwsResource>,
}

impl<C: Cluster> Balancers<'_, C> {
    /// Are the weights in force, on every load balancer of every Ingress?
    pub(super) async fn weights(&self, of: &WeightsOf) -> Result<WeightsSaid, WriteError> {
        let mut load_balancers = Vec::new();
        let mut verdicts = Vec::new();
        for ingress in &of.ingresses {
            let object = self.secrets.cluster.read_whole(ingress).await?.unwrap_or_default();
            let entries = object["status"]["loadBalancer"]["ingress"].as_array();
            let names = entries.into_iter().flatten().filter_map(|one| one["hostname"].as_str());
            let names: Vec<&str> = names.collect();
            if names.is_empty() {
                let message = format!("Ingress `{}` has no load balancer yet", ingress.name);
                verdicts.push((Split::Nowhere, message));
            }
            for name in names {
                match self.look(of, ingress, name).await? {
                    Some(seen) => {
                        verdicts.push(seen.verdict(of, ingress));
                        load_balancers.push(seen.status);
                    }
                    None => {
                        let message = format!("no load balancer has the DNS name `{name}`");
                        verdicts.push((Split::Nowhere, message));
                    }
                }
            }
        }
        Ok(worst(&verdicts, load_balancers))
    }

    /// Are the pods behind a Service registered in every target group that is bound to it?
    pub(super) async fn targets(&self, of: &TargetsOf) -> Result<WeightsSaid, WriteError> {
        let service = self.secrets.cluster.read_whole(&of.service).await?.unwrap_or_default();
        let (bindings, slices) = (self.bindings(of).await?, self.slices(of).await?);
        let mut verdicts = Vec::new();
        for binding in bindings.iter().map(|binding| &binding["spec"]) {
            let Some(port) = bound_port(binding, &of.service.name, &service) else { continue };
            let arn = binding["targetGroupARN"].as_str().unwrap_or_default();
            let named = format!("Service {} (TargetGroup {arn})", of.service.name);
            let by_group = [("TargetGroupArn".to_owned(), arn.to_owned())];
            let health = self.list("DescribeTargetHealth", "TargetHealthDescriptions", &by_group);
            let health = match health.await {
                Ok(health) => health,
                Err(error) => {
                    let message = format!("Failed to verify {named}: {}", error.message);
                    return Err(WriteError { message, ..error });
                }
            };
            let target = |one: &Element| format!("{}:{}", one.text_of("Id"), one.text_of("Port"));
            let registered: BTreeSet<String> = health.iter().map(target).collect();
            let wanted = endpoints(&slices, port, &of.set);
            let (all, there) = (wanted.len(), wanted.intersection(&registered).count());
            // Endpoints may come later than the pods that they are about.
            verdicts.push(match all > 0 && there == all {
                true => (Split::AsTold, format!("{named} verified: {all} endpoints registered")),
                false => {
                    let text = format!("{named} not verified: {there}/{all} endpoints registered");
                    (Split::Otherwise, text)
                }
            });
        }
        Ok(worst(&verdicts, Vec::new()))
    }

    /// What binds Services to target groups in a namespace.
    async fn bindings(&self, of: &TargetsOf) -> Result<Vec<Value>, WriteError> {
        let (group, version) = self.names.bindings.clone();
        let kind = Kind {
            group: group.into(),
            version: version.into(),
            name: "TargetGroupBinding".into(),
            plural: "targetgroupbindings".into(),
        };
        self.objects(kind, of, String::new()).await
    }

    async fn slices(&self, of: &TargetsOf) -> Result<Vec<Value>, WriteError> {
        let kind = Kind::new("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
        self.objects(kind, of, format!("{SERVICE_NAME}={}", of.service.name)).await
    }

    async fn objects(
        &self,
        kind: Kind,
        of: &TargetsOf,
        labels: String,
    ) -> Result<Vec<Value>, WriteError> {
        let listing = Listing { kind, namespace: Arc::clone(&of.service.namespace), labels };
        let found = self.secrets.cluster.list(&listing).await?;
        Ok(found.iter().map(Frame::object).collect())
    }

    /// What there is behind a DNS name.
    async fn look(
        &self,
        of: &WeightsOf,
        ingress: &ObjectRef,
        dns_name: &str,
    ) -> Result<Option<Seen>, WriteError> {
        let all = self.list("DescribeLoadBalancers", "LoadBalancers", &[]).await?;
        let Some(balancer) = all.iter().find(|one| one.text_of("DNSName") == dns_name) else {
            return Ok(None);
        };
        let arn = balancer.text_of("LoadBalancerArn");
        let by_balancer = [("LoadBalancerArn".to_owned(), arn.to_owned())];
        let groups = self.list("DescribeTargetGroups", "TargetGroups", &by_balancer).await?;
        let groups: Vec<AwsResource> = groups.iter().map(target_group).collect();
        let mut forwards = Vec::new();
        for listener in self.list("DescribeListeners", "Listeners", &by_balancer).await? {
            let by_listener =
                [("ListenerArn".to_owned(), listener.text_of("ListenerArn").to_owned())];
            for rule in self.list("DescribeRules", "Rules", &by_listener).await? {
                forwards.extend(rule.members("Actions").iter().map(forwarded));
            }
        }
        let groups = self.by_resource(groups).await?;
        let of_service = |service: &str| {
            groups.get(&resource(ingress, service, of.port)).cloned().unwrap_or_default()
        };
        let status = AlbStatus {
            load_balancer: AwsResource {
                name: balancer.text_of("LoadBalancerName").to_owned(),
                arn: arn.to_owned(),
                full_name: behind(arn, 2),
            },
            canary_target_group: of_service(&of.canary),
            stable_target_group: of_service(&of.stable),
            ingress: ingress.name.to_string(),
        };
        Ok(Some(Seen { status, weights: weights_in(&forwards), groups }))
    }

    /// Target groups by the value of the tag that says what they stand for.
    async fn by_resource(
        &self,
        groups: Vec<AwsResource>,
    ) -> Result<BTreeMap<String, AwsResource>, WriteError> {
        let mut found = BTreeMap::new();
        for some in groups.chunks(TAGS_AT_ONCE) {
            let named = some.iter().enumerate();
            let named = named
                .map(|(at, group)| (format!("ResourceArns.member.{}", at + 1), group.arn.clone()));
            let named: Vec<_> = named.collect();
            for described in self.list("DescribeTags", "TagDescriptions", &named).await? {
                let arn = described.text_of("ResourceArn");
                let mut tags = described.members("Tags").iter();
                let tag = tags.find(|tag| tag.text_of("Key") == self.names.resource_tag);
                let group = some.iter().find(|group| group.arn == arn);
                if let (Some(tag), Some(group)) = (tag, group) {
                    found.insert(tag.text_of("Value").to_owned(), group.clone());
                }
            }
        }
        Ok(found)
    }

    /// All members of a list, page by page.
    async fn list(
        &self,
        action: &str,
        list: &str,
        parameters: &[(String, String)],
    ) -> Result<Vec<Element>, WriteError> {
        let mut found = Vec::new();
        let mut marker = String::new();
        for _ in 0..PAGES_LIMIT {
            let answer = self.request(action, parameters, &marker).await?;
            found.extend_from_slice(answer.members(list));
            answer.text_of("NextMarker").clone_into(&mut marker);
            if marker.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    async fn request(
        &self,
        action: &str,
        parameters: &[(String, String)],
        marker: &str,
    ) -> Result<Element, WriteError> {
        let variable = |name: &str| std::env::var(name).ok();
        let region =
            aws::region(String::new(), variable).map_err(|error| failed(action, &error))?;
        let fixed = [("Action", action), ("Version", VERSION), ("Marker", marker)];
        let fixed = fixed.into_iter().filter(|(_, value)| !value.is_empty());
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let fields = fixed.chain(parameters.iter().cloned());
        let fields = fields.map(|(name, value)| format!("{name}={}", Encoding::Form.apply(&value)));
        let body = fields.collect::<Vec<_>>().join("&");
        let request = HttpRequest::post(endpoint(&region, variable), body, PATIENCE)
            .header("content-type", "application/x-www-form-urlencoded; charset=utf-8");
        let auth = Auth::SigV4 {
            service: "elasticloadbalancing".to_owned(),
            region: region.into(),
            profile: String::new().into(),
            role_arn: String::new().into(),
        };
        let request = HttpRequest { auth, redirects: 0, ..request };
        let reply = self.http.send(&Values::default(), &request).await;
        let reply = reply.map_err(|error| failed(action, &error))?;
        let answer = Element::parse(&reply.body);
        match answer {
            Some(answer) if reply.status == 200 => Ok(answer),
            answer => {
                let said = answer.map(|answer| answer.text_of("Message").to_owned());
                let said = said.filter(|said| !said.is_empty());
                let said = said.unwrap_or_else(|| format!("status {}", reply.status));
                Err(failed(action, &HttpError::Connect(said)))
            }
        }
    }
}

impl Seen {
    /// Is the weight of the new revision in force here, and are those of further Services?
    fn verdict(&self, of: &WeightsOf, ingress: &ObjectRef) -> (Split, String) {
        let own = (of.canary.clone(), of.weight);
        let mut verdicts = [&own].into_iter().chain(&of.additional).map(|(service, weight)| {
            let resource = resource(ingress, service, of.port);
            let Some(group) = self.groups.get(&resource) else {
                let message = format!("Service {service}: no target group is tagged {resource}");
                return (Split::Otherwise, message);
            };
            // What no rule forwards to gets nothing.
            let nothing = BTreeSet::from([0]);
            let mut found = self.weights.get(&group.arn).unwrap_or(&nothing).iter();
            let named = format!("Service {service} (TargetGroup {})", group.arn);
            let Some(current) = found.find(|found| *found != weight) else {
                return (Split::AsTold, format!("{named} verified: canary weight {weight} set"));
            };
            let message = format!(
                "{named} not verified: canary weight {weight} not yet set (current: {current})"
            );
            (Split::Otherwise, message)
        });
        let first = verdicts.next().unwrap_or((Split::AsTold, String::new()));
        if first.0 != Split::AsTold {
            return first;
        }
        verdicts.find(|(split, _)| *split != Split::AsTold).unwrap_or(first)
    }
}

/// The first verdict that is none of a good one, or else the last.
fn worst(verdicts: &[(Split, String)], load_balancers: Vec<AlbStatus>) -> WeightsSaid {
    let is_other = |(split, _): &&(Split, String)| *split != Split::AsTold;
    let worst = verdicts.iter().find(is_other).or_else(|| verdicts.last());
    let (split, message) = worst.cloned().unwrap_or((Split::AsTold, String::new()));
    WeightsSaid { split, message, load_balancers }
}

/// The port of a Service that a binding is about, by addresses of pods; `None` of any other binding.
fn bound_port<'s>(binding: &Value, name: &str, service: &'s Value) -> Option<&'s Value> {
    let bound = &binding["serviceRef"];
    let is_meant = binding["targetType"] == "ip" && bound["name"] == *name;
    let mut ports = service["spec"]["ports"].as_array()?.iter();
    let is_bound = |port: &&Value| port["port"] == bound["port"] || port["name"] == bound["port"];
    ports.find(is_bound).filter(|_| is_meant)
}

/// The ready endpoints of a port of a Service that are pods of this ReplicaSet, as `ip:port`.
fn endpoints(slices: &[Value], port: &Value, set: &str) -> BTreeSet<String> {
    let text = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let is_theirs = |endpoint: &&Value| {
        let pod = endpoint["targetRef"]["name"].as_str();
        let is_theirs =
            pod.is_none_or(|pod| pod.strip_prefix(set).is_some_and(|rest| rest.starts_with('-')));
        is_theirs && endpoint["conditions"]["ready"] != false
    };
    let mut found = BTreeSet::new();
    for slice in slices {
        let ports = slice["ports"].as_array().into_iter().flatten();
        let numbers = ports.filter(|one| text(one) == text(port)).map(|one| &one["port"]);
        let endpoints = slice["endpoints"].as_array().into_iter().flatten().filter(is_theirs);
        let addresses: Vec<&str> = endpoints
            .flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .collect();
        for number in numbers {
            found.extend(addresses.iter().map(|address| format!("{address}:{number}")));
        }
    }
    found
}

/// Where load balancers are asked: the variables are those of the AWS SDKs.
fn endpoint(region: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let named = ["AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2", "AWS_ENDPOINT_URL"];
    let named = named.into_iter().filter_map(variable).find(|url| !url.is_empty());
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let usual = || format!("https://elasticloadbalancing.{region}.{domain}");
    let url = named.unwrap_or_else(usual);
    format!("{}/", url.trim_end_matches('/'))
}

/// What a target group stands for, as the AWS load balancer controller writes it.
fn resource(ingress: &ObjectRef, service: &str, port: i32) -> String {
    let ObjectRef { namespace, name, .. } = ingress;
    format!("{namespace}/{name}-{service}:{port}")
}

fn target_group(group: &Element) -> AwsResource {
    let arn = group.text_of("TargetGroupArn");
    AwsResource {
        name: group.text_of("TargetGroupName").to_owned(),
        arn: arn.to_owned(),
        full_name: behind(arn, 1),
    }
}

/// An ARN without so many of its first parts, as CloudWatch names the resource.
fn behind(arn: &str, parts: usize) -> String {
    arn.split('/').skip(parts).collect::<Vec<_>>().join("/")
}

/// The weights of every target group. A rule with one group alone is that of a header route: it says
/// nothing of a group that another rule splits the traffic with.
fn weights_in(forwards: &[Vec<(String, i32)>]) -> GroupWeights {
    let (splits, whole): (Vec<_>, Vec<_>) = forwards.iter().partition(|groups| groups.len() > 1);
    let mut found = GroupWeights::new();
    for (arn, weight) in splits.into_iter().flatten() {
        found.entry(arn.clone()).or_default().insert(*weight);
    }
    for (arn, weight) in whole.into_iter().flatten() {
        found.entry(arn.clone()).or_insert_with(|| BTreeSet::from([*weight]));
    }
    found
}

/// The target groups that an action forwards to, with their weights.
fn forwarded(action: &Element) -> Vec<(String, i32)> {
    let Some(forward) = action.find("ForwardConfig") else { return Vec::new() };
    let weighted = forward.members("TargetGroups").iter().map(|group| {
        let weight = group.text_of("Weight").parse().unwrap_or(0);
        (group.text_of("TargetGroupArn").to_owned(), weight)
    });
    weighted.collect()
}

fn failed(action: &str, error: &HttpError) -> WriteError {
    let message = format!("{action}: {error}");
    WriteError { class: Class::Unreachable, message, retry_after_secs: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_are_ready_pods_of_the_replica_set_by_their_port() {
        let pod = |name: &str, address: &str, ready: Value| {
            json!({ "addresses": [address], "conditions": { "ready": ready },
                "targetRef": { "kind": "Pod", "name": name } })
        };
        let slice = json!({
            "ports": [{ "name": "http", "port": 8080 }, { "name": "admin", "port": 9 }],
            "endpoints": [
                pod("web-new-1", "10.0.0.1", json!(true)), pod("web-new-2", "10.0.0.2", json!(null)),
                pod("web-new-3", "10.0.0.3", json!(false)), pod("web-old-1", "10.0.0.4", json!(true)),
                { "addresses": ["10.0.0.5"], "conditions": {} },
            ],
        });
        let port = json!({ "name": "http", "port": 80, "targetPort": "http" });
        let found = endpoints(&[slice], &port, "web-new");
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.5:8080"]);
    }

    /// What | the rules | each group with its weights.
    #[test]
    fn weights_are_those_of_the_rules_that_split() {
        let cases = [
            ("one rule", "a 80 b 20", "a 80, b 20"),
            ("a header route beside it", "b 100; a 80 b 20; b 100", "a 80, b 20"),
            ("two listeners, one of them behind", "a 80 b 20; a 100 b 0", "a 80 100, b 0 20"),
            ("nothing is split", "b 100", "b 100"),
            ("no rule", "", ""),
        ];
        for (what, rules, expected) in cases {
            let rule = |text: &str| {
                let words: Vec<&str> = text.split_whitespace().collect();
                let pair = |pair: &[&str]| (pair[0].to_owned(), pair[1].parse().unwrap());
                words.chunks(2).map(pair).collect::<Vec<(String, i32)>>()
            };
            let found = weights_in(&rules.split(';').map(rule).collect::<Vec<_>>());
            let line = |(arn, weights): (&String, &BTreeSet<i32>)| {
                let weights: Vec<String> = weights.iter().map(ToString::to_string).collect();
                format!("{arn} {}", weights.join(" "))
            };
            let found: Vec<String> = found.iter().map(line).collect();
            assert_eq!(found.join(", "), expected, "{what}");
        }
    }

    #[test]
    fn a_binding_is_meant_by_service_port_and_type() {
        let service =
            json!({ "spec": { "ports": [{ "port": 80 }, { "name": "admin", "port": 9 }] } });
        let binding = |name: &str, port: Value, kind: &str| json!({ "serviceRef": { "name": name, "port": port }, "targetType": kind });
        let cases = [
            (binding("web", json!(80), "ip"), Some(80)),
            (binding("web", json!("admin"), "ip"), Some(9)),
            (binding("web", json!(81), "ip"), None),
            (binding("web", json!(80), "instance"), None),
            (binding("other", json!(80), "ip"), None),
        ];
        for (binding, expected) in cases {
            let port = bound_port(&binding, "web", &service);
            assert_eq!(port.and_then(|port| port["port"].as_i64()), expected, "{binding}");
        }
    }
}
