//! Configuration of each metric provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::crd::kubernetes;
use crate::rollout::Metadata;
use crate::schema::{free_form_object, with};
use crate::values::IntOrString;
use crate::view::view;

view! {
    /// Who measures; exactly one.
    pub struct MetricProvider {
        /// A query to Prometheus.
        prometheus: Option<Box<PrometheusMetric>>,
        /// A judgement by Kayenta.
        kayenta: Option<Box<KayentaMetric>>,
        /// Any HTTP endpoint.
        web: Option<Box<WebMetric>>,
        /// A query to Datadog.
        datadog: Option<Box<DatadogMetric>>,
        /// A query to Wavefront.
        wavefront: Option<Box<WavefrontMetric>>,
        /// A query to New Relic.
        new_relic: Option<Box<NewRelicMetric>>,
        /// A Job whose end is the verdict.
        job: Option<Box<JobMetric>>,
        /// A query to CloudWatch.
        cloud_watch: Option<Box<CloudWatchMetric>>,
        /// A query to Graphite.
        graphite: Option<Box<GraphiteMetric>>,
        /// A query to InfluxDB.
        influxdb: Option<Box<InfluxdbMetric>>,
        /// A query to SkyWalking.
        skywalking: Option<Box<SkyWalkingMetric>>,
        /// A plugin by its name, with its own configuration.
        plugin: BTreeMap<String, Arc<Value>> => free_form_object(),
    }

    /// A query to Prometheus.
    pub struct PrometheusMetric {
        /// Where it is; empty means as the environment says.
        address: String,
        /// The query.
        query: String,
        /// How to log in.
        authentication: Authentication,
        /// Seconds to wait; missing means 30.
        timeout: Option<i64>,
        /// Whether any certificate will do.
        insecure: bool,
        /// Headers to send.
        headers: Vec<HttpHeader>,
        /// Asks about a span of time instead of now.
        range_query: Option<RangeQuery>,
    }

    /// The span of time a query is about; each an expression.
    pub struct RangeQuery {
        /// Its start.
        start: String,
        /// Its end.
        end: String,
        /// The distance of its points.
        step: String,
    }

    /// How to log in.
    pub struct Authentication {
        /// A signature of AWS.
        sigv4: SigV4,
        /// Client credentials.
        oauth2: OAuth2,
        /// A user and a password.
        basic_auth: BasicAuth,
    }

    /// A signature of AWS.
    pub struct SigV4 {
        /// The region.
        region: String,
        /// The profile.
        profile: String,
        /// The role.
        role_arn: String,
    }

    /// Client credentials.
    pub struct OAuth2 {
        /// Where tokens are issued.
        token_url: String,
        /// Who asks.
        client_id: String,
        /// What only they know.
        client_secret: String,
        /// What for.
        scopes: Vec<String>,
    }

    /// A user and a password.
    pub struct BasicAuth {
        /// The user.
        username: String,
        /// The password.
        password: String,
    }

    /// A header of a request.
    pub struct HttpHeader {
        /// Its name.
        required key: String,
        /// Its value.
        required value: String,
    }

    /// Any HTTP endpoint.
    pub struct WebMetric {
        /// GET, POST or PUT; empty means GET.
        method: String,
        /// Where.
        required url: String,
        /// Headers to send.
        headers: Vec<HttpHeader>,
        /// The body to send, as text.
        body: String,
        /// The body to send, as JSON.
        json_body: Option<Arc<Value>> => free_form_object(),
        /// Seconds to wait; 0 means 10.
        timeout_seconds: i64,
        /// What to take of the answer; empty means all.
        json_path: String,
        /// Whether any certificate will do.
        insecure: bool,
        /// How to log in.
        authentication: Authentication,
    }

    /// A query to Datadog.
    pub struct DatadogMetric {
        /// How far back.
        interval: String => with(String::schema(), json!({ "default": "5m" })),
        /// The query.
        query: String,
        /// Several queries by name, for the formula.
        queries: BTreeMap<String, String>,
        /// What to compute from the queries.
        formula: String,
        /// Which of Datadog's APIs.
        api_version: String =>
            with(String::schema(), json!({ "default": "v1", "enum": ["v1", "v2"] })),
        /// What to make of several points.
        aggregator: String => with(String::schema(), json!({ "enum": AGGREGATORS })),
        /// Where the credentials are.
        secret_ref: DatadogSecretRef,
        /// How long to wait.
        request_timeout: String => with(String::schema(), json!({ "default": "10s" })),
    }

    /// Where Datadog's credentials are.
    pub struct DatadogSecretRef {
        /// The Secret.
        name: String,
        /// Whether it is in the run's namespace.
        namespaced: bool,
    }

    /// A query to New Relic.
    pub struct NewRelicMetric {
        /// The Secret with the account; empty means `newrelic`.
        profile: String,
        /// The query.
        required query: String,
        /// Seconds to wait; missing means 5.
        timeout: Option<i64>,
    }

    /// A query to Wavefront.
    pub struct WavefrontMetric {
        /// Where it is.
        address: String,
        /// The query.
        query: String,
    }

    /// A query to Graphite.
    pub struct GraphiteMetric {
        /// Where it is.
        address: String,
        /// The query.
        query: String,
    }

    /// A query to InfluxDB.
    pub struct InfluxdbMetric {
        /// The Secret with the account; empty means `influxdb`.
        profile: String,
        /// The query.
        query: String,
    }

    /// A query to SkyWalking.
    pub struct SkyWalkingMetric {
        /// Where it is.
        address: String,
        /// The query.
        query: String,
        /// How far back.
        interval: String,
    }

    /// A query to CloudWatch.
    pub struct CloudWatchMetric {
        /// How far back; empty means 5 minutes.
        interval: String,
        /// The queries.
        required metric_data_queries: Vec<CloudWatchQuery>,
    }

    /// One query to CloudWatch.
    pub struct CloudWatchQuery {
        /// Its name.
        id: String,
        /// What to compute.
        expression: Option<String>,
        /// Its title.
        label: Option<String>,
        /// What to read.
        metric_stat: Option<CloudWatchStat>,
        /// Seconds per point.
        period: Option<IntOrString>,
        /// Whether it is part of the answer.
        return_data: Option<bool>,
    }

    /// A statistic of a metric of CloudWatch.
    pub struct CloudWatchStat {
        /// The metric.
        always metric: CloudWatchStatMetric,
        /// Seconds per point.
        always period: IntOrString,
        /// The statistic.
        stat: String,
        /// The unit.
        unit: String,
    }

    /// A metric of CloudWatch.
    pub struct CloudWatchStatMetric {
        /// Its dimensions.
        dimensions: Vec<CloudWatchDimension>,
        /// Its name.
        metric_name: String,
        /// Its namespace.
        namespace: Option<String>,
    }

    /// A dimension of a metric of CloudWatch.
    pub struct CloudWatchDimension {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    }

    /// A judgement by Kayenta.
    pub struct KayentaMetric {
        /// Where it is.
        required address: String,
        /// The application.
        required application: String,
        /// Name of the canary configuration.
        required canary_config_name: String,
        /// Account of the metrics.
        required metrics_account_name: String,
        /// Account of the configuration.
        required configuration_account_name: String,
        /// Account of the storage.
        required storage_account_name: String,
        /// Which scores pass.
        required threshold: KayentaThreshold,
        /// What is compared.
        required scopes: Vec<KayentaScope>,
        /// Whether it looks back to the start of the run.
        lookback: bool,
    }

    /// Which scores of Kayenta pass.
    pub struct KayentaThreshold {
        /// From here on good.
        required pass: i64,
        /// From here on undecided.
        required marginal: i64,
    }

    /// What Kayenta compares.
    pub struct KayentaScope {
        /// Its name.
        required name: String,
        /// The one side.
        required control_scope: KayentaScopeDetail,
        /// The other side.
        required experiment_scope: KayentaScopeDetail,
    }

    /// One side of what Kayenta compares.
    pub struct KayentaScopeDetail {
        /// Its name.
        required scope: String,
        /// Its region.
        required region: String,
        /// Seconds per point.
        required step: i64,
        /// When it starts; empty means as `lookback` says.
        start: String,
        /// When it ends; empty means now.
        end: String,
    }

    /// A Job whose end is the verdict.
    pub struct JobMetric {
        /// Labels and annotations of the Job.
        always metadata: Metadata,
        /// The Job.
        required spec: Arc<Value> => kubernetes::job(),
    }
}

const AGGREGATORS: [&str; 9] =
    ["avg", "min", "max", "sum", "last", "percentile", "mean", "l2norm", "area"];
