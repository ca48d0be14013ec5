//! Which templates does an analysis name, and what do they measure together?

use std::collections::BTreeSet;
use std::sync::Arc;

use gradus_api::analysis::Argument;
use gradus_api::rollout::{DryRun, MeasurementRetention};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::world::{Known, TemplateView, Templates};

/// Why templates cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FindError {
    /// There is none of that name.
    #[error("{} '{name}' not found", kind_name(*.is_cluster))]
    Absent {
        /// Is it a ClusterAnalysisTemplate?
        is_cluster: bool,
        /// Which.
        name: String,
    },
    /// Templates cannot be read now.
    #[error("{0}")]
    Unreadable(String),
}

/// Why templates do not make one run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    /// Two metrics of one name.
    #[error("two metrics have the same name '{0}'")]
    TwoMetrics(String),
    /// Two rules about the same metrics that do not count.
    #[error("two Dry-Run metric rules have the same name '{0}'")]
    TwoDryRuns(String),
    /// Two rules about how many measurements of the same metrics to keep.
    #[error("two Measurement Retention metric rules have the same name '{0}'")]
    TwoRetentions(String),
    /// Two templates give one argument different values.
    #[error(
        "Argument `{name}` specified multiple times with different values: '{first}', '{second}'"
    )]
    TwoValues {
        /// Which argument.
        name: String,
        /// What the first template says.
        first: String,
        /// What a later one says.
        second: String,
    },
    /// Nobody gives an argument its value.
    #[error("args.{0} was not resolved")]
    Unresolved(String),
}

/// What a run measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunMetrics {
    /// The metrics, as the templates have them.
    pub metrics: Vec<Value>,
    /// The arguments.
    pub args: Vec<Argument>,
    /// Metrics whose result does not count.
    pub dry_run: Vec<DryRun>,
    /// How many measurements to keep.
    pub retention: Vec<MeasurementRetention>,
}

/// The kind of a template in words.
pub fn kind_name(is_cluster: bool) -> &'static str {
    if is_cluster { "ClusterAnalysisTemplate" } else { "AnalysisTemplate" }
}

/// Templates that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found<'w> {
    /// Of the namespace.
    pub namespaced: Vec<&'w Arc<TemplateView>>,
    /// Of the cluster.
    pub cluster: Vec<&'w Arc<TemplateView>>,
}

impl<'w> Found<'w> {
    /// All of them, those of the namespace first, with whether each is of the cluster.
    pub fn all(&self) -> impl Iterator<Item = (bool, &'w Arc<TemplateView>)> {
        let namespaced = self.namespaced.iter().map(|template| (false, *template));
        namespaced.chain(self.cluster.iter().map(|template| (true, *template)))
    }
}

/// The named templates, each followed by those it names; every one once, so that templates which
/// name each other come to an end.
pub fn find<'w, 'n>(
    templates: &'w Templates,
    named: impl IntoIterator<Item = (&'n str, bool)>,
) -> Result<Found<'w>, FindError> {
    let mut found = Found::default();
    let mut seen = BTreeSet::new();
    let mut left: Vec<(String, bool)> = Vec::new();
    left.extend(named.into_iter().map(|(name, is_cluster)| (name.to_owned(), is_cluster)));
    left.reverse();
    while let Some((name, is_cluster)) = left.pop() {
        if !seen.insert((is_cluster, name.clone())) {
            continue;
        }
        let all = if is_cluster { &templates.cluster } else { &templates.namespaced };
        let template = match all.get(name.as_str()) {
            Some(Known::Present(template)) => template,
            Some(Known::Unknown(message)) => return Err(FindError::Unreadable(message.clone())),
            Some(Known::Absent) | None => return Err(FindError::Absent { is_cluster, name }),
        };
        let list = if is_cluster { &mut found.cluster } else { &mut found.namespaced };
        list.push(template);
        let mut nested: Vec<(String, bool)> =
            template.nested().map(|(name, is_cluster)| (name.to_owned(), is_cluster)).collect();
        nested.reverse();
        left.extend(nested);
    }
    Ok(found)
}

