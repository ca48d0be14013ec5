//! One case of a differential run: the objects it starts from and what people do to them, and the
//! file it is kept in.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use gradus_lab::person::Action;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// The kind whose behaviour is compared.
const ROLLOUT: &str = "Rollout";

/// Longer than any pause and delay of a case that is meant to end.
const QUIET: Duration = Duration::from_secs(3);

/// Why a file is no case.
#[derive(Debug, Error)]
pub enum CaseError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{path}: expected exactly one Rollout among its objects")]
    NoRollout { path: PathBuf },
    #[error("{path}: action {number}: {source}")]
    Action { path: PathBuf, number: usize, source: serde_json::Error },
}

/// Objects, and what people do to them in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Where it came from.
    pub seed: u64,
    /// In the order in which they are created; one of them is a Rollout.
    pub objects: Vec<Value>,
    pub steps: Vec<Step>,
}

/// Something a person does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub after: After,
    /// As scenarios write it.
    pub r#do: Value,
}

/// When somebody acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum After {
    /// When both sides are settled; they are compared before.
    Settled,
    /// So long after the action before, whatever is going on.
    Milliseconds(u64),
}

impl Case {
    /// The case of a file that an earlier run has written.
    pub fn read(path: &Path) -> Result<Self, CaseError> {
        let failed = |source| CaseError::File { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(failed)?;
        let case: Self = serde_json::from_str(&text)
            .map_err(|source| CaseError::Json { path: path.to_owned(), source })?;
        let rollouts = case.objects.iter().filter(|object| object["kind"] == ROLLOUT).count();
        if rollouts != 1 {
            return Err(CaseError::NoRollout { path: path.to_owned() });
        }
        for (at, step) in case.steps.iter().enumerate() {
            step.action().map_err(|source| CaseError::Action {
                path: path.to_owned(),
                number: at + 1,
                source,
            })?;
        }
        Ok(case)
    }

    pub fn write(&self, path: &Path) -> Result<(), CaseError> {
        let text = format!("{:#}\n", serde_json::json!(self));
        fs::write(path, text).map_err(|source| CaseError::File { path: path.to_owned(), source })
    }

    /// The Rollout among its objects.
    pub fn rollout(&self) -> &Value {
        let found = self.objects.iter().find(|object| object["kind"] == ROLLOUT);
        found.expect("a case has a Rollout")
    }

    /// For how long nothing changes on a side that is settled: longer than any pause and delay of a case
    /// that is meant to end, and than a progress deadline that may pass.
    pub fn quiet(&self) -> Duration {
        let deadline = self.rollout()["spec"]["progressDeadlineSeconds"].as_u64().unwrap_or(0);
        QUIET + Duration::from_secs(deadline)
    }

    pub fn name(&self) -> &str {
        self.rollout()["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Does anybody act before both sides are settled?
    pub fn is_racing(&self) -> bool {
        self.steps.iter().any(|step| step.after != After::Settled)
    }

    /// The same case under another name, in every object and in every reference.
    pub fn renamed(&self, name: &str) -> Self {
        let text = serde_json::json!(self).to_string();
        let text = text.replace(self.name(), name);
        serde_json::from_str(&text).expect("a name in place of a name leaves a case a case")
    }
}

impl Step {
    pub fn settled(action: Value) -> Self {
        Self { after: After::Settled, r#do: action }
    }

    pub fn action(&self) -> Result<Action, serde_json::Error> {
        serde_json::from_value(self.r#do.clone())
    }

    /// What is waited before it, where both sides need not be settled.
    pub fn delay(&self) -> Option<Duration> {
        match self.after {
            After::Settled => None,
            After::Milliseconds(milliseconds) => Some(Duration::from_millis(milliseconds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::folder::Folder;

    fn case() -> Case {
        Case {
            seed: 7,
            objects: vec![
                json!({ "kind": "Service", "metadata": { "name": "x7-stable" } }),
                json!({ "kind": "Rollout", "metadata": { "name": "x7" } }),
            ],
            steps: vec![
                Step::settled(json!("promote")),
                Step { after: After::Milliseconds(300), r#do: json!({ "scale": 3 }) },
            ],
        }
    }

    #[test]
    fn a_file_holds_all_of_a_case() {
        let folder = Folder::create("case-test").unwrap();
        let path = folder.path().join("case.json");
        case().write(&path).unwrap();
        assert_eq!(Case::read(&path).unwrap(), case());
        assert!(case().is_racing());
    }

    #[test]
    fn a_file_without_a_rollout_or_with_a_wrong_action_is_refused() {
        let folder = Folder::create("case-test").unwrap();
        let path = folder.path().join("case.json");
        let mut none = case();
        none.objects.pop();
        let mut wrong = case();
        wrong.steps[0].r#do = json!("promotte");
        for (what, bad) in [("no Rollout", none), ("an unknown action", wrong)] {
            bad.write(&path).unwrap();
            assert!(Case::read(&path).is_err(), "{what}");
        }
    }

    #[test]
    fn a_new_name_reaches_every_reference() {
        let renamed = case().renamed("y1");
        assert_eq!(renamed.name(), "y1");
        assert_eq!(renamed.objects[0]["metadata"]["name"], "y1-stable");
    }
}
