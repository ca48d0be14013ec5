//! CloudWatch as moto plays it. It takes any signature and computes no metric math: an expression has
//! no values, which is what no data looks like.

use serde_json::{Value, json};

use super::Case;
use crate::{
    Failure,
    balancers::{REGION, moto::Running},
};

/// Three measurements of one metric.
pub async fn fill(moto: &Running) -> Result<(), Failure> {
    let mut fields = vec![("Namespace".to_owned(), "app".to_owned())];
    for number in 1..=3 {
        let one = format!("MetricData.member.{number}");
        fields.push((format!("{one}.MetricName"), "errors".to_owned()));
        fields.push((format!("{one}.Value"), number.to_string()));
        fields.push((format!("{one}.Unit"), "Count".to_owned()));
    }
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    moto.call("monitoring", "PutMetricData", &fields).await.map(drop)
}

/// What the controller is started with to find it.
pub fn environment(moto: &Running) -> Vec<(String, String)> {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("AWS_REGION", REGION.to_owned()),
        ("AWS_ENDPOINT_URL", moto.address()),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub fn cases() -> Vec<Case> {
    let errors = json!({ "id": "errors", "metricStat": { "period": 60, "stat": "Sum",
        "metric": { "namespace": "app", "metricName": "errors" } } });
    let metric = |queries: Value, condition: &str| {
        json!({ "successCondition": condition,
            "provider": { "cloudWatch": { "interval": "30m", "metricDataQueries": queries } } })
    };
    vec![
        Case {
            what: "cloud watch, a sum",
            metric: metric(
                json!([errors]),
                "sum(result[0].Values) == 6 && result[0].Id == 'errors'",
            ),
            phase: "Successful",
            shows: "[[",
        },
        Case {
            what: "cloud watch, too many",
            metric: metric(json!([errors]), "sum(result[0].Values) < 6"),
            phase: "Failed",
            shows: "[[",
        },
        Case {
            what: "cloud watch, no data",
            metric: metric(
                json!([{ "id": "rate", "expression": "errors / 2" }]),
                "result[0].Values[0] <= 0.01",
            ),
            phase: "Error",
            shows: "could not evaluate successCondition",
        },
    ]
}
