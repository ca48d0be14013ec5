//! Which analyses does a Rollout ask for, and can their templates be used?

use gradus_api::analysis::{Argument, Metric};
use gradus_api::names::run_type;
use gradus_api::rollout::canary::BackgroundAnalysis;
use gradus_api::rollout::status::RunStatus;
use gradus_api::rollout::{
    DryRun, MeasurementRetention, Metadata, RolloutAnalysis, RolloutArgument, RolloutSpec,
    RolloutStatus, TemplateRef,
};
use serde_json::Value;

use crate::analysis::arguments::check_metadata_path;
use crate::analysis::merge::{self, FindError, Found, MergeError, kind_name};
use crate::world::{Known, RolloutView, TemplateView, Unusable, World};

/// What a run is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The step of this index.
    Step(usize),
    /// The whole update.
    Background,
    /// The time before a blue-green switch.
    PrePromotion,
    /// The time after a blue-green switch.
    PostPromotion,
}

/// An analysis that a Rollout asks for.
#[derive(Clone, Copy, Debug)]
pub struct Analysis<'s> {
    /// What for.
    pub purpose: Purpose,
    /// The templates that make up the run; never none.
    pub templates: &'s [TemplateRef],
    /// Values for their arguments.
    pub args: &'s [RolloutArgument],
    /// Metrics whose result does not count.
    pub dry_run: &'s [DryRun],
    /// How many measurements to keep.
    pub retention: &'s [MeasurementRetention],
    /// Labels and annotations for the run.
    pub metadata: Option<&'s Metadata>,
}

/// The analyses of a spec, in the order in which they are checked. One without templates is none.
pub fn of(spec: &RolloutSpec) -> Vec<Analysis<'_>> {
    let mut found = Vec::new();
    if let Some(blue_green) = &spec.strategy.blue_green {
        let (pre, post) = (&blue_green.pre_promotion_analysis, &blue_green.post_promotion_analysis);
        found.extend(pre.as_deref().map(|one| Analysis::read(Purpose::PrePromotion, one)));
        found.extend(post.as_deref().map(|one| Analysis::read(Purpose::PostPromotion, one)));
    }
    if let Some(canary) = &spec.strategy.canary {
        for (index, step) in canary.steps.iter().enumerate() {
            let step = step.analysis.as_deref();
            found.extend(step.map(|one| Analysis::read(Purpose::Step(index), one)));
        }
        found.extend(canary.analysis.as_deref().map(Analysis::background));
    }
    found.retain(|analysis| !analysis.templates.is_empty());
    found
}

impl Purpose {
    /// The value of the label that says what a run is for.
    pub fn label(self) -> &'static str {
        match self {
            Purpose::Step(_) => run_type::STEP,
            Purpose::Background => run_type::BACKGROUND,
            Purpose::PrePromotion => run_type::PRE_PROMOTION,
            Purpose::PostPromotion => run_type::POST_PROMOTION,
        }
    }

    /// Where the status says how the run stands.
    pub fn slot(self, status: &RolloutStatus) -> Option<&RunStatus> {
        let (canary, blue_green) = (&status.canary, &status.blue_green);
        let slot = match self {
            Purpose::Step(_) => &canary.current_step_analysis_run_status,
            Purpose::Background => &canary.current_background_analysis_run_status,
            Purpose::PrePromotion => &blue_green.pre_promotion_analysis_run_status,
            Purpose::PostPromotion => &blue_green.post_promotion_analysis_run_status,
        };
        slot.as_deref()
    }

    /// The field that asks for it.
    pub fn path(self) -> String {
        let field = match self {
            Purpose::Step(index) => return format!("spec.strategy.canary.steps[{index}].analysis"),
            Purpose::Background => "canary.analysis",
            Purpose::PrePromotion => "blueGreen.prePromotionAnalysis",
            Purpose::PostPromotion => "blueGreen.postPromotionAnalysis",
        };
        format!("spec.strategy.{field}")
    }
}

impl<'s> Analysis<'s> {
    fn read(purpose: Purpose, analysis: &'s RolloutAnalysis) -> Self {
        Analysis {
            purpose,
            templates: &analysis.templates,
            args: &analysis.args,
            dry_run: &analysis.dry_run,
            retention: &analysis.measurement_retention,
            metadata: analysis.analysis_run_metadata.as_ref(),
        }
    }

    fn background(analysis: &'s BackgroundAnalysis) -> Self {
        Analysis {
            purpose: Purpose::Background,
            templates: &analysis.templates,
            args: &analysis.args,
            dry_run: &analysis.dry_run,
            retention: &analysis.measurement_retention,
            metadata: analysis.analysis_run_metadata.as_ref(),
        }
    }

    /// The templates it names, as (name, is it of the cluster).
    pub fn named(&self) -> impl Iterator<Item = (&'s str, bool)> + use<'s> {
        let pair = |one: &'s TemplateRef| (&*one.template_name, one.cluster_scope == Some(true));
        self.templates.iter().map(pair)
    }

    /// A field error about its templates.
    pub fn invalid(&self, value: &str, detail: &str) -> String {
        format!("{}.templates: Invalid value: {value:?}: {detail}", self.purpose.path())
    }

    /// All names of its templates, as one value of field errors.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.templates.iter().map(|one| &*one.template_name).collect();
        format!("templateNames: [{}]", names.join(" "))
    }
}

