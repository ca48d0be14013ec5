//! Which AnalysisRun does a person start from a template?

use gradus_api::names::{API_VERSION, kind, label};
use serde_json::{Map, Value, json};
use thiserror::Error;

/// What a person says about the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Its name; wins over the prefix.
    pub name: Option<String>,
    /// A prefix to which the server adds letters; missing means the template's name and a dash.
    pub generate_name: Option<String>,
    /// Where it runs.
    pub namespace: String,
    /// Which controller instance serves it.
    pub instance_id: Option<String>,
    /// Values of arguments.
    pub arguments: Vec<(String, String)>,
}

/// Why no run can be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// Neither the person nor the template gives it a name.
    #[error("name is invalid")]
    NoName,
    /// An argument has no value.
    #[error("args.{0} was not resolved")]
    NotResolved(String),
}

/// The run, ready to be created, from an AnalysisTemplate or ClusterAnalysisTemplate.
pub fn analysis_run(template: &Value, wish: &Wish) -> Result<Value, RunError> {
    let mut run = template.clone();
    run["apiVersion"] = API_VERSION.into();
    run["kind"] = kind::ANALYSIS_RUN.into();
    let name = template["metadata"]["name"].as_str().filter(|name| !name.is_empty());
    let mut metadata = run["metadata"].as_object().cloned().unwrap_or_default();
    for of_the_template in [
        "name",
        "generateName",
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "generation",
        "managedFields",
    ] {
        metadata.remove(of_the_template);
    }
    match (&wish.name, &wish.generate_name, name) {
        (Some(name), _, _) => metadata.insert("name".into(), json!(name)),
        (None, Some(prefix), _) => metadata.insert("generateName".into(), json!(prefix)),
        (None, None, Some(name)) => {
            metadata.insert("generateName".into(), json!(format!("{name}-")))
        }
        (None, None, None) => return Err(RunError::NoName),
    };
    metadata.insert("namespace".into(), json!(wish.namespace));
    if let Some(id) = &wish.instance_id {
        metadata.insert("labels".into(), json!({ (label::INSTANCE_ID): id }));
    }
    run["metadata"] = Value::Object(metadata);
    let arguments = arguments(&template["spec"]["args"], &wish.arguments)?;
    if !arguments.is_empty() {
        run["spec"]["args"] = json!(arguments);
    }
    if let Some(parts) = run.as_object_mut() {
        parts.remove("status");
    }
    Ok(run)
}

/// The template's arguments with the values given for them. A template that declares none takes
/// all; one that declares some ignores others.
fn arguments(declared: &Value, given: &[(String, String)]) -> Result<Vec<Value>, RunError> {
    let declared = declared.as_array().filter(|declared| !declared.is_empty());
    let Some(declared) = declared else {
        let all = given.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        return Ok(all.collect());
    };
    declared.iter().map(|argument| resolved(argument, given)).collect()
}

fn resolved(argument: &Value, given: &[(String, String)]) -> Result<Value, RunError> {
    let name = argument["name"].as_str().unwrap_or_default();
    let mut argument: Map<String, Value> = argument.as_object().cloned().unwrap_or_default();
    if let Some((_, value)) = given.iter().rev().find(|(given, _)| given == name) {
        argument.insert("value".into(), json!(value));
    }
    if argument.contains_key("value") || argument.contains_key("valueFrom") {
        Ok(Value::Object(argument))
    } else {
        Err(RunError::NotResolved(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(args: Value) -> Value {
        json!({ "kind": "AnalysisTemplate",
            "metadata": { "name": "smoke", "uid": "u", "resourceVersion": "7",
                "labels": { "team": "a" } },
            "spec": { "metrics": [{ "name": "m" }], "args": args } })
    }

    fn wish(arguments: &[(&str, &str)]) -> Wish {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let arguments = arguments.iter().map(pair).collect();
        Wish { namespace: "shop".into(), arguments, ..Wish::default() }
    }

    #[test]
    fn a_run_is_its_template_under_a_new_name() {
        let run = analysis_run(&template(json!([])), &wish(&[])).unwrap();
        assert_eq!(run["kind"], "AnalysisRun");
        assert_eq!(
            run["metadata"],
            json!({ "generateName": "smoke-", "namespace": "shop", "labels": { "team": "a" } })
        );
        let named = Wish { name: Some("mine".into()), instance_id: Some("x".into()), ..wish(&[]) };
        let run = analysis_run(&template(json!([])), &named).unwrap();
        assert_eq!(run["metadata"]["name"], "mine");
        assert_eq!(run["metadata"]["labels"], json!({ (label::INSTANCE_ID): "x" }));
        let unnamed = json!({ "spec": {} });
        assert_eq!(analysis_run(&unnamed, &wish(&[])), Err(RunError::NoName));
    }

    #[test]
    fn arguments_are_those_the_template_declares() {
        let declared = json!([{ "name": "service" }, { "name": "port", "value": "80" }]);
        let given = [("service", "cart"), ("colour", "red")];
        let run = analysis_run(&template(declared.clone()), &wish(&given)).unwrap();
        let expected =
            json!([{ "name": "service", "value": "cart" }, { "name": "port", "value": "80" }]);
        assert_eq!(run["spec"]["args"], expected, "others are ignored");
        let refused = analysis_run(&template(declared), &wish(&[])).unwrap_err();
        assert_eq!(refused.to_string(), "args.service was not resolved");
        let run = analysis_run(&template(json!([])), &wish(&given)).unwrap();
        assert_eq!(run["spec"]["args"].as_array().unwrap().len(), 2, "without any, all are taken");
    }
}
