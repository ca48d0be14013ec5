//! Does a server answer as a Kubernetes API server does? The same request files run against any
//! server; what a real one answered is kept beside them.
//!
//! A case is a list of requests in a namespace of its own. What two servers must have in common is
//! said in [`normal`]: HTTP status, reason, causes, and the body without what differs by nature.

mod normal;

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// How often, and how long apart, a step that waits for something asks again.
const ATTEMPTS: u32 = 400;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(150);

/// Why cases cannot be read or run.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}: {problem}")]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The server could not be asked, or never came to the state a step waits for.
    #[error("{case}: step {step}: {problem}")]
    Step {
        /// Which case.
        case: String,
        /// Which step of it, counted from 1.
        step: usize,
        /// What went wrong.
        problem: String,
    },
}

/// A server that can be asked.
pub trait Target {
    /// Sends a request and waits for the whole answer.
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<(StatusCode, Bytes), String>> + Send;
}

/// One scenario: requests that follow each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows; unique within the suite.
    pub case: String,
    /// The requests.
    pub steps: Vec<Step>,
}

/// One request, and what of its answer counts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Method and path. `{ns}` is the case's namespace; `{core}`, `{apps}`, `{own}` are the paths
    /// of namespaced resources; other names in braces were saved by an earlier step.
    pub call: String,
    /// Content type: `json` (default), `yaml`, `merge`, `json-patch`, `strategic`, or as written.
    #[serde(rename = "type", default)]
    pub content_type: Option<String>,
    /// The `Accept` header: `table`, `metadata`, `metadata-list`, `discovery`, or as written.
    #[serde(default)]
    pub accept: Option<String>,
    /// The body, sent as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// The body, sent as it is.
    #[serde(default)]
    pub text: Option<String>,
    /// JSON pointers of the fields that count; without them, whole objects of the suite's own kinds
    /// count and nothing of others. In a list, `name=pods` is the item with that name.
    #[serde(default)]
    pub compare: Option<Vec<String>>,
    /// Whether the sentence of a refusal counts.
    #[serde(default)]
    pub message: bool,
    /// Values to keep for later steps: name and JSON pointer.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// Ask again until these JSON pointers have these values (null: absent); `code` is the status.
    #[serde(default)]
    pub until: BTreeMap<String, Value>,
}

/// The cases of one file.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name without folder and ending.
    pub name: String,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// Where the suite's files are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// All cases, sorted by file.
pub fn load() -> Result<Vec<File>, ConformanceError> {
    let folder = folder().join("cases");
    let in_folder = |source| ConformanceError::File { path: folder.clone(), source };
    let mut paths = fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .map_err(in_folder)?;
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok(File { name, cases: read_yaml(&path)? })
        })
        .collect()
}

/// What a real server answered to the cases of a file: case, answers.
pub fn expected(file: &str) -> Result<BTreeMap<String, Vec<Value>>, ConformanceError> {
    read_yaml(&expected_path(file))
}

/// Keeps what a real server answered to the cases of a file.
pub fn record(file: &str, answers: &BTreeMap<String, Vec<Value>>) -> Result<(), ConformanceError> {
    let path = expected_path(file);
    let cases = answers.iter().map(|(case, answers)| {
        let answers = answers.iter().map(|answer| format!("    {answer}"));
        format!("  {}: [\n{}\n  ]", json!(case), answers.collect::<Vec<_>>().join(",\n"))
    });
    let text = format!("{{\n{}\n}}\n", cases.collect::<Vec<_>>().join(",\n"));
    fs::write(&path, text).map_err(|source| ConformanceError::File { path, source })
}

/// Installs the suite's own kinds and waits until they are served.
pub async fn prepare(target: &impl Target) -> Result<(), ConformanceError> {
    let definitions: Vec<Value> = read_yaml(&folder().join("kinds.yaml"))?;
    for definition in definitions {
        let (group, names) = (&definition["spec"]["group"], &definition["spec"]["names"]);
        let path = format!("/apis/{}/v1/{}", text(group), text(&names["plural"]));
        let install = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let steps = json!([
            {"call": install, "body": definition},
            {"call": format!("GET {path}"), "until": {"code": 200}},
        ]);
        let steps: Vec<Step> = serde_json::from_value(steps).map_err(|error| {
            ConformanceError::Format { path: folder(), problem: error.to_string() }
        })?;
        let case = Case { case: format!("install {}", text(&names["kind"])), steps };
        play(target, &case, "default").await?;
    }
    Ok(())
}

/// Runs a case in a namespace of its own and returns the normal form of each answer.
/// `salt` keeps runs apart that share a server.
pub async fn run(
    target: &impl Target,
    case: &Case,
    salt: &str,
) -> Result<Vec<Value>, ConformanceError> {
    let namespace = format!("{}-{salt}", slug(&case.case));
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let around = |call: String, body: Option<Value>| Case {
        case: case.case.clone(),
        steps: vec![Step { body, ..Step::new(call) }],
    };
    play(target, &around("POST /api/v1/namespaces".into(), Some(body)), &namespace).await?;
    let answers = play(target, case, &namespace).await;
    let end = around(format!("DELETE /api/v1/namespaces/{namespace}"), None);
    play(target, &end, &namespace).await?;
    answers
}