/// The first template that is not there. Where an update may wait for verdicts, those who speak them
/// must be readable.
pub(super) fn missing(world: &World) -> Option<Unusable> {
    let fields = &world.rollout.spec.fields;
    let analyses = of(fields);
    let mut steps = fields.strategy.canary.iter().flat_map(|canary| &canary.steps);
    let needed = [
        (&world.runs, !analyses.is_empty()),
        (&world.experiments, steps.any(|step| step.experiment.is_some())),
    ];
    for (known, is_needed) in needed {
        if let (Known::Unknown(message), true) = (known, is_needed) {
            return Some(Unusable::Unreadable(message.clone()));
        }
    }
    analyses.iter().find_map(|analysis| {
        match merge::find(&world.templates, analysis.named()).err()? {
            FindError::Unreadable(message) => Some(Unusable::Unreadable(message)),
            FindError::Absent { is_cluster, name } => {
                let detail = format!("{} '{name}' not found", kind_name(is_cluster));
                Some(Unusable::Invalid(analysis.invalid(&name, &detail)))
            }
        }
    })
}

/// The first analysis whose templates do not make a run.
pub(super) fn unfit(world: &World) -> Option<Unusable> {
    let analyses = of(&world.rollout.spec.fields);
    analyses.iter().find_map(|analysis| {
        let found = merge::find(&world.templates, analysis.named()).ok()?;
        fault(&world.rollout, analysis, &analyses, &found).map(Unusable::Invalid)
    })
}

/// Why the templates of an analysis do not make a run that an update can wait for, as a field
/// error. `all` are the analyses of the Rollout.
pub fn fault(
    rollout: &RolloutView,
    analysis: &Analysis<'_>,
    all: &[Analysis<'_>],
    found: &Found<'_>,
) -> Option<String> {
    let refused = dry_run(rollout, analysis, all, found).err();
    let wrong = refused.map(|detail| analysis.invalid(&analysis.names(), &detail));
    wrong.or_else(|| unbounded(analysis, found))
}

/// Makes the run without creating it: arguments with any value, and the rules of every analysis step beside its
/// own, as Argo Rollouts does.
fn dry_run(
    rollout: &RolloutView,
    analysis: &Analysis<'_>,
    all: &[Analysis<'_>],
    found: &Found<'_>,
) -> Result<(), String> {
    let path = |argument: &RolloutArgument| {
        Some(argument.value_from.as_ref()?.field_ref.as_ref()?.field_path.clone())
    };
    for path in analysis.args.iter().filter_map(path).filter(|path| path.starts_with("metadata")) {
        check_metadata_path(rollout, &path).map_err(|error| error.to_string())?;
    }
    let given: Vec<Argument> = analysis
        .args
        .iter()
        .map(|one| Argument {
            name: one.name.clone(),
            value: Some(String::new()),
            value_from: None,
        })
        .collect();
    let merged = || -> Result<(), MergeError> {
        let templates = found.all().map(|(_, template)| template);
        let flat = merge::flatten(templates)?.with_arguments(&given)?;
        let steps = all.iter().filter(|one| matches!(one.purpose, Purpose::Step(_)));
        for rules in std::iter::once(analysis).chain(steps) {
            flat.clone().with_rules(rules.dry_run, rules.retention)?;
        }
        Ok(())
    };
    merged().map_err(|error| error.to_string())
}

/// The first template that would keep an update waiting for ever, or cannot be filled in.
fn unbounded(analysis: &Analysis<'_>, found: &Found<'_>) -> Option<String> {
    if analysis.purpose == Purpose::Background {
        return None;
    }
    let detail = found.all().find_map(|(_, template)| {
        let detail = both_sources(template)
            .or_else(|| unknown_placeholder(template))
            .map(|detail| format!("AnalysisTemplate {}: {detail}", template.name));
        let detail = detail.or_else(|| {
            template.fields.metrics.iter().find_map(|metric| endless(template, metric))
        });
        detail.map(|detail| (template, detail))
    });
    detail.map(|(template, detail)| analysis.invalid(&template.name, &detail))
}

fn both_sources(template: &TemplateView) -> Option<String> {
    let both = |one: &&Argument| one.value.is_some() && one.value_from.is_some();
    let found = template.fields.args.iter().find(both)?;
    Some(format!("arg '{}' has both Value and ValueFrom fields", found.name))
}

/// The last placeholder of the metrics that is no argument of the template, in words.
pub fn unknown_placeholder(template: &TemplateView) -> Option<String> {
    let is_known = |tag: &str| {
        let name = tag.trim().strip_prefix("args.");
        name.is_some_and(|name| template.fields.args.iter().any(|argument| argument.name == name))
    };
    let metrics = template.raw["metrics"].as_array().into_iter().flatten();
    let unknown = metrics.filter_map(|metric: &Value| {
        let text = metric.to_string();
        let tags = text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap_or(rest));
        tags.filter(|tag| !is_known(tag)).last().map(str::to_owned)
    });
    unknown.into_iter().next().map(|tag| format!("failed to resolve {{{{{tag}}}}}"))
}

/// A metric that measures for ever ends no step.
fn endless(template: &TemplateView, metric: &Metric) -> Option<String> {
    let count = metric.count.as_ref();
    // A count that an argument fills in is not known here.
    let is_filled_in = count.is_some_and(|count| count.to_string().contains("{{"));
    let is_finite = metric.interval.is_empty()
        || is_filled_in
        || count.is_some_and(|count| count.int_value() != 0);
    if is_finite {
        return None;
    }
    let count = count.map_or("<nil>".to_owned(), ToString::to_string);
    Some(format!(
        "AnalysisTemplate {} has metric {} which runs indefinitely. Invalid value for count: {count}",
        template.name, metric.name
    ))
}