/// What templates measure together.
pub fn flatten<'t>(
    templates: impl IntoIterator<Item = &'t Arc<TemplateView>>,
) -> Result<RunMetrics, MergeError> {
    let mut flat = RunMetrics::default();
    let mut names = BTreeSet::new();
    for template in templates {
        let fields = &template.fields;
        let taken = fields.metrics.iter().find(|metric| !names.insert(metric.name.as_str()));
        if let Some(metric) = taken {
            return Err(MergeError::TwoMetrics(metric.name.clone()));
        }
        let metrics = template.raw["metrics"].as_array().into_iter().flatten();
        flat.metrics.extend(metrics.cloned());
        for argument in &fields.args {
            add_argument(&mut flat.args, argument)?;
        }
        flat.dry_run.extend(fields.dry_run.iter().cloned());
        flat.retention.extend(fields.measurement_retention.iter().cloned());
    }
    flat.check_rules()?;
    Ok(flat)
}

/// The first of a name keeps its place; where it has no value, the later one takes it.
fn add_argument(known: &mut Vec<Argument>, argument: &Argument) -> Result<(), MergeError> {
    let Some(first) = known.iter_mut().find(|first| first.name == argument.name) else {
        known.push(argument.clone());
        return Ok(());
    };
    match (&first.value, &argument.value) {
        (Some(one), Some(other)) if one != other => Err(MergeError::TwoValues {
            name: argument.name.clone(),
            first: one.clone(),
            second: other.clone(),
        }),
        (Some(_), _) => Ok(()),
        (None, _) => {
            *first = argument.clone();
            Ok(())
        }
    }
}

impl RunMetrics {
    /// The same with the caller's values for the arguments that templates declare.
    pub fn with_arguments(mut self, given: &[Argument]) -> Result<Self, MergeError> {
        for given in given {
            let declared = self.args.iter_mut().find(|declared| declared.name == given.name);
            let Some(declared) = declared else { continue };
            if given.value.is_some() {
                declared.value.clone_from(&given.value);
            } else if given.value_from.is_some() {
                declared.value_from.clone_from(&given.value_from);
            }
        }
        let open = |argument: &&Argument| argument.value.is_none() && argument.value_from.is_none();
        match self.args.iter().find(open) {
            Some(argument) => Err(MergeError::Unresolved(argument.name.clone())),
            None => Ok(self),
        }
    }

    /// The same with the caller's rules before those of the templates.
    pub fn with_rules(
        mut self,
        dry_run: &[DryRun],
        retention: &[MeasurementRetention],
    ) -> Result<Self, MergeError> {
        self.dry_run.splice(0..0, dry_run.iter().cloned());
        self.retention.splice(0..0, retention.iter().cloned());
        self.check_rules()?;
        Ok(self)
    }

    /// The spec of the run.
    pub fn spec(self) -> Value {
        let mut spec = Map::new();
        spec.insert("metrics".into(), Value::Array(self.metrics));
        let lists = [
            ("args", json!(self.args)),
            ("dryRun", json!(self.dry_run)),
            ("measurementRetention", json!(self.retention)),
        ];
        let filled = lists.into_iter().filter(|(_, list)| *list != json!([]));
        spec.extend(filled.map(|(field, list)| (field.to_owned(), list)));
        Value::Object(spec)
    }

