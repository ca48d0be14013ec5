//! Who am I, and what may I do? Here everybody may do everything.

use serde_json::{Value, json};

/// A kind that is only ever posted, and answered at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Review {
    /// API group; the version is always v1.
    pub group: &'static str,
    /// For example `SelfSubjectAccessReview`.
    pub kind: &'static str,
    /// For example `selfsubjectaccessreviews`.
    pub plural: &'static str,
}

/// All reviews, for discovery.
pub const REVIEWS: [Review; 5] = [
    review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
    review("authentication.k8s.io", "TokenReview", "tokenreviews"),
    review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    review("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
    review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"),
];

impl Review {
    /// The review behind a path.
    pub fn find(group: &str, version: &str, plural: &str) -> Option<Self> {
        let found = REVIEWS.iter().find(|one| one.group == group && one.plural == plural);
        found.filter(|_| version == "v1").copied()
    }

    /// Fills in the status of a posted review.
    pub fn answer(&self, mut body: Value, user: &str) -> Value {
        let who = json!({"username": user, "groups": ["system:authenticated"]});
        let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        let status = match self.kind {
            "SelfSubjectReview" => json!({"userInfo": who}),
            "TokenReview" => {
                let token = body["spec"]["token"].as_str().unwrap_or_default();
                json!({"authenticated": !token.is_empty(), "user": {"username": token}})
            }
            "SelfSubjectRulesReview" => json!({
                "resourceRules": everything,
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
            _ => json!({"allowed": true, "reason": "everybody may do everything here"}),
        };
        body["apiVersion"] = json!(format!("{}/v1", self.group));
        body["kind"] = json!(self.kind);
        if body["metadata"].is_null() {
            body["metadata"] = json!({});
        }
        body["status"] = status;
        body
    }
}

const fn review(group: &'static str, kind: &'static str, plural: &'static str) -> Review {
    Review { group, kind, plural }
}
