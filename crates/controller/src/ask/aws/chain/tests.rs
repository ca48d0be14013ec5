//! Every place that credentials come from, played by a server on loopback.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const JSON: &str = r#"{"AccessKeyId":"NEAR","SecretAccessKey":"near-secret","Token":"near-token",
    "Expiration":"2999-01-01T00:00:00Z"}"#;

/// What STS answers, with the key that it gives.
fn xml(action: &str, id: &str) -> String {
    format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result>\
         <Credentials><AccessKeyId>{id}</AccessKeyId><SecretAccessKey>{id}-secret\
         </SecretAccessKey><SessionToken>{id}-token</SessionToken><Expiration>2999-01-01T00:00:00Z\
         </Expiration></Credentials></{action}Result></{action}Response>"
    )
}

/// A server that answers by the first line, and what it was sent.
async fn server(answers: Vec<(&'static str, String)>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 8192];
            let mut text = String::new();
            // Head and body may come apart.
            while !is_whole(&text) {
                let count = stream.read(&mut bytes).await.unwrap();
                text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            let found = answers.iter().find(|(part, _)| text.contains(part));
            let (status, body) = found.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", body));
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            kept.lock().unwrap().push(text);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, seen)
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.to_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length: ").and_then(|length| length.parse::<usize>().ok())
    });
    length.is_none_or(|length| length <= body.len())
}

fn client(variables: &[(&str, &str)]) -> HttpClient {
    let known: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let policy = AddressPolicy { allow: vec!["127.0.0.1".parse().unwrap()], ..Default::default() };
    HttpClient::new(policy).unwrap().in_environment(move |name| known.get(name).cloned())
}

async fn found(client: &HttpClient, profile: &str, role: &str) -> Result<String, String> {
    let mut hidden = Hidden::default();
    let wanted = WantedCredentials { profile, role, region: "eu-west-1" };
    let found = client.credentials(&wanted, &mut hidden).await;
    let found = found.map_err(|error| error.to_string())?;
    assert_eq!(hidden.clean(&found.secret), "*****", "nobody may see it");
    Ok(found.key_id)
}

/// A file that goes with the test.
struct File(String);

