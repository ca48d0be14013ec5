//! Profiles of the shared files of AWS: what they say, and what a profile leads to. Reads the two files
//! and nothing else.

use std::collections::BTreeMap;
use std::fs;

/// Where credentials begin, before any role is assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Keys that stand in the profile.
    Keys {
        /// Id of the key.
        id: String,
        /// The secret key.
        secret: String,
        /// The session, if it has one.
        session: Option<String>,
    },
    /// A token in a file, for which a role is given.
    WebIdentity {
        /// The file.
        file: String,
        /// The role.
        role: Role,
    },
    /// The environment.
    Environment,
    /// The container.
    Container,
    /// The machine.
    Machine,
    /// The container or else the machine.
    Surroundings,
}

/// A role that is assumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Role {
    /// Which.
    pub arn: String,
    /// What its session is called; empty for the controller's name.
    pub session: String,
    /// What its owner wants to be told; empty for nothing.
    pub external_id: String,
}

/// The profiles of both files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profiles(BTreeMap<String, Section>);

type Section = BTreeMap<String, String>;

/// So many profiles may lead to each other.
const LINKS_LIMIT: usize = 8;

impl Profiles {
    /// Those of the files that these variables name, else of the home folder. A file that is not there
    /// has none.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let named = |name: &str, file: &str| {
            let at_home = || variable("HOME").map(|home| format!("{home}/.aws/{file}"));
            let path = variable(name).filter(|path| !path.is_empty()).or_else(at_home);
            path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
        };
        let config = named("AWS_CONFIG_FILE", "config");
        let credentials = named("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        Profiles::parse(&config, &credentials)
    }

    /// Those of these texts; what the second says goes before what the first one says.
    fn parse(config: &str, credentials: &str) -> Self {
        let mut profiles: BTreeMap<String, Section> = BTreeMap::new();
        for (text, prefix) in [(config, "profile "), (credentials, "")] {
            let mut current = None;
            for line in text.lines() {
                // What is indented belongs to the setting above it: none of those is needed here.
                let is_nested = line.starts_with([' ', '\t']);
                let line = line.trim();
                if line.is_empty() || line.starts_with(['#', ';']) || is_nested {
                    continue;
                }
                if let Some(name) = line.strip_prefix('[').and_then(|name| name.split(']').next()) {
                    let name = name.trim();
                    let own = name.strip_prefix(prefix).map(str::trim);
                    let own = own.or_else(|| (name == "default").then_some(name));
                    current = own.map(str::to_owned);
                } else if let (Some(name), Some((key, value))) = (&current, line.split_once('=')) {
                    let section = profiles.entry(name.clone()).or_default();
                    section.insert(key.trim().to_lowercase(), value.trim().to_owned());
                }
            }
        }
        Profiles(profiles)
    }

    /// Is there such a profile?
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Where a profile leads to, and the roles that are assumed from there, in order.
    pub fn follow(&self, name: &str) -> Result<(Start, Vec<Role>), String> {
        let mut roles = Vec::new();
        let mut current = name.to_owned();
        for _ in 0..LINKS_LIMIT {
            let section = self.0.get(&current);
            let section = section.ok_or_else(|| format!("there is no AWS profile {current}"))?;
            let text = |key: &str| section.get(key).map_or("", String::as_str);
            let role = Role {
                arn: text("role_arn").to_owned(),
                session: text("role_session_name").to_owned(),
                external_id: text("external_id").to_owned(),
            };
            let file = text("web_identity_token_file");
            let source = text("source_profile");
            let start = match () {
                () if !role.arn.is_empty() && !file.is_empty() => {
                    Start::WebIdentity { file: file.to_owned(), role }
                }
                () if !role.arn.is_empty() && !source.is_empty() && source != current => {
                    roles.push(role);
                    current = source.to_owned();
                    continue;
                }
                () if !role.arn.is_empty() => {
                    roles.push(role);
                    match text("credential_source") {
                        "" if source == current => beginning(&current, section)?,
                        source => named(&current, source)?,
                    }
                }
                () => beginning(&current, section)?,
            };
            roles.reverse();
            return Ok((start, roles));
        }
        Err(format!("the AWS profile {name} leads through more than {LINKS_LIMIT} others"))
    }
}

