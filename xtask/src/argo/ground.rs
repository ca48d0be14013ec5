//! What must the cluster hold before the first test of the suite?

use std::fs;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use gradus_simkube::behave::{Behaviour, Behaviours, Crash};

use super::{INSTANCE, catalogue::Case, suite::Suite};
use crate::{plane::PlaneError, stage::Stage};

/// Where the controller's configuration lies; our own manifests create it.
pub const CONTROLLER_NAMESPACE: &str = "argo-rollouts";

/// A controller with an instance id leads by a Lease of its own, to which the manifests give no right.
const LEASE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: gradus-instance, namespace: argo-rollouts}
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [argo-rollouts-controller-lock-INSTANCE]
    verbs: [get, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gradus-instance, namespace: argo-rollouts}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gradus-instance}
subjects: [{kind: ServiceAccount, name: gradus, namespace: argo-rollouts}]
";

/// The kinds of traffic routers, read from the suite itself, its plugin's configuration, and the right
/// to the Lease.
pub fn prepare(stage: &Stage, suite: &Suite) -> Result<(), PlaneError> {
    let (crds, none) = (suite.folder().join("crds"), "--ignore-not-found");
    // Those of our scenarios have other versions, and a version that was stored cannot be left out.
    stage.plane.kubectl_does(&["delete", none, "-f"], &crds)?;
    let server_side: &[&str] = &["apply", "--server-side", "--force-conflicts", "-f"];
    stage.plane.kubectl_does(server_side, &crds)?;
    let settings = suite.folder().join("step-plugin/argo-rollouts-config.yaml");
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| PlaneError::File { path, source }
    };
    let text = fs::read_to_string(&settings).map_err(failed(&settings))?;
    let program = suite.plugin();
    let program = fs::read(&program).map_err(failed(&program))?;
    let sha256 = digest(&SHA256, &program);
    let sha256: String = sha256.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let path = stage.plane.folder().join("argo-rollouts-config.yaml");
    fs::write(&path, with_digests(&text, &sha256)).map_err(failed(&path))?;
    stage.plane.kubectl_does(&["apply", "-f"], &path)?;
    let path = stage.plane.folder().join("instance-lease.yaml");
    fs::write(&path, LEASE.replace("INSTANCE", INSTANCE)).map_err(failed(&path))?;
    stage.plane.kubectl_does(&["apply", "-f"], &path)
}

/// Every plugin with the digest of its program, without which none is started.
fn with_digests(settings: &str, sha256: &str) -> String {
    let line = |line: &str| match line.trim_start().starts_with("location:") {
        true => {
            let indent = line.len() - line.trim_start().len();
            format!("{line}\n{}sha256: \"{sha256}\"\n", " ".repeat(indent))
        }
        false => format!("{line}\n"),
    };
    settings.lines().map(line).collect()
}

/// Pods of this test must still be starting while it changes the number of replicas three times.
const SLOW: &str = "CanarySuite/TestRolloutWithMaxSurgeScalingDuringUpdate";
const SLOW_SECONDS: f64 = 8.0;

/// How the suite's containers behave: a program that is not there ends at once, and so many names
/// are of images that nobody has.
pub fn behaviours(case: &Case) -> Behaviours {
    let usual = Behaviour::default().start_up_seconds;
    let start_up_seconds = if case.to_string() == SLOW { SLOW_SECONDS } else { usual };
    let cannot_be_had = |image: &str| Behaviour {
        image: image.to_owned(),
        pull_error: true,
        ..Behaviour::default()
    };
    Behaviours::new(vec![
        Behaviour {
            command: "/bad-command*".to_owned(),
            crash: Some(Crash::default()),
            ..Behaviour::default()
        },
        cannot_be_had("*does-not-exist*"),
        cannot_be_had("*nonexistent*"),
        cannot_be_had("*argo-error*"),
        cannot_be_had("*rollouts-demo:error"),
        Behaviour { start_up_seconds, ..Behaviour::default() },
    ])
}
