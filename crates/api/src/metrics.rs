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
        /// Runs a PromQL query on Prometheus or a server with its API. Exactly one provider is
        /// required.
        prometheus: Option<Box<PrometheusMetric>>,
        /// Runs a canary analysis by Kayenta, whose score decides. Exactly one provider is
        /// required.
        kayenta: Option<Box<KayentaMetric>>,
        /// Sends an HTTP request and takes a value from the JSON of the answer. Exactly one
        /// provider is required.
        web: Option<Box<WebMetric>>,
        /// Runs a query on Datadog. Exactly one provider is required.
        datadog: Option<Box<DatadogMetric>>,
        /// Runs a query on Wavefront. Exactly one provider is required.
        wavefront: Option<Box<WavefrontMetric>>,
        /// Runs an NRQL query on New Relic. Exactly one provider is required.
        new_relic: Option<Box<NewRelicMetric>>,
        /// Runs a Kubernetes Job; the measurement is Successful if the Job completes and Failed if
        /// it fails. Exactly one provider is required.
        job: Option<Box<JobMetric>>,
        /// Runs queries on Amazon CloudWatch. Exactly one provider is required.
        cloud_watch: Option<Box<CloudWatchMetric>>,
        /// Runs a query on Graphite. Exactly one provider is required.
        graphite: Option<Box<GraphiteMetric>>,
        /// Runs a Flux query on InfluxDB. Exactly one provider is required.
        influxdb: Option<Box<InfluxdbMetric>>,
        /// Runs a GraphQL query on Apache SkyWalking. Exactly one provider is required.
        skywalking: Option<Box<SkyWalkingMetric>>,
        /// Calls a metric plugin: its name, with the configuration that it documents. Exactly one
        /// provider is required.
        plugin: BTreeMap<String, Arc<Value>> => free_form_object(),
    }

    /// A query to Prometheus.
    pub struct PrometheusMetric {
        /// URL of the server, with scheme and host. Default: the environment variable
        /// `ARGO_ROLLOUTS_PROMETHEUS_ADDRESS` of the controller.
        address: String,
        /// PromQL query, in which arguments are substituted as `{{args.NAME}}`. Required.
        query: String,
        /// Credentials for the server. Default: none.
        authentication: Authentication,
        /// Seconds to wait for the answer, 0 or more. Default: 30.
        timeout: Option<i64>,
        /// Accepts any TLS certificate of the server. Default: false.
        insecure: bool,
        /// HTTP headers to send with the request. Default: none.
        headers: Vec<HttpHeader>,
        /// Runs a range query over this span of time. Default: none, an instant query.
        range_query: Option<RangeQuery>,
    }

    /// The span of time a query is about; each an expression.
    pub struct RangeQuery {
        /// Start of the span, an expression that yields a time, for example `now() -
        /// duration('5m')`. Required.
        start: String,
        /// End of the span, an expression that yields a time, for example `now()`. Required.
        end: String,
        /// Time between two points, as a duration such as `1m`. Required.
        step: String,
    }

    /// How to log in.
    pub struct Authentication {
        /// Signs requests with AWS Signature Version 4, for Amazon Managed Service for Prometheus.
        /// Default: not used.
        sigv4: SigV4,
        /// Gets a token by OAuth 2.0 client credentials and sends it with the request. Default: not
        /// used.
        oauth2: OAuth2,
        /// Sends a user name and a password by HTTP Basic authentication. Default: not used.
        basic_auth: BasicAuth,
    }

    /// A signature of AWS.
    pub struct SigV4 {
        /// AWS region of the workspace, for example `eu-central-1`. Default: the region of the
        /// controller's environment.
        region: String,
        /// Profile of the shared AWS configuration to take credentials from. Default: the default
        /// credential chain.
        profile: String,
        /// ARN of the IAM role to assume. Default: none.
        role_arn: String,
    }

    /// Client credentials.
    pub struct OAuth2 {
        /// URL of the token endpoint. Required with `oauth2`.
        token_url: String,
        /// Client identifier at the token endpoint. Required with `tokenUrl`.
        client_id: String,
        /// Client secret at the token endpoint. Use an argument from a Secret, as `{{args.NAME}}`.
        /// Required with `tokenUrl`.
        client_secret: String,
        /// OAuth 2.0 scopes to request. Default: none.
        scopes: Vec<String>,
    }

    /// A user and a password.
    pub struct BasicAuth {
        /// User name. Required with `basicAuth`.
        username: String,
        /// Password of the user. Use an argument from a Secret, as `{{args.NAME}}`. Required with
        /// `basicAuth`.
        password: String,
    }

    /// A header of a request.
    pub struct HttpHeader {
        /// Name of the HTTP header. Required.
        required key: String,
        /// Value of the HTTP header, in which arguments are substituted as `{{args.NAME}}`.
        /// Required.
        required value: String,
    }

    /// Any HTTP endpoint.
    pub struct WebMetric {
        /// HTTP method of the request. Allowed: `GET`, `POST`, `PUT`. Default: `GET`.
        method: String,
        /// URL of the request, in which arguments are substituted as `{{args.NAME}}`. Required.
        required url: String,
        /// HTTP headers to send with the request. Default: none.
        headers: Vec<HttpHeader>,
        /// Body of the request, as text. Only with POST or PUT, and not with `jsonBody`. Default:
        /// none.
        body: String,
        /// Body of the request, as JSON, sent as `application/json`. Only with POST or PUT, and not
        /// with `body`. Default: none.
        json_body: Option<Arc<Value>> => free_form_object(),
        /// Seconds to wait for the answer; 0 or less means 10. Default: 10.
        timeout_seconds: i64,
        /// JSONPath, in braces, of the value in the answer that becomes `result`, for example
        /// `{$.data.ok}`. Default: `{$}`, the whole answer.
        json_path: String,
        /// Accepts any TLS certificate of the server. Default: false.
        insecure: bool,
        /// Credentials for the server; only `oauth2` is used. Default: none.
        authentication: Authentication,
    }

    /// A query to Datadog.
    pub struct DatadogMetric {
        /// Span of time before now that the query is about, as a duration such as `5m`. Default:
        /// `5m`.
        interval: String => with(String::schema(), json!({ "default": "5m" })),
        /// Datadog query. Exactly one of `query` and `queries` is required; API version `v1`
        /// supports only `query`.
        query: String,
        /// Datadog queries by name, for `formula`. Only with API version `v2`. Exactly one of
        /// `query` and `queries` is required.
        queries: BTreeMap<String, String>,
        /// Formula over the names of `queries`. Required with more than one query. Default: none.
        formula: String,
        /// Version of the Datadog API. Allowed: `v1`, `v2`. Default: `v1`.
        api_version: String =>
            with(String::schema(), json!({ "default": "v1", "enum": ["v1", "v2"] })),
        /// Function that turns the points of a query into one value, only with API version `v2`.
        /// Allowed: `avg`, `min`, `max`, `sum`, `last`, `percentile`, `mean`, `l2norm`, `area`.
        /// Default: `last`.
        aggregator: String => with(String::schema(), json!({ "enum": AGGREGATORS })),
        /// Secret with the keys `api-key`, `app-key` and `address`. Default: the environment of the
        /// controller, then the Secret `datadog` in its namespace.
        secret_ref: DatadogSecretRef,
        /// Time to wait for the answer, as a duration such as `30s`. Default: `10s`.
        request_timeout: String => with(String::schema(), json!({ "default": "10s" })),
    }

    /// Where Datadog's credentials are.
    pub struct DatadogSecretRef {
        /// Name of the Secret. Required if `namespaced` is true. Default: `datadog`.
        name: String,
        /// True if the Secret is in the namespace of the AnalysisRun. Default: false, it is in the
        /// controller's.
        namespaced: bool,
    }

    /// A query to New Relic.
    pub struct NewRelicMetric {
        /// Name of the Secret, in the controller's namespace, with the keys `personal-api-key` and
        /// `account-id`. Default: `newrelic`.
        profile: String,
        /// NRQL query, in which arguments are substituted as `{{args.NAME}}`. Required.
        required query: String,
        /// Seconds that New Relic may take for the query, 0 or more. Default: 5.
        timeout: Option<i64>,
    }

    /// A query to Wavefront.
    pub struct WavefrontMetric {
        /// Host name of the Wavefront server. The Secret `wavefront-api-tokens` in the controller's
        /// namespace has its token under this key. Required.
        address: String,
        /// Wavefront query, in which arguments are substituted as `{{args.NAME}}`. Required.
        query: String,
    }

    /// A query to Graphite.
    pub struct GraphiteMetric {
        /// URL of the Graphite server. Required.
        address: String,
        /// Parameters of the render call, for example `target=stats.errors&from=-5min`. Arguments
        /// are substituted as `{{args.NAME}}`. Required.
        query: String,
    }

    /// A query to InfluxDB.
    pub struct InfluxdbMetric {
        /// Name of the Secret, in the controller's namespace, with the keys `address`, `authToken`
        /// and `org`. Default: `influxdb`.
        profile: String,
        /// Flux query, in which arguments are substituted as `{{args.NAME}}`. Required.
        query: String,
    }

    /// A query to SkyWalking.
    pub struct SkyWalkingMetric {
        /// URL of the SkyWalking server. Required.
        address: String,
        /// GraphQL query with a variable `duration`. Arguments are substituted as `{{args.NAME}}`.
        /// Required.
        query: String,
        /// Span of time before now that the query is about, as a duration such as `5m`. Required.
        interval: String,
    }

    /// A query to CloudWatch.
    pub struct CloudWatchMetric {
        /// Span of time before now that the queries are about, as a duration such as `5m`. Default:
        /// `5m`.
        interval: String,
        /// Queries of one GetMetricData request, at least one. Required.
        required metric_data_queries: Vec<CloudWatchQuery>,
    }

    /// One query to CloudWatch.
    pub struct CloudWatchQuery {
        /// Identifier of the query, by which expressions refer to it. Required.
        id: String,
        /// Metric math expression over the identifiers of other queries. Default: none,
        /// `metricStat` is read.
        expression: Option<String>,
        /// Label of the query in the result. Default: chosen by CloudWatch.
        label: Option<String>,
        /// Metric and statistic to read. Default: none, `expression` is computed.
        metric_stat: Option<CloudWatchStat>,
        /// Seconds that one point of an expression stands for. Default: chosen by CloudWatch.
        period: Option<IntOrString>,
        /// False for a query that is only used in expressions. Default: true.
        return_data: Option<bool>,
    }

    /// A statistic of a metric of CloudWatch.
    pub struct CloudWatchStat {
        /// CloudWatch metric to read. Required.
        always metric: CloudWatchStatMetric,
        /// Seconds that one point stands for, for example 60. Required.
        always period: IntOrString,
        /// Statistic of the points, for example `Average`, `Sum` or `p99`. Required.
        stat: String,
        /// CloudWatch unit that the points must have, for example `Count` or `Seconds`. Default:
        /// any unit.
        unit: String,
    }

    /// A metric of CloudWatch.
    pub struct CloudWatchStatMetric {
        /// Dimensions that identify the metric. Default: none.
        dimensions: Vec<CloudWatchDimension>,
        /// Name of the CloudWatch metric. Required.
        metric_name: String,
        /// CloudWatch namespace of the metric, for example `AWS/ApplicationELB`. Default: none.
        namespace: Option<String>,
    }

    /// A dimension of a metric of CloudWatch.
    pub struct CloudWatchDimension {
        /// Name of the dimension. Required.
        name: String,
        /// Value that the dimension must have. Required.
        value: String,
    }

    /// A judgement by Kayenta.
    pub struct KayentaMetric {
        /// URL of the Kayenta server. Required.
        required address: String,
        /// Application that the canary configuration belongs to. Required.
        required application: String,
        /// Name of the canary configuration in Kayenta. Required.
        required canary_config_name: String,
        /// Kayenta account that metrics are read with. Required.
        required metrics_account_name: String,
        /// Kayenta account that the configuration is read with. Required.
        required configuration_account_name: String,
        /// Kayenta account that results are stored with. Required.
        required storage_account_name: String,
        /// Scores that decide about the measurement. Required.
        required threshold: KayentaThreshold,
        /// Pairs of groups that are compared, at least one. Required.
        required scopes: Vec<KayentaScope>,
        /// Compares from the start of the AnalysisRun on, where scopes set no start. Default:
        /// false, from one `interval` ago on.
        lookback: bool,
    }

    /// Which scores of Kayenta pass.
    pub struct KayentaThreshold {
        /// Lowest score, 0 to 100, that makes the measurement Successful. Required.
        required pass: i64,
        /// Lowest score, 0 to 100, that makes the measurement Inconclusive instead of Failed.
        /// Required.
        required marginal: i64,
    }

    /// What Kayenta compares.
    pub struct KayentaScope {
        /// Name of the scope in the canary configuration. Required.
        required name: String,
        /// Group that is compared with, usually the stable revision. Required.
        required control_scope: KayentaScopeDetail,
        /// Group that is judged, usually the new revision. Required.
        required experiment_scope: KayentaScopeDetail,
    }

    /// One side of what Kayenta compares.
    pub struct KayentaScopeDetail {
        /// Identifier of the group in the metrics store. Required.
        required scope: String,
        /// Region or location of the group in the metrics store. Required.
        required region: String,
        /// Seconds between two points. Required.
        required step: i64,
        /// Start of the span as a time in RFC 3339 format. Set on both sides or on neither.
        /// Default: as `lookback` says.
        start: String,
        /// End of the span as a time in RFC 3339 format. Set on both sides or on neither. Default:
        /// now.
        end: String,
    }

    /// A Job whose end is the verdict.
    pub struct JobMetric {
        /// Labels and annotations to add to the Job. Required, may be empty.
        always metadata: Metadata,
        /// Spec of the Job, as `kubectl explain job.spec` documents it. Arguments are substituted
        /// as `{{args.NAME}}`. Required.
        required spec: Arc<Value> => kubernetes::job(),
    }
}

const AGGREGATORS: [&str; 9] =
    ["avg", "min", "max", "sum", "last", "percentile", "mean", "l2norm", "area"];
