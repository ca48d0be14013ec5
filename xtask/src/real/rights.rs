//! Are the rights that are shipped those that are used? Nothing is forbidden, and nothing is granted
//! for nothing.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::{
    Failure,
    audit::Audit,
    manifests::{Fragment, fragments},
    plane::User,
    repository,
};

/// A verb on a resource, as `patch apps replicasets`.
type Right = String;

/// Verbs that no request shows: what asks for them is another one.
const ASKED_BY_OTHERS: [&str; 3] = [
    "update argoproj.io rollouts/finalizers",
    "update argoproj.io experiments/finalizers",
    "update argoproj.io analysisruns/finalizers",
];

/// Rights that no scenario needs on this control plane yet: those on routes other than HTTPRoutes, and the
/// end of Experiments beyond their history limits, and what is read where AWS is asked. Whoever adds such a
/// scenario takes its line out.
const NOT_PLAYED: [&str; 6] = [
    "delete argoproj.io experiments",
    " gateway.networking.k8s.io grpcroutes",
    " gateway.networking.k8s.io tcproutes",
    " gateway.networking.k8s.io tlsroutes",
    " elbv2.k8s.aws targetgroupbindings",
    " discovery.k8s.io endpointslices",
];

/// Rights that only something rare needs: an answer that was lost at the very write, a watch that is
/// late, an object that was named before it was there. The runs with faults need each of them somewhere,
/// not every run needs all of them.
fn is_rare(right: &str) -> bool {
    right.starts_with("get ") || NOT_PLAYED.iter().any(|resource| right.ends_with(resource))
}

#[derive(Debug, Error)]
#[error("granted in manifests/rbac/ and used by nobody in this run: {}", .0.join(", "))]
struct Unused(Vec<Right>);

/// Every right of a feature that is on was used since `audit` began.
pub fn are_all_used(audit: &Audit) -> Result<(), Failure> {
    let used: BTreeSet<Right> = audit
        .requests()?
        .iter()
        .filter(|request| request.is_by(User::Controller))
        .map(|request| format!("{} {} {}", request.verb, request.group, request.resource))
        .collect();
    let granted = granted(&fragments(&repository().join("manifests/rbac"))?)?;
    let is_unused = |right: &&Right| {
        !used.contains(*right) && !ASKED_BY_OTHERS.contains(&right.as_str()) && !is_rare(right)
    };
    let unused: Vec<Right> = granted.iter().filter(is_unused).cloned().collect();
    let rare = granted.iter().filter(|right| is_rare(right) && !used.contains(*right)).count();
    println!(
        "  rights: {} granted, {} unused, {rare} for what is rare or not played",
        granted.len(),
        unused.len()
    );
    if unused.is_empty() { Ok(()) } else { Err(Unused(unused).into()) }
}

fn granted(fragments: &[Fragment]) -> Result<BTreeSet<Right>, String> {
    let mut rights = BTreeSet::new();
    for fragment in fragments.iter().filter(|fragment| fragment.is_on) {
        for rule in fragment.parsed()? {
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    let right = |verb: &String| format!("{verb} {group} {resource}");
                    rights.extend(rule.verbs.iter().map(right));
                }
            }
        }
    }
    Ok(rights)
}

#[test]
fn a_right_is_a_verb_on_a_resource_of_a_group() {
    use crate::manifests::Place;
    let rules = "# why\n- apiGroups: [apps]\n  resources: [replicasets]\n  verbs: [get, patch]\n";
    let fragment = Fragment {
        name: "core".to_owned(),
        about: "x".to_owned(),
        rules: rules.to_owned(),
        place: Place::Managed,
        is_on: true,
    };
    let rights = granted(std::slice::from_ref(&fragment)).unwrap();
    assert_eq!(
        rights.into_iter().collect::<Vec<_>>(),
        ["get apps replicasets", "patch apps replicasets"]
    );
    assert!(granted(&[Fragment { is_on: false, ..fragment }]).unwrap().is_empty());
}