/// Where two servers differ, one line per step; empty if they agree.
pub fn differences(case: &Case, expected: &[Value], found: &[Value]) -> Vec<String> {
    if expected.len() != found.len() {
        return vec![format!(
            "{}: {} answers, expected {}",
            case.case,
            found.len(),
            expected.len()
        )];
    }
    let pairs = expected.iter().zip(found).zip(&case.steps).enumerate();
    pairs
        .filter(|(_, ((expected, found), _))| expected != found)
        .map(|(at, ((expected, found), step))| {
            format!(
                "{}: step {} ({})\n  expected {expected}\n  found    {found}",
                case.case,
                at + 1,
                step.call
            )
        })
        .collect()
}

impl Step {
    fn new(call: String) -> Self {
        Self {
            call,
            content_type: None,
            accept: None,
            body: None,
            text: None,
            compare: None,
            message: false,
            save: BTreeMap::new(),
            until: BTreeMap::new(),
        }
    }

    fn request(&self, names: &BTreeMap<String, String>) -> Result<Request<Bytes>, String> {
        let call = fill(&self.call, names);
        let (method, path) = call.split_once(' ').ok_or("a call is a method and a path")?;
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("accept", self.accept_header());
        let body = match (&self.body, &self.text) {
            (Some(body), _) => fill(&body.to_string(), names),
            (None, Some(text)) => fill(text, names),
            (None, None) => String::new(),
        };
        if !body.is_empty() || self.text.is_some() {
            request = request.header("content-type", self.content_type_header());
        }
        request.body(Bytes::from(body)).map_err(|error| error.to_string())
    }

    fn content_type_header(&self) -> &str {
        match self.content_type.as_deref() {
            None | Some("json") => "application/json",
            Some("yaml") => "application/yaml",
            Some("merge") => "application/merge-patch+json",
            Some("json-patch") => "application/json-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some(other) => other,
        }
    }

    fn accept_header(&self) -> &str {
        match self.accept.as_deref() {
            None => "application/json",
            Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Some("metadata") => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            Some("metadata-list") => {
                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
            }
            Some("discovery") => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            Some(other) => other,
        }
    }

    fn is_reached(&self, status: StatusCode, body: &Value) -> bool {
        self.until.iter().all(|(pointer, wanted)| match pointer.as_str() {
            "code" => *wanted == status.as_u16(),
            pointer => normal::at(body, pointer).unwrap_or(&Value::Null) == wanted,
        })
    }
}

async fn play(
    target: &impl Target,
    case: &Case,
    namespace: &str,
) -> Result<Vec<Value>, ConformanceError> {
    let mut names = BTreeMap::from([
        ("ns".to_owned(), namespace.to_owned()),
        ("core".to_owned(), format!("/api/v1/namespaces/{namespace}")),
        ("apps".to_owned(), format!("/apis/apps/v1/namespaces/{namespace}")),
        ("own".to_owned(), format!("/apis/{}/v1/namespaces/{namespace}", normal::GROUP)),
    ]);
    let mut answers = Vec::new();
    for (at, step) in case.steps.iter().enumerate() {
        let failed =
            |problem| ConformanceError::Step { case: case.case.clone(), step: at + 1, problem };
        let (status, body) = ask(target, step, &names).await.map_err(failed)?;
        for (name, pointer) in &step.save {
            let value = normal::at(&body, pointer).unwrap_or(&Value::Null);
            names.insert(name.clone(), text(value));
        }
        answers.push(normal::answer(step, status.as_u16(), body, namespace));
    }
    Ok(answers)
}

async fn ask(
    target: &impl Target,
    step: &Step,
    names: &BTreeMap<String, String>,
) -> Result<(StatusCode, Value), String> {
    for _ in 0..ATTEMPTS {
        let (status, bytes) = target.send(step.request(names)?).await?;
        let body = normal::read(&bytes);
        if step.is_reached(status, &body) {
            return Ok((status, body));
        }
        tokio::time::sleep(BETWEEN_ATTEMPTS).await;
    }
    Err(format!("{} never came to {:?}", fill(&step.call, names), step.until))
}

fn fill(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut filled = text.to_owned();
    for (name, value) in names {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    filled
}

/// A case's name as a namespace's: letters, digits and dashes, not too long.
fn slug(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let slug: String = letters.take(40).collect::<String>().to_lowercase();
    slug.trim_matches('-').to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn expected_path(file: &str) -> PathBuf {
    folder().join("expected").join(format!("{file}.json"))
}

fn read_yaml<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ConformanceError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ConformanceError::File { path: path.to_owned(), source })?;
    serde_saphyr::from_str(&text).map_err(|error| ConformanceError::Format {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}
