//! CloudWatch: one page of GetMetricData, in the JSON protocol of AWS.

use gradus_api::metrics::{CloudWatchMetric, CloudWatchQuery};
use gradus_api::values::parse_go_duration;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::format::{floats, go_number};
use super::{Call, MetricValue, Next, Observed, Once, Provider, Reading, TextMap, once, seconds};
use crate::ask::http::{Auth, HttpReply, HttpRequest};
use crate::ask::secret::{Encoding, SecretPlace, SecretRef, SecretText};

/// Queries to CloudWatch.
pub struct CloudWatch<'a>(pub &'a CloudWatchMetric);

/// How long an answer may take, in seconds.
const TIMEOUT: i64 = 30;
const EXPECTED: &str = "a GetMetricData answer with MetricDataResults";

impl Provider for CloudWatch<'_> {
    fn kind(&self) -> &'static str {
        "CloudWatch"
    }

    fn address(&self) -> String {
        "the CloudWatch endpoint of the controller's region".to_owned()
    }

    fn query(&self) -> String {
        let one = |query: &CloudWatchQuery| {
            let metric = query.metric_stat.as_ref().map(|stat| &stat.metric.metric_name);
            let what = query.expression.as_ref().or(metric).cloned().unwrap_or_default();
            format!("{} = {what}", query.id)
        };
        let all: Vec<String> = self.0.metric_data_queries.iter().map(one).collect();
        SecretText::from_marked(&all.join(", ")).to_string()
    }

    fn next(&self, _: Call<'_>, seen: &Observed<'_>) -> Next {
        let text = if self.0.interval.is_empty() { "5m" } else { &self.0.interval };
        let interval = match parse_go_duration(text) {
            Ok(interval) => interval,
            Err(error) => return Next::refused(error.to_string()),
        };
        match once(seen, self.request(seen.now, interval), EXPECTED) {
            Once::Answered(reply) => read(reply),
            Once::Ask(Next::Done(Reading::Error(fault))) if fault.ends_run => {
                Next::refused("no AWS region is configured for the controller: set AWS_REGION")
            }
            Once::Ask(next) => next,
        }
    }
}

impl CloudWatch<'_> {
    fn request(&self, now: Timestamp, interval: SignedDuration) -> HttpRequest {
        let queries: Vec<Value> = self.0.metric_data_queries.iter().map(query).collect();
        let body = json!({
            "StartTime": (now - interval).as_second(),
            "EndTime": now.as_second(),
            "MetricDataQueries": queries,
        });
        let body = SecretText::from_marked(&body.to_string()).with_secrets(Encoding::Json);
        let auth = Auth::SigV4 {
            service: "monitoring".to_owned(),
            region: SecretText::default(),
            profile: SecretText::default(),
            role_arn: SecretText::default(),
        };
        let request = HttpRequest::post(endpoint(), body, seconds(TIMEOUT))
            .header("Content-Type", "application/x-amz-json-1.0")
            .header("X-Amz-Target", "GraniteServiceVersion20100801.GetMetricData");
        HttpRequest { auth, ..request }
    }
}

/// The endpoint that the environment names, else that of its region.
fn endpoint() -> SecretText {
    let variable = |name: &str| SecretRef::new(SecretPlace::Environment, "", name);
    let region = SecretText::secret(variable("AWS_DEFAULT_REGION"));
    let region = SecretText::secret(variable("AWS_REGION").or(region));
    let regional = SecretText::plain("https://monitoring.").then(region).then(".amazonaws.com/");
    let general = SecretText::secret(variable("AWS_ENDPOINT_URL").or(regional));
    SecretText::secret(variable("AWS_ENDPOINT_URL_CLOUDWATCH").or(general))
}

fn query(query: &CloudWatchQuery) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    put("Id", Some(json!(query.id)));
    put("Expression", query.expression.as_ref().map(|text| json!(text)));
    put("Label", query.label.as_ref().map(|text| json!(text)));
    put("Period", query.period.as_ref().map(|period| json!(period.int_value())));
    put("ReturnData", query.return_data.map(Value::from));
    let statistic = query.metric_stat.as_ref().map(|statistic| {
        let metric = &statistic.metric;
        let dimensions: Vec<Value> = metric
            .dimensions
            .iter()
            .map(|dimension| json!({ "Name": dimension.name, "Value": dimension.value }))
            .collect();
        let mut seen = json!({ "Dimensions": dimensions, "MetricName": metric.metric_name });
        if let Some(namespace) = &metric.namespace {
            seen["Namespace"] = json!(namespace);
        }
        let period = statistic.period.int_value();
        let mut stat = json!({ "Metric": seen, "Period": period, "Stat": statistic.stat });
        if !statistic.unit.is_empty() {
            stat["Unit"] = json!(statistic.unit);
        }
        stat
    });
    put("MetricStat", statistic);
    Value::Object(fields)
}

fn read(reply: &HttpReply) -> Next {
    let answer: Value = match serde_json::from_str(&reply.body) {
        Ok(answer) => answer,
        Err(_) if reply.status != 200 => {
            return Next::bad(
                format!("https response error StatusCode: {}", reply.status),
                EXPECTED,
            );
        }
        Err(error) => return Next::bad(format!("deserialization failed: {error}"), EXPECTED),
    };
    if reply.status != 200 {
        let text = |field: &str| answer[field].as_str().unwrap_or_default();
        let kind = text("__type").rsplit('#').next().unwrap_or_default();
        let message = if text("message").is_empty() { text("Message") } else { text("message") };
        let message =
            format!("https response error StatusCode: {}, {kind}: {message}", reply.status);
        return Next::bad(message, EXPECTED);
    }
    let results = answer["MetricDataResults"].as_array().map_or(&[][..], Vec::as_slice);
    let results: Vec<Value> = results.iter().map(result).collect();
    let text: Vec<String> = results.iter().map(printed).collect();
    let text = format!("[{}]", text.join(" "));
    let mut metadata = TextMap::new();
    let messages = answer["Messages"].as_array().map_or(&[][..], Vec::as_slice);
    if !messages.is_empty() {
        metadata.insert("messages".to_owned(), Value::from(messages).to_string());
    }
    Next::Done(Reading::Value { result: MetricValue::List(results), text, metadata })
}

/// A result with all fields that expressions may name.
fn result(found: &Value) -> Value {
    let list = |field: &str| match &found[field] {
        Value::Null => json!([]),
        value => floats(value.clone()),
    };
    json!({
        "Id": found["Id"], "Label": found["Label"], "StatusCode": found["StatusCode"],
        "Timestamps": list("Timestamps"), "Values": list("Values"), "Messages": list("Messages"),
    })
}

/// The values as Go prints a list of numbers.
fn printed(result: &Value) -> String {
    let values = result["Values"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<String> =
        values.iter().map(|value| go_number(value.as_f64().unwrap_or(f64::NAN))).collect();
    format!("[{}]", texts.join(" "))
}
