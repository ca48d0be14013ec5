//! What only pods can be asked: to leave politely, and to take a node.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::SimCluster;
use crate::error::{ApiError, Cause, Details};
use crate::kinds::{KindId, KindInfo};
use crate::object::Object;
use crate::request::{Options, Reply, Request};
use crate::selector::LabelSelector;

impl SimCluster {
    /// Deletes a pod unless a disruption budget says no.
    pub(super) fn evict(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let pod = self.find(request, kind)?;
        if let Some((budget, healthy, needed)) = self.budget_against(&pod) {
            return Err(refused(&budget, healthy, needed));
        }
        let asked = &request.body["deleteOptions"];
        let given = &request.options;
        let conditions = &asked["preconditions"];
        let uid = conditions["uid"].as_str().map(Into::into);
        let version = conditions["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let options = Options {
            grace_seconds: asked["gracePeriodSeconds"].as_i64().or(given.grace_seconds),
            expect_uid: uid.or_else(|| given.expect_uid.clone()),
            expect_version: version.or(given.expect_version),
            ..given.clone()
        };
        self.delete_object(&pod, kind, &options, now)?;
        Ok(done())
    }

    /// Puts a pod on a node.
    pub(super) fn bind(
        &mut self,
        request: &Request,
        kind: &KindInfo,
        now: Timestamp,
    ) -> Result<Reply, ApiError> {
        let pod = self.find(request, kind)?;
        let node = &request.body["target"]["name"];
        let is_bound = pod.pod.is_some() || pod.spec["nodeName"].is_string();
        if is_bound {
            let on = pod.field("spec.nodeName").unwrap_or_default();
            let why = format!("pod {} is already assigned to node {on:?}", pod.meta.name);
            return Err(ApiError::conflict(kind, &pod.meta.name, &why));
        }
        if node.as_str().is_none_or(str::is_empty) {
            let cause = Cause::required("target.name", "");
            return Err(ApiError::invalid(kind, &pod.meta.name, vec![cause]));
        }
        let mut bound = Object::clone(&pod);
        Arc::make_mut(&mut bound.spec)["nodeName"] = node.clone();
        let status = Arc::make_mut(&mut bound.status);
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "True", "lastTransitionTime": now.to_string(),
        }]);
        if !request.options.dry_run {
            self.put(bound, request.verb, request.options.writer());
        }
        Ok(done())
    }

    /// A budget that would be broken without this pod, its healthy pods and how many it needs.
    fn budget_against(&self, pod: &Object) -> Option<(Arc<str>, i64, i64)> {
        let namespace = &pod.meta.namespace;
        for budget in self.store.list(KindId::POD_DISRUPTION_BUDGET, namespace) {
            let Ok(selector) = LabelSelector::from_json(&budget.spec["selector"]) else { continue };
            if !selector.matches(&pod.meta.labels) {
                continue;
            }
            let pods = self.store.list(KindId::POD, namespace);
            let pods = pods.filter(|one| selector.matches(&one.meta.labels));
            let (mut all, mut healthy) = (0, 0);
            for one in pods {
                all += 1;
                let is_ready = one.pod.as_ref().is_some_and(|status| status.ready);
                healthy += i64::from(is_ready && one.meta.deleting.is_none());
            }
            let needed = match (&budget.spec["minAvailable"], &budget.spec["maxUnavailable"]) {
                (Value::Null, Value::Null) => continue,
                (Value::Null, most) => all - part_of(most, all),
                (least, _) => part_of(least, all),
            };
            if healthy <= needed {
                return Some((budget.meta.name.clone(), healthy, needed));
            }
        }
        None
    }
}

/// A number, or a share rounded up.
fn part_of(amount: &Value, all: i64) -> i64 {
    let percent = amount.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    match percent {
        Some(percent) => (all * percent + 99).div_euclid(100),
        None => amount.as_i64().unwrap_or_default(),
    }
}

fn refused(budget: &str, healthy: i64, needed: i64) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let cause = format!(
        "The disruption budget {budget} needs {needed} healthy pods and has {healthy} currently"
    );
    let causes = vec![Cause::new("DisruptionBudget", "", cause)];
    let details = Details { causes, ..Details::default() };
    ApiError { details: Some(Box::new(details)), ..ApiError::too_many_requests(message) }
}

fn done() -> Reply {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Reply { created: true, ..Reply::json(status) }
}