/// Where a profile without a role begins.
fn beginning(name: &str, section: &Section) -> Result<Start, String> {
    let text = |key: &str| section.get(key).filter(|text| !text.is_empty()).cloned();
    let unsupported = ["credential_process", "sso_session", "sso_start_url"];
    match (text("aws_access_key_id"), text("aws_secret_access_key")) {
        (Some(id), Some(secret)) => {
            Ok(Start::Keys { id, secret, session: text("aws_session_token") })
        }
        _ => match unsupported.into_iter().find(|key| section.contains_key(*key)) {
            Some(key) => Err(format!("the AWS profile {name} has {key}, which is not supported")),
            None => Ok(Start::Surroundings),
        },
    }
}

fn named(profile: &str, source: &str) -> Result<Start, String> {
    match source {
        "Environment" => Ok(Start::Environment),
        "EcsContainer" => Ok(Start::Container),
        "Ec2InstanceMetadata" => Ok(Start::Machine),
        other => Err(format!(
            "the AWS profile {profile} has the credential_source {other:?}: expected Environment, \
             EcsContainer or Ec2InstanceMetadata, or a source_profile"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
[default]
region = eu-west-1
[profile web]
role_arn = arn:web
web_identity_token_file = /token
role_session_name = me
[profile far]
role_arn = arn:far
external_id = x
source_profile = near
[profile near]
role_arn = arn:near
source_profile = base
[profile own]
role_arn = arn:own
source_profile = own
aws_access_key_id = OWN
aws_secret_access_key = s
[profile pod]
role_arn = arn:pod
credential_source = EcsContainer
[profile odd]
role_arn = arn:odd
credential_source = Moon
[profile process]
credential_process = /bin/x
[profile one]
role_arn = arn:one
source_profile = two
[profile two]
role_arn = arn:two
source_profile = one
s3 =
  aws_access_key_id = nested
[preview]
cloudfront = true
";

    const CREDENTIALS: &str = "
# the base
[base]
aws_access_key_id = BASE
aws_secret_access_key = s=cret
aws_session_token = t
";

    /// A profile and where it leads to.
    const ROWS: &str = "
default | Surroundings
base    | Keys BASE s=cret t
web     | WebIdentity /token arn:web me
far     | Keys BASE s=cret t > arn:near > arn:far x
own     | Keys OWN s > arn:own
pod     | Container > arn:pod
odd     | the AWS profile odd has the credential_source \"Moon\": expected Environment, EcsContainer or Ec2InstanceMetadata, or a source_profile
process | the AWS profile process has credential_process, which is not supported
one     | the AWS profile one leads through more than 8 others
nobody  | there is no AWS profile nobody
preview | there is no AWS profile preview";

    fn told(profiles: &Profiles, name: &str) -> Result<String, String> {
        let (start, roles) = profiles.follow(name)?;
        let mut text = match start {
            Start::Keys { id, secret, session } => {
                format!("Keys {id} {secret} {}", session.unwrap_or_default())
            }
            Start::WebIdentity { file, role } => {
                format!("WebIdentity {file} {} {}", role.arn, role.session)
            }
            other => format!("{other:?}"),
        };
        for Role { arn, external_id, .. } in roles {
            text = format!("{} > {arn} {external_id}", text.trim());
        }
        Ok(text.trim().to_owned())
    }

    #[test]
    fn a_profile_leads_to_keys_and_roles() {
        let profiles = Profiles::parse(CONFIG, CREDENTIALS);
        for row in ROWS.trim().lines() {
            let (name, expected) = row.split_once('|').unwrap();
            let found = told(&profiles, name.trim()).unwrap_or_else(|error| error);
            assert_eq!(found, expected.trim(), "{name}");
        }
        assert_eq!(Profiles::read(|_| None), Profiles::default());
    }
}
