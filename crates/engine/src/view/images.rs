//! Which images run, and in which parts?

use std::collections::BTreeMap;

use gradus_api::names::annotation;
use serde::Serialize;

use super::Tag;
use super::object::{Object, text};
use super::tree::{Described, Relatives};

/// An image that runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Image {
    /// The image.
    pub name: String,
    /// In which parts.
    pub tags: Vec<ImageTag>,
}

/// A part in which an image runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ImageTag {
    /// A part of a Rollout.
    Role(Tag),
    /// A template of an Experiment.
    Template(String),
}

impl ImageTag {
    /// The order of several tags of one image: by the text that people see.
    fn text(&self) -> String {
        match self {
            ImageTag::Role(tag) => tag.name().to_owned(),
            ImageTag::Template(name) => format!("Σ:{name}"),
        }
    }
}

/// The order in which one ReplicaSet's tags are shown beside its images.
const ORDER: [Tag; 6] = [Tag::Canary, Tag::Stable, Tag::Active, Tag::Preview, Tag::Ping, Tag::Pong];

/// Images of everything that has pods below a Rollout.
pub(super) fn of_rollout(
    family: &Relatives<'_>,
    head: &Object<'_>,
    roles: Described<'_>,
) -> Vec<Image> {
    let mut found = Found::default();
    for set in family.replica_sets(head.uid()) {
        let tags = roles.tags(&set);
        let shown = ORDER.into_iter().filter(|tag| tags.contains(tag)).map(ImageTag::Role);
        found.add(&set, shown.collect());
    }
    for experiment in family.experiments(head.uid()) {
        found.add_experiment(family, &experiment);
    }
    found.images()
}

/// Images of everything that has pods below an Experiment.
pub(super) fn of_experiment(family: &Relatives<'_>, head: &Object<'_>) -> Vec<Image> {
    let mut found = Found::default();
    found.add_experiment(family, head);
    found.images()
}

#[derive(Default)]
struct Found(BTreeMap<String, Vec<ImageTag>>);

impl Found {
    fn add_experiment(&mut self, family: &Relatives<'_>, experiment: &Object<'_>) {
        for set in family.replica_sets(experiment.uid()) {
            let template = set.annotation(annotation::EXPERIMENT_TEMPLATE_NAME);
            let tag = template.map(|name| ImageTag::Template(name.to_owned()));
            self.add(&set, tag.into_iter().collect());
        }
    }

    fn add(&mut self, set: &Object<'_>, tags: Vec<ImageTag>) {
        if set.number("status", "replicas") == 0 {
            return;
        }
        let containers = &set.part("spec")["template"]["spec"]["containers"];
        for container in containers.as_array().into_iter().flatten() {
            let known = self.0.entry(text(&container["image"]).to_owned()).or_default();
            let is_merged = !known.is_empty();
            known.extend(
                tags.iter().filter(|tag| !known.contains(tag)).cloned().collect::<Vec<_>>(),
            );
            if is_merged {
                known.sort_by_key(ImageTag::text);
            }
        }
    }

    fn images(self) -> Vec<Image> {
        self.0.into_iter().map(|(name, tags)| Image { name, tags }).collect()
    }
}
