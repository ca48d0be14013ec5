//! How does a workload get another image?

use serde_json::Value;
use thiserror::Error;

/// Every list of a pod that holds containers.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Every container.
const ALL: &str = "*";

/// No container has the name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unable to find container named \"{wanted}\"")]
pub struct NoSuchContainer {
    /// The name that was asked for.
    pub wanted: String,
    /// The names that are there.
    pub there: Vec<String>,
}

/// The workload with this image in the containers of this name, `*` for all.
pub fn set_image(workload: &Value, container: &str, image: &str) -> Result<Value, NoSuchContainer> {
    let mut changed = workload.clone();
    let (mut is_found, mut there) = (false, Vec::new());
    for list in LISTS {
        let pointer = format!("/spec/template/spec/{list}");
        let Some(Value::Array(containers)) = changed.pointer_mut(&pointer) else { continue };
        for known in containers {
            if container == ALL || known["name"] == container {
                known["image"] = image.into();
                is_found = true;
            }
            there.extend(known["name"].as_str().map(str::to_owned));
        }
    }
    if is_found {
        Ok(changed)
    } else {
        Err(NoSuchContainer { wanted: container.to_owned(), there })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workload(first: &str, second: &str, init: &str) -> Value {
        json!({ "spec": { "replicas": 2, "template": { "spec": {
            "containers": [{ "name": "web", "image": first }, { "name": "log", "image": second }],
            "initContainers": [{ "name": "init", "image": init }],
        } } } })
    }

    #[test]
    fn only_the_named_containers_change() {
        let cases = [
            ("one", "web", workload("new", "b", "c")),
            ("an init container", "init", workload("a", "b", "new")),
            ("all", "*", workload("new", "new", "new")),
        ];
        for (what, container, expected) in cases {
            let changed = set_image(&workload("a", "b", "c"), container, "new");
            assert_eq!(changed.unwrap(), expected, "{what}");
        }
    }

    #[test]
    fn a_name_that_no_container_has_is_refused() {
        let refused = set_image(&workload("a", "b", "c"), "db", "new").unwrap_err();
        assert_eq!(refused.to_string(), "unable to find container named \"db\"");
    }
}