impl File {
    fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gradus-aws-{}-{name}", std::process::id()));
        fs::write(&path, content).unwrap();
        File(path.to_str().unwrap().to_owned())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn the_environment_goes_first_and_a_role_is_assumed_from_it() {
    let answers = vec![("Action=AssumeRole&", xml("AssumeRole", "ROLE"))];
    let (sts, seen) = server(answers).await;
    let keys = [
        ("AWS_ACCESS_KEY_ID", "ENV"),
        ("AWS_SECRET_ACCESS_KEY", "env-secret"),
        ("AWS_ENDPOINT_URL_STS", &*sts),
    ];
    let client = client(&keys);
    assert_eq!(found(&client, "", "").await, Ok("ENV".to_owned()));
    for _ in 0..3 {
        assert_eq!(found(&client, "", "arn:aws:iam::1:role/r").await, Ok("ROLE".to_owned()));
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1, "what has an end is kept until then");
    let expected = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr\
                    &RoleSessionName=gradus";
    assert!(seen[0].ends_with(expected), "{}", seen[0]);
    assert!(seen[0].contains("Credential=ENV/"), "{}", seen[0]);
    assert!(seen[0].contains("/eu-west-1/sts/aws4_request"), "{}", seen[0]);
}

#[tokio::test]
async fn a_service_account_with_a_role_needs_no_key() {
    let token = File::new("web-token", "jwt.of.the.account\n");
    let (sts, seen) =
        server(vec![("AssumeRoleWithWebIdentity", xml("AssumeRoleWithWebIdentity", "WEB"))]).await;
    let client = client(&[
        ("AWS_WEB_IDENTITY_TOKEN_FILE", &*token.0),
        ("AWS_ROLE_ARN", "arn:web"),
        ("AWS_ROLE_SESSION_NAME", "pod"),
        ("AWS_ENDPOINT_URL", &sts),
    ]);
    assert_eq!(found(&client, "", "").await, Ok("WEB".to_owned()));
    let seen = seen.lock().unwrap();
    let expected = "&RoleArn=arn%3Aweb&RoleSessionName=pod&WebIdentityToken=jwt.of.the.account";
    assert!(seen[0].ends_with(expected), "{}", seen[0]);
    assert!(!seen[0].to_lowercase().contains("authorization"), "{}", seen[0]);
}

#[tokio::test]
async fn a_profile_may_begin_with_another_one() {
    let config = File::new(
        "config",
        "[profile far]\nrole_arn = arn:far\nexternal_id = x\nsource_profile = base\n",
    );
    let keys = "[base]\naws_access_key_id = BASE\naws_secret_access_key = base-secret\n";
    let keys = File::new("credentials", keys);
    let (sts, seen) = server(vec![("AssumeRole", xml("AssumeRole", "FAR"))]).await;
    let files = [
        ("AWS_CONFIG_FILE", &*config.0),
        ("AWS_SHARED_CREDENTIALS_FILE", &*keys.0),
        ("AWS_ENDPOINT_URL", &sts),
    ];
    let known = client(&files);
    assert_eq!(found(&known, "far", "").await, Ok("FAR".to_owned()));
    assert!(seen.lock().unwrap()[0].ends_with("RoleSessionName=gradus&ExternalId=x"));
    let named: Vec<_> = files.into_iter().chain([("AWS_PROFILE", "base")]).collect();
    assert_eq!(found(&client(&named), "", "").await, Ok("BASE".to_owned()));
    let error = found(&known, "nobody", "").await.unwrap_err();
    assert_eq!(error, "authentication failed: there is no AWS profile nobody");
}

#[tokio::test]
async fn the_container_and_the_machine_give_credentials() {
    let token = File::new("pod-token", "pod-identity");
    let roles = "GET /latest/meta-data/iam/security-credentials/ ";
    let (near, seen) = server(vec![
        ("GET /v1/credentials", JSON.to_owned()),
        ("PUT /latest/api/token", "session".to_owned()),
        (roles, "node".to_owned()),
        ("GET /latest/meta-data/iam/security-credentials/node", JSON.replace("NEAR", "NODE")),
    ])
    .await;
    let url = format!("{near}/v1/credentials");
    let pod = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*url),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &*token.0),
    ];
    assert_eq!(found(&client(&pod), "", "").await, Ok("NEAR".to_owned()));
    assert!(seen.lock().unwrap()[0].contains("authorization: pod-identity"));
    let node = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*near)];
    assert_eq!(found(&client(&node), "", "").await, Ok("NODE".to_owned()));
    let seen = seen.lock().unwrap();
    assert!(seen.last().unwrap().contains("x-aws-ec2-metadata-token: session"));
}

#[tokio::test]
async fn what_gives_no_credentials_is_named() {
    let (sts, _) = server(Vec::new()).await;
    let keys =
        [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_ENDPOINT_URL", &*sts)];
    let error = found(&client(&keys), "", "arn:x").await.unwrap_err();
    assert_eq!(error, "authentication failed: AssumeRole of arn:x failed with status 404: ");
    let none = found(&client(&[("AWS_EC2_METADATA_DISABLED", "true")]), "", "").await.unwrap_err();
    assert!(none.contains("set AWS_ACCESS_KEY_ID"), "{none}");
    let far = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/")];
    let error = found(&client(&far), "", "").await.unwrap_err();
    assert!(error.ends_with("leads to example.com without TLS"), "{error}");
    let lost = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere"), ("AWS_ROLE_ARN", "arn:x")];
    let error = found(&client(&lost), "", "").await.unwrap_err();
    assert!(error.contains("the web identity token /nowhere"), "{error}");
}
