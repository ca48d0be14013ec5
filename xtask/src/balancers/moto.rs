//! moto, which answers as AWS does: where does it come from, and how does a load balancer get there?

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use http::Request;
use kube::{Client, Config};
use thiserror::Error;
use tokio::net::TcpStream;

use crate::{
    Failure, ports,
    process::{Process, Recipe},
    servers,
};

/// The region that everything is in.
pub const REGION: &str = "us-east-1";

const VERSION: &str = "5.2.5";

/// The tag by which the AWS load balancer controller marks a target group.
const RESOURCE_TAG: &str = "ingress.k8s.aws/resource";

/// How long it may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(60);

const ASK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Error)]
enum MotoError {
    #[error("pip could not install moto {VERSION}: {0}")]
    Install(String),
    #[error("moto did not listen within {} s; the end of its log:\n{words}", READY_WITHIN.as_secs())]
    NotReady { words: String },
    #[error("moto: {action}: expected {expected} in its answer: {answer}")]
    Answer { action: String, expected: String, answer: String },
}

/// The packages it consists of.
pub struct Moto {
    packages: PathBuf,
}

/// A running moto; dropping it ends it.
pub struct Running {
    client: Client,
    port: u16,
    _process: Process,
}

/// A load balancer with one target group for each Service.
pub struct Balancer {
    pub dns_name: String,
    rule: String,
    groups: Vec<String>,
}

impl Moto {
    /// Installs what is missing; says why where this machine cannot have it.
    pub fn ready() -> Result<Result<Self, String>, Failure> {
        let packages = servers::cache()?.join(format!("moto-{VERSION}"));
        if packages.exists() {
            return Ok(Ok(Self { packages }));
        }
        let pip = Command::new("python3").args(["-m", "pip", "--version"]).output();
        if !pip.is_ok_and(|output| output.status.success()) {
            return Ok(Err("expected python3 with pip, to install moto".to_owned()));
        }
        eprintln!("installing moto {VERSION} …");
        // Installed beside its name and renamed: an interrupted run leaves no half folder.
        let partial =
            packages.with_file_name(format!("moto-{VERSION}.partial-{}", std::process::id()));
        fs::create_dir_all(&partial)?;
        let output = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--target"])
            .arg(&partial)
            .arg(format!("moto[server,elbv2,ec2]=={VERSION}"))
            .output()?;
        if !output.status.success() {
            fs::remove_dir_all(&partial)?;
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(MotoError::Install(message).into());
        }
        fs::rename(&partial, &packages)?;
        Ok(Ok(Self { packages }))
    }

