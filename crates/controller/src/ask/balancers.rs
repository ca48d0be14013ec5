//! Asks AWS how the load balancers of Ingresses split the traffic. The AWS load balancer controller
//! tags each target group with the Ingress, the Service and the port that it stands for.

use std::collections::BTreeMap;

use gradus_api::rollout::status::{AlbStatus, AwsResource};
use gradus_engine::ask::http::{Auth, HttpError, HttpRequest};
use gradus_engine::ask::secret::Encoding;
use gradus_engine::ask::{Class, Split, WeightsOf, WeightsSaid};
use gradus_engine::decision::ObjectRef;
use jiff::SignedDuration;

use super::aws;
use super::http::HttpClient;
use super::secrets::{Secrets, Values};
use super::xml::Element;
use crate::cluster::{Cluster, WriteError};

/// The version of the API of load balancers.
const VERSION: &str = "2015-12-01";

/// How long one request may take.
const PATIENCE: SignedDuration = SignedDuration::from_secs(20);

/// So many resources are named in one question about tags: the most that AWS takes.
const TAGS_AT_ONCE: usize = 20;

/// The pages of one list that are read at most: 400 load balancers each.
const PAGES_LIMIT: usize = 50;

/// Asks load balancers.
pub(super) struct Balancers<'b, C> {
    pub(super) http: &'b HttpClient,
    pub(super) secrets: Secrets<'b, C>,
    /// The tag that says what a target group stands for.
    pub(super) resource_tag: &'b str,
}

/// What is known of one load balancer.
struct Seen {
    status: AlbStatus,
    /// The weights of target groups, by ARN.
    weights: BTreeMap<String, i32>,
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
        let is_other = |(split, _): &&(Split, String)| *split != Split::AsTold;
        let worst = verdicts.iter().find(is_other).or_else(|| verdicts.last());
        let (split, message) = worst.cloned().unwrap_or((Split::AsTold, String::new()));
        Ok(WeightsSaid { split, message, load_balancers })
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
        let mut weights = BTreeMap::new();
        for listener in self.list("DescribeListeners", "Listeners", &by_balancer).await? {
            let by_listener =
                [("ListenerArn".to_owned(), listener.text_of("ListenerArn").to_owned())];
            for rule in self.list("DescribeRules", "Rules", &by_listener).await? {
                weights.extend(rule.members("Actions").iter().flat_map(forwarded));
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
        Ok(Some(Seen { status, weights, groups }))
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
                let tag = tags.find(|tag| tag.text_of("Key") == self.resource_tag);
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
            let current = self.weights.get(&group.arn).copied().unwrap_or(0);
            let named = format!("Service {service} (TargetGroup {})", group.arn);
            if current == *weight {
                return (Split::AsTold, format!("{named} verified: canary weight {weight} set"));
            }
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
