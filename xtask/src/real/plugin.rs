//! Do the commands of the kubectl plugin have their effects on a real API server?

use std::path::PathBuf;

use gradus_api::names::{API_VERSION, kind};
use gradus_simkube::behave::Behaviours;
use kube::{Api, Client, api::DynamicObject};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::process::Command;

use super::deeds;
use crate::{Failure, plane::User, stage::Stage};

const NAMESPACE: &str = "plugin";

const DEPLOYMENT: &str = "Deployment";

/// Words, what they say first, and the field that they leave behind: kind, name, JSON pointer,
/// value. `FOLDER` is replaced.
const SCENARIO: &str = r#"
create -f FOLDER/rollout.json            | rollout. |
status web -t 120s                       | | Rollout web /status/phase "Healthy"
set image web web=web:2                  | rollout "web" image updated | Rollout web /spec/template/spec/containers/0/image "web:2"
wait web --for=paused -t 120s            | rollout 'web' paused | Rollout web /status/currentStepIndex 1
promote web                              | rollout 'web' promoted |
wait web --for=healthy -t 120s           | rollout 'web' healthy |
undo web                                 | rollout 'web' undo | Rollout web /spec/template/spec/containers/0/image "web:1"
wait web --for=paused -t 120s            | rollout 'web' paused |
abort web                                | rollout 'web' aborted | Rollout web /status/abort true
wait web --for=aborted -t 120s           | rollout 'web' aborted |
retry rollout web                        | rollout 'web' retried |
wait web --for=paused -t 120s            | rollout 'web' paused |
pause web                                | rollout 'web' paused | Rollout web /spec/paused true
promote web --full                       | rollout 'web' fully promoted | Rollout web /spec/paused false
wait web --for=promoted -t 120s          | rollout 'web' promoted |
create -f FOLDER/template.json           | analysistemplate. |
create analysisrun --from smoke --name s | analysisrun. | AnalysisRun s /spec/metrics/0/name "m"
create analysisrun --from-file FOLDER/template.json --name f -a a=b | analysisrun. | AnalysisRun f /spec/args/0/value "b"
create -f FOLDER/global.json             | clusteranalysistemplate. |
create ar --global --from smoke --name g | analysisrun. | AnalysisRun g /spec/metrics/0/name "m"
terminate analysisrun s f                | analysisRun 's' terminated | AnalysisRun f /spec/terminate true
create -f FOLDER/experiment.json         | experiment. |
get experiment study --no-color          | Name:            study |
list experiments                         | NAME |
retry experiment study                   | experiment 'study' retried |
terminate experiment study               | experiment 'study' terminated | Experiment study /spec/terminate true
restart web                              | rollout 'web' restarts in 0s |
wait web --for=healthy -t 120s           | rollout 'web' healthy |
set image web *=web:3                    | rollout "web" image updated |
wait web --for=paused -t 120s            | rollout 'web' paused |
promote web --skip-current-step          | rollout 'web' promoted |
wait web --for=healthy -t 120s           | rollout 'web' healthy | Rollout web /status/currentStepIndex 2
set image web web=web:4                  | rollout "web" image updated |
wait web --for=paused -t 120s            | rollout 'web' paused |
promote web --skip-all-steps             | rollout 'web' promoted |
wait web --for=healthy -t 120s           | rollout 'web' healthy |
create -f FOLDER/refers.json             | rollout. |
wait refers --for=healthy -t 120s        | rollout 'refers' healthy |
set image refers *=web:2                 | deployment "base" image updated | Deployment base /spec/template/spec/containers/0/image "web:2"
wait refers --for=promoted -t 120s       | rollout 'refers' promoted |
undo refers --to-revision 1              | rollout 'refers' undo | Deployment base /spec/template/spec/containers/0/image "web:1"
get rollout web --no-color               | Name:            web |
list rollouts                            | NAME |
explain rollout web                      | Rollout plugin/web at |
restart web --in 1h                      | rollout 'web' restarts in 1h |
"#;