    /// Starts it; it listens when this returns.
    pub async fn start(&self, folder: &Path) -> Result<Running, Failure> {
        let [port] = ports::free()?;
        let python = which("python3")?;
        let recipe = Recipe::new("moto", &python)
            .variable("PYTHONPATH", &self.packages)
            .argument("-m")
            .argument("moto.server")
            .argument("-H")
            .argument("127.0.0.1")
            .argument("-p")
            .argument(port.to_string());
        let mut process = Process::start(&recipe, folder)?;
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            if process.ended()?.is_some() || began.elapsed() > READY_WITHIN {
                return Err(MotoError::NotReady { words: process.last_words() }.into());
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
        let address = format!("http://127.0.0.1:{port}");
        let config = Config::new(address.parse().expect("a loopback address is a valid one"));
        Ok(Running { client: Client::try_from(config)?, port, _process: process })
    }
}

/// The path of a program.
fn which(name: &str) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.find(|path| path.is_file()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Running {
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes a load balancer with a target group for each Service; all traffic goes to the first.
    pub async fn balancer(
        &self,
        services: &[&str],
        resource: impl Fn(&str) -> String,
    ) -> Result<Balancer, Failure> {
        let subnets = self.call("ec2", "DescribeSubnets", &[]).await?;
        let (vpc, subnets) = (value(&subnets, "vpcId")?, values(&subnets, "subnetId"));
        let [one, other, ..] = &*subnets else {
            return Err(MotoError::Answer {
                action: "DescribeSubnets".to_owned(),
                expected: "two subnets".to_owned(),
                answer: subnets.join(", "),
            }
            .into());
        };
        let fields = [("Name", "web"), ("Subnets.member.1", one), ("Subnets.member.2", other)];
        let made = self.balance("CreateLoadBalancer", &fields).await?;
        let (balancer, dns_name) = (value(&made, "LoadBalancerArn")?, value(&made, "DNSName")?);
        let mut groups = Vec::new();
        for service in services {
            let fields =
                [("Name", *service), ("Protocol", "HTTP"), ("Port", "80"), ("VpcId", &vpc)];
            let made = self.balance("CreateTargetGroup", &fields).await?;
            let group = value(&made, "TargetGroupArn")?;
            let (tag, resource) = (RESOURCE_TAG, resource(service));
            let fields = [
                ("ResourceArns.member.1", group.as_str()),
                ("Tags.member.1.Key", tag),
                ("Tags.member.1.Value", &resource),
            ];
            self.balance("AddTags", &fields).await?;
            groups.push(group);
        }
        let fields = [
            ("LoadBalancerArn", balancer.as_str()),
            ("Protocol", "HTTP"),
            ("Port", "80"),
            ("DefaultActions.member.1.Type", "fixed-response"),
            ("DefaultActions.member.1.FixedResponseConfig.StatusCode", "404"),
        ];
        let listener = value(&self.balance("CreateListener", &fields).await?, "ListenerArn")?;
        let mut weights = vec![0; groups.len()];
        weights[0] = 100;
        let actions = actions(&groups, &weights);
        let mut fields = vec![
            ("ListenerArn", listener.as_str()),
            ("Priority", "1"),
            ("Conditions.member.1.Field", "path-pattern"),
            ("Conditions.member.1.Values.member.1", "/*"),
        ];
        fields.extend(actions.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let rule = value(&self.balance("CreateRule", &fields).await?, "RuleArn")?;
        Ok(Balancer { dns_name, rule, groups })
    }

    /// Splits the traffic of a load balancer, one weight for each Service.
    pub async fn split(&self, balancer: &Balancer, weights: &[i32]) -> Result<(), Failure> {
        let actions = actions(&balancer.groups, weights);
        let mut fields = vec![("RuleArn", balancer.rule.as_str())];
        fields.extend(actions.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        self.balance("ModifyRule", &fields).await.map(drop)
    }

    async fn balance(&self, action: &str, fields: &[(&str, &str)]) -> Result<String, Failure> {
        self.call("elasticloadbalancing", action, fields).await
    }

    /// One request of the query protocol.
    pub async fn call(
        &self,
        service: &str,
        action: &str,
        fields: &[(&str, &str)],
    ) -> Result<String, Failure> {
        let version = match service {
            "ec2" => "2016-11-15",
            "monitoring" => "2010-08-01",
            _ => "2015-12-01",
        };
        let fixed = [("Action", action), ("Version", version)];
        let encoded = |text: &str| {
            let byte = |byte: u8| match byte {
                byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
                byte => format!("%{byte:02X}"),
            };
            text.bytes().map(byte).collect::<String>()
        };
        let body = fixed.iter().chain(fields);
        let body = body.map(|(name, value)| format!("{name}={}", encoded(value)));
        let body = body.collect::<Vec<_>>().join("&");
        // By the signature it knows which service is meant; it checks nothing.
        let scope = format!("test/20260101/{REGION}/{service}/aws4_request");
        let request = Request::post("/")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("authorization", format!("AWS4-HMAC-SHA256 Credential={scope}, Signature=x"))
            .body(body.into_bytes())?;
        Ok(self.client.request_text(request).await?)
    }
}

/// The fields of an action that forwards with these weights.
fn actions(groups: &[String], weights: &[i32]) -> Vec<(String, String)> {
    let mut fields = vec![("Actions.member.1.Type".to_owned(), "forward".to_owned())];
    for (at, (group, weight)) in groups.iter().zip(weights).enumerate() {
        let member = format!("Actions.member.1.ForwardConfig.TargetGroups.member.{}", at + 1);
        fields.push((format!("{member}.TargetGroupArn"), group.clone()));
        fields.push((format!("{member}.Weight"), weight.to_string()));
    }
    fields
}

/// The texts of all elements of a name.
fn values(answer: &str, name: &str) -> Vec<String> {
    let (opens, closes) = (format!("<{name}>"), format!("</{name}>"));
    let behind = answer.split(&opens).skip(1);
    behind.filter_map(|rest| Some(rest.split_once(&closes)?.0.to_owned())).collect()
}

fn value(answer: &str, name: &str) -> Result<String, MotoError> {
    values(answer, name).into_iter().next().ok_or_else(|| MotoError::Answer {
        action: String::new(),
        expected: name.to_owned(),
        answer: answer.to_owned(),
    })
}
