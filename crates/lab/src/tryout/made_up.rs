//! Secrets that the analyses of a user's manifests name and these lack: they are made up, as nobody wants
//! to hand over a secret to try an update.

use std::collections::{BTreeMap, BTreeSet};

use gradus_api::analysis::AnalysisTemplateSpec;
use gradus_api::names::kind;
use serde_json::{Map, Value, json};

use super::Tryout;

/// What a made-up key keeps, in base64: `made-up`.
const VALUE: &str = "bWFkZS11cA==";

impl Tryout {
    /// The Secrets, with the keys that are asked for.
    pub fn missing_secrets(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut missing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let is_template = |object: &&Value| {
            let kinds = [kind::ANALYSIS_TEMPLATE, kind::CLUSTER_ANALYSIS_TEMPLATE];
            kinds.iter().any(|kind| object["kind"] == *kind)
        };
        for template in self.objects.iter().filter(is_template) {
            let (spec, _) = gradus_api::decode::decode::<AnalysisTemplateSpec>(&template["spec"]);
            let sources = spec.args.into_iter().filter_map(|argument| argument.value_from);
            for secret in sources.filter_map(|source| source.secret_key_ref) {
                if !self.has_secret(&secret.name) {
                    missing.entry(secret.name).or_default().insert(secret.key);
                }
            }
        }
        missing
    }

    /// The Secrets as they are made up.
    pub(super) fn made_up_secrets(&self) -> Vec<Value> {
        let made = |(name, keys): (String, BTreeSet<String>)| {
            let data: Map<String, Value> =
                keys.into_iter().map(|key| (key, VALUE.into())).collect();
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
                "data": data })
        };
        self.missing_secrets().into_iter().map(made).collect()
    }

    fn has_secret(&self, name: &str) -> bool {
        let mut objects = self.objects.iter();
        objects.any(|object| object["kind"] == "Secret" && object["metadata"]["name"] == *name)
    }
}