#[derive(Debug, Error)]
enum PluginError {
    #[error("{words}: exit code {code:?}: {said}")]
    Failed { words: String, code: Option<i32>, said: String },
    #[error("{words}: expected it to say {expected:?}, but it said {said:?}")]
    Said { words: String, expected: String, said: String },
    #[error("{words}: expected {effect}, found {found}")]
    Effect { words: String, effect: String, found: Value },
}

/// Tells the scenario in a namespace of its own.
pub async fn commands_have_their_effects(stage: &Stage) -> Result<(), Failure> {
    let client = stage.plane.client(User::Person).await?;
    deeds::create_namespace(&client, NAMESPACE).await?;
    stage.kubelet.behave(NAMESPACE, Behaviours::default());
    let plugin = stage.plugin()?;
    let folder = write_manifests(stage)?;
    let deployment = json!({ "apiVersion": "apps/v1", "kind": DEPLOYMENT,
        "metadata": { "name": "base" }, "spec": pods("base", 0) });
    deeds::apply(&client, NAMESPACE, &deployment).await?;
    for row in SCENARIO.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [words, said, effect] = cells[..] else { unreachable!("three cells: {row}") };
        let words = words.replace("FOLDER", &folder.display().to_string());
        let mut command = Command::new(&plugin);
        command.args(words.split_whitespace()).args(["-n", NAMESPACE]);
        command.env("KUBECONFIG", stage.plane.kubeconfig(User::Person));
        let output = command.output().await?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(PluginError::Failed { words, code: output.status.code(), said }.into());
        }
        if !answer.starts_with(said) {
            return Err(PluginError::Said { words, expected: said.into(), said: answer }.into());
        }
        check(&client, &words, effect).await?;
    }
    Ok(())
}

async fn check(client: &Client, words: &str, effect: &str) -> Result<(), Failure> {
    let parts: Vec<&str> = effect.split_whitespace().collect();
    let [kind, name, pointer, expected] = parts[..] else { return Ok(()) };
    let version = if kind == DEPLOYMENT { "apps/v1" } else { API_VERSION };
    let resource = deeds::resource(version, kind);
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    let object = serde_json::to_value(api.get(name).await?)?;
    let found = object.pointer(pointer).cloned().unwrap_or_default();
    if found == serde_json::from_str::<Value>(expected)? {
        return Ok(());
    }
    Err(PluginError::Effect { words: words.into(), effect: effect.into(), found }.into())
}

/// So many pods of the image `web:1`, with labels of their own.
fn pods(app: &str, replicas: i32) -> Value {
    let labels = json!({ "app": app });
    json!({
        "replicas": replicas,
        "selector": { "matchLabels": labels },
        "template": {
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
        },
    })
}

/// The objects that the scenario creates.
fn write_manifests(stage: &Stage) -> Result<PathBuf, Failure> {
    let mut rollout = pods("web", 2);
    rollout["strategy"] = json!({ "canary": { "steps": [{ "setWeight": 50 }, { "pause": {} }] } });
    let workload = json!({ "apiVersion": "apps/v1", "kind": DEPLOYMENT, "name": "base" });
    let refers = json!({ "replicas": 1, "workloadRef": workload, "strategy": { "canary": {} } });
    // It is not measured while the test runs: what is at rest makes no request.
    let metric = json!({ "name": "m", "initialDelay": "24h",
        "provider": { "web": { "url": "http://localhost" } } });
    let object = |kind: &str, name: &str, spec: Value| {
        json!({ "apiVersion": API_VERSION, "kind": kind, "metadata": { "name": name },
            "spec": spec })
    };
    let template = json!({ "metrics": [metric] });
    let folder = stage.plane.folder().to_owned();
    let manifests = [
        ("rollout.json", object(kind::ROLLOUT, "web", rollout)),
        ("refers.json", object(kind::ROLLOUT, "refers", refers)),
        ("template.json", object(kind::ANALYSIS_TEMPLATE, "smoke", template.clone())),
        ("global.json", object(kind::CLUSTER_ANALYSIS_TEMPLATE, "smoke", template)),
        ("experiment.json", object(kind::EXPERIMENT, "study", json!({ "templates": [] }))),
    ];
    for (name, manifest) in manifests {
        std::fs::write(folder.join(name), manifest.to_string())?;
    }
    Ok(folder)
}