    fn check_rules(&self) -> Result<(), MergeError> {
        let mut names = BTreeSet::new();
        if let Some(rule) = self.dry_run.iter().find(|rule| !names.insert(&rule.metric_name)) {
            return Err(MergeError::TwoDryRuns(rule.metric_name.clone()));
        }
        let mut names = BTreeSet::new();
        match self.retention.iter().find(|rule| !names.insert(&rule.metric_name)) {
            Some(rule) => Err(MergeError::TwoRetentions(rule.metric_name.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::frame::Frame;

    fn template(name: &str, spec: Value) -> (Arc<str>, Known<Arc<TemplateView>>) {
        let frame: Frame =
            serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap();
        (name.into(), Known::Present(Arc::new(TemplateView::read(&frame))))
    }

    fn metric(name: &str) -> Value {
        json!({ "name": name, "provider": { "web": { "url": "x", "unknown": 1 } } })
    }

    fn refers(name: &str, is_cluster: bool) -> Value {
        json!({ "templateName": name, "clusterScope": is_cluster })
    }

    fn templates() -> Templates {
        let arg = |name: &str, value: Value| json!({ "name": name, "value": value });
        Templates {
            namespaced: [
                template(
                    "one",
                    json!({ "metrics": [metric("m1")], "args": [arg("a", json!("x"))],
                    "templates": [refers("inner", false), refers("everywhere", true)] }),
                ),
                template(
                    "inner",
                    json!({ "metrics": [metric("m2")], "args": [{ "name": "b" }],
                    "templates": [refers("one", false)] }),
                ),
                template("twin", json!({ "metrics": [metric("m1")] })),
                template(
                    "other",
                    json!({ "args": [arg("a", json!("y")), arg("b", json!("z"))],
                    "dryRun": [{ "metricName": "m.*" }] }),
                ),
                template("lost", json!({ "templates": [refers("nowhere", true)] })),
            ]
            .into(),
            cluster: [template("everywhere", json!({ "metrics": [metric("m3")] }))].into(),
        }
    }

    #[test]
    fn templates_are_found_once_each_even_where_they_name_each_other() {
        let templates = templates();
        let found = find(&templates, [("one", false), ("everywhere", true)]).unwrap();
        let names: Vec<(bool, &str)> = found.all().map(|(is, it)| (is, &*it.name)).collect();
        assert_eq!(names, [(false, "one"), (false, "inner"), (true, "everywhere")]);
        let error = find(&templates, [("lost", false)]).unwrap_err();
        assert_eq!(error.to_string(), "ClusterAnalysisTemplate 'nowhere' not found");
    }

    /// The templates, the given arguments (`name=value`), and what comes of them: the names of the
    /// metrics and the arguments, or the error.
    const MERGED: &str = "
one       | b=2     | m1 m2 m3: a=x b=2
one       | b=2 a=9 | m1 m2 m3: a=9 b=2
one       | b=2 c=3 | m1 m2 m3: a=x b=2
one       |         | args.b was not resolved
one twin  | b=2     | two metrics have the same name 'm1'
one other | b=2     | Argument `a` specified multiple times with different values: 'x', 'y'
inner other |       | Argument `a` specified multiple times with different values: 'x', 'y'
other     |         | : a=y b=z";

    #[test]
    fn metrics_are_joined_and_arguments_merged() {
        let templates = templates();
        for row in MERGED.trim().lines() {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [named, given, expected] = cells[..] else { panic!("three cells: {row}") };
            let found = find(&templates, named.split(' ').map(|name| (name, false))).unwrap();
            let given: Vec<Argument> = given
                .split(' ')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| Argument {
                    name: name.into(),
                    value: Some(value.into()),
                    value_from: None,
                })
                .collect();
            let merged = flatten(found.all().map(|(_, template)| template))
                .and_then(|flat| flat.with_arguments(&given));
            let text = merged.map(|merged| {
                let metrics: Vec<_> =
                    merged.metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
                let value = |a: &Argument| format!("{}={}", a.name, a.value.clone().unwrap());
                let args: Vec<String> = merged.args.iter().map(value).collect();
                format!("{}: {}", metrics.join(" "), args.join(" "))
            });
            assert_eq!(text.unwrap_or_else(|error| error.to_string()), expected, "{row}");
        }
    }

    #[test]
    fn rules_of_one_name_are_refused_and_no_field_of_a_metric_is_lost() {
        let templates = templates();
        let found = find(&templates, [("other", false), ("everywhere", true)]).unwrap();
        let flat = flatten(found.all().map(|(_, template)| template)).unwrap();
        let rule = |name: &str| [DryRun { metric_name: name.to_owned() }];
        let error = flat.clone().with_rules(&rule("m.*"), &[]).unwrap_err();
        assert_eq!(error.to_string(), "two Dry-Run metric rules have the same name 'm.*'");
        let kept = MeasurementRetention { metric_name: "m".to_owned(), limit: 2 };
        let error = flat.clone().with_rules(&[], &[kept.clone(), kept]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "two Measurement Retention metric rules have the same name 'm'"
        );
        let spec = flat.with_rules(&rule("n"), &[]).unwrap().spec();
        assert_eq!(spec["metrics"][0]["provider"]["web"]["unknown"], 1);
        assert_eq!(spec["dryRun"], json!([{ "metricName": "n" }, { "metricName": "m.*" }]));
        assert_eq!(spec.get("measurementRetention"), None);
    }
}
