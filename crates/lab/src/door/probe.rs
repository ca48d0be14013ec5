//! Who answers the requests by which a Rollout has its split measured?

use std::collections::BTreeMap;

use gradus_api::names::label;
use gradus_engine::ask::{ProbeOf, ProbeSaid};
use gradus_simkube::traffic::answering;

use super::Bench;

impl Bench {
    /// Who answers the requests of a measurement, whatever its address: as the routers of the namespace
    /// split them now.
    pub(super) fn probe(&self, of: &ProbeOf) -> ProbeSaid {
        let shares = answering(&self.cluster, &self.place.key.namespace, label::POD_TEMPLATE_HASH);
        let count = |share: f64| (share * f64::from(of.requests)).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of u32"
        )]
        let answers: BTreeMap<String, u32> =
            shares.into_iter().map(|(hash, share)| (hash, count(share) as u32)).collect();
        let answered: u32 = answers.values().sum();
        let lost = of.requests.saturating_sub(answered);
        ProbeSaid { answers, lost, reason: "no pod answers".to_owned() }
    }
}
