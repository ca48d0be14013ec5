//! Prometheus, web, Kayenta and CloudWatch.

use super::*;
use crate::ask::http::Auth;

fn request(provider: &Value, replies: &[HttpOutcome]) -> HttpRequest {
    match called(provider, Call::Run, replies) {
        Next::Send(request, _) => *request,
        next => panic!("a request: {next:?}"),
    }
}

#[test]
fn prometheus_is_asked_by_post_and_by_get_where_that_is_refused() {
    let of = |spec: Value| json!({ "prometheus": spec });
    let plain = of(json!({ "address": "http://p:9090/prom/", "query": "sum(a) > 1" }));
    let post = "POST http://p:9090/prom/api/v1/query query=sum%28a%29+%3E+1&time=1704067201.5";
    let get = "GET http://p:9090/prom/api/v1/query?query=sum%28a%29+%3E+1&time=1704067201.5";
    assert_eq!(after(&plain, &[]), post);
    for status in [405, 501] {
        assert_eq!(after(&plain, &[said(status, "")]), get);
    }
    let with_query = of(json!({ "address": "http://p?x=1", "query": "q" }));
    let expected = "POST http://p/api/v1/query?x=1 query=q&time=1704067201.5&x=1";
    assert_eq!(after(&with_query, &[]), expected);
    let secret = of(json!({ "address": "http://p", "query": marker("s", "q") }));
    let expected = "POST http://p/api/v1/query query=<Secret s, key q>&time=1704067201.5";
    assert_eq!(after(&secret, &[]), expected);
    assert_eq!(request(&plain, &[]).timeout, seconds(30));
    let nobody = of(json!({ "query": "q" }));
    let address = "<variable ARGO_ROLLOUTS_PROMETHEUS_ADDRESS>";
    assert_eq!(request(&nobody, &[]).url.to_string(), format!("{address}/api/v1/query"));
}

#[test]
fn prometheus_logs_in_as_the_metric_says() {
    let of = |address: &str, auth: Value| {
        let spec = json!({ "address": address, "query": "q", "authentication": auth });
        request(&json!({ "prometheus": spec }), &[]).auth
    };
    let (plain, aws) = ("http://p", "https://aps-workspaces.eu.amazonaws.com/workspaces/w");
    assert_eq!(of(plain, json!({})), Auth::None);
    let basic = json!({ "basicAuth": { "username": "u", "password": "p" } });
    assert_eq!(of(plain, basic), Auth::Basic { user: "u".into(), password: "p".into() });
    let signed = json!({ "sigv4": { "region": "eu" } });
    assert!(matches!(of(aws, signed.clone()), Auth::SigV4 { region, .. } if region == "eu".into()));
    assert_eq!(of(plain, signed), Auth::None, "only Amazon's own service is signed for");
    let token = json!({ "oauth2": { "tokenUrl": "http://t", "clientId": "i",
        "clientSecret": marker("s", "k"), "scopes": ["a", "b"] } });
    let Auth::OAuth2 { client_secret, scopes, .. } = of(plain, token) else { panic!("OAuth2") };
    assert_eq!((client_secret.to_string(), scopes.len()), ("<Secret s, key k>".to_owned(), 2));
}

#[test]
fn a_wrong_prometheus_metric_is_not_sent() {
    let rows = [
        (json!({ "address": "p:9090" }), "prometheus address is not is url format"),
        (json!({ "address": "http:///x" }), "prometheus address is not is url format"),
        (
            json!({ "address": "http://p", "timeout": -1 }),
            "prometheus timeout should not be negative",
        ),
        (
            json!({ "address": "http://p", "authentication": { "basicAuth": { "username": "u" } } }),
            "missing mandatory parameter in metric for basic auth setup: password",
        ),
        (
            json!({ "address": "http://p", "authentication": { "basicAuth": { "password": "u" } } }),
            "missing mandatory parameter in metric for basic auth setup: username",
        ),
        (
            json!({ "address": "http://p", "authentication": { "oauth2": { "tokenUrl": "u" } } }),
            "missing mandatory parameter in metric for OAuth2 setup",
        ),
        (
            json!({ "address": "http://p", "rangeQuery": { "start": "now()", "end": "now()", "step": "x" } }),
            "failed to parse rangeQuery.step as duration: time: invalid duration \"x\"",
        ),
        (
            json!({ "address": "http://p", "rangeQuery": { "start": "7", "end": "now()", "step": "1m" } }),
            "failed to parse rangeQuery.start as time: expected time.Time, but got int",
        ),
    ];
    for (spec, expected) in rows {
        assert_eq!(after(&json!({ "prometheus": spec }), &[]), format!("! {expected}"), "{spec}");
    }
}

#[test]
fn a_range_of_prometheus_has_a_start_an_end_and_a_step() {
    let spec = json!({ "prometheus": { "address": "http://p", "query": "q", "rangeQuery":
        { "start": "now() - duration(\"1h\")", "end": "now()", "step": "1m30s" } } });
    let expected = "POST http://p/api/v1/query_range end=1704067201.5&query=q&start=1704063601.5\
                    &step=90";
    assert_eq!(after(&spec, &[]), expected);
    let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[
        {"values":[[1,"1"],[2,"2.5"]]},{"values":[[1,"NaN"]]}]}}"#;
    assert_eq!(after(&spec, &[said(200, matrix)]), "= [1,2.5,NaN]");
}

#[test]
fn answers_of_prometheus_become_numbers() {
    let answer = |data: &str| format!(r#"{{"status":"success","data":{data}}}"#);
    let scalar = answer(r#"{"resultType":"scalar","result":[1,"1e3"]}"#);
    let vector = r#"{"resultType":"vector","result":[{"metric":{},"value":[1,"0.5"]},{"metric":{},"value":[1,"+Inf"]}]}"#;
    let warned = format!(r#"{{"status":"success","warnings":["slow","old"],"data":{vector}}}"#);
    let spec = json!({ "prometheus": { "address": "http://p", "query": "q" } });
    table(
        &spec,
        &[
            (200, &scalar, "= 1000"),
            (200, &answer(vector), "= [0.5,+Inf]"),
            (200, &warned, "= [0.5,+Inf] warnings=\"slow\", \"old\""),
            (200, &answer(r#"{"resultType":"vector","result":[]}"#), "= []"),
            (
                200,
                &answer(r#"{"resultType":"string","result":[1,"x"]}"#),
                "! bad_response: unexpected value type \"string\"",
            ),
            (
                200,
                &answer(r#"{"resultType":"scalar","result":[1,"x"]}"#),
                "! bad_response: invalid number \"x\" in a sample",
            ),
            (200, "no JSON", "! bad_response: expected ident at line 1 column 2"),
            (
                400,
                r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
                "! bad_data: parse error",
            ),
            (
                422,
                r#"{"status":"error","errorType":"execution","error":"too many"}"#,
                "! execution: too many",
            ),
            (404, "<html>", "! client_error: client error: 404"),
            (503, "", "! server_error: server error: 503"),
            (302, "", "! bad_response: bad response code 302"),
        ],
    );
    let metric = metric(spec);
    let (now, run, jobs, replies, said) = (now(), run(), BTreeMap::new(), &[], &[]);
    let seen = Observed {
        now,
        run: &run,
        number: 1,
        replies,
        said,
        jobs: &jobs,
        refused: None,
        pods: None,
    };
    let metadata = provider(&metric).unwrap().metadata(&seen);
    assert_eq!(metadata["ResolvedPrometheusQuery"], "q");
}

#[test]
fn the_web_is_asked_with_every_method_and_body() {
    let of = |spec: Value| json!({ "web": spec });
    let url = "http://w/x?a=1";
    assert_eq!(after(&of(json!({ "url": url })), &[]), "GET http://w/x?a=1");
    let rows = [
        (json!({ "method": "POST" }), "acts: POST http://w/x?a=1"),
        (json!({ "method": "PUT", "body": "a b" }), "acts: PUT http://w/x?a=1 a b"),
        (
            json!({ "method": "POST", "jsonBody": { "k": ["v", 1] } }),
            "acts: POST http://w/x?a=1 {\"k\":[\"v\",1]}",
        ),
        (
            json!({ "body": "x" }),
            "! Body/JSONBody can only be used with POST or PUT WebMetric Method types",
        ),
        (
            json!({ "method": "POST", "body": "x", "jsonBody": {} }),
            "! use either Body or JSONBody; both cannot exists for WebMetric payload",
        ),
        (json!({ "method": "DELETE" }), "! unsupported method \"DELETE\": use GET, POST or PUT"),
    ];
    for (mut spec, expected) in rows {
        spec["url"] = json!(url);
        assert_eq!(after(&of(spec.clone()), &[]), expected, "{spec}");
    }
    let spec = of(json!({ "url": url, "method": "POST", "jsonBody": { "t": marker("s", "k") },
        "headers": [{ "key": "content-type", "value": "x" }, { "key": "A", "value": "b" }],
        "timeoutSeconds": 3, "insecure": true }));
    let sent = request(&spec, &[]);
    assert_eq!(sent.timeout, seconds(3));
    assert!(sent.tls.insecure);
    assert_eq!(sent.body.as_ref().unwrap().to_string(), "{\"t\":\"<Secret s, key k>\"}");
    let mut quoted = |_: &_| Ok(Some("a\"b".to_owned()));
    let resolved = sent.body.unwrap().resolve(&mut quoted).unwrap();
    assert_eq!(resolved, "{\"t\":\"a\\\"b\"}", "a secret cannot break out of its text");
    let headers: Vec<String> =
        sent.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(headers, ["A: b", "Content-Type: application/json"]);
}

#[test]
fn answers_of_the_web_become_the_value_at_the_path() {
    let at = |path: &str| json!({ "web": { "url": "http://w", "jsonPath": path } });
    table(
        &at(""),
        &[
            (200, r#"{"b":1,"a":"<x>"}"#, "= {\"a\":\"\\u003cx\\u003e\",\"b\":1}"),
            (200, "null", "nil null"),
            (200, "", "= "),
            (204, "", "= "),
            (200, "plain text", "= plain text"),
            (200, "{} and more", "= {} and more"),
            (201, "7", "= 7"),
            (301, "", "! received non 2xx response code: 301"),
            (500, "7", "! received non 2xx response code: 500"),
        ],
    );
    table(
        &at("{$.a.b}"),
        &[
            (200, r#"{"a":{"b":12345678901234567890}}"#, "= 12345678901234567000"),
            (200, r#"{"a":{"b":null}}"#, "nil null"),
            (200, r#"{"a":{}}"#, "! Could not find JSONPath in body: b is not found"),
            (200, "not JSON", "= not JSON"),
        ],
    );
    table(
        &at("{$.a[0]}"),
        &[
            (
                200,
                r#"{"a":[]}"#,
                "! Could not find JSONPath in body: array index out of bounds: index 0, length 0",
            ),
            (200, r#"{"a":["x"]}"#, "= \"x\""),
        ],
    );
    table(&at("$.a"), &[(200, r#"{"a":1}"#, "= \"$.a\"")]);
    assert_eq!(after(&at("{$.a"), &[]), "! unclosed action", "nothing is sent");
}

fn kayenta() -> Value {
    let scope = |scope: &str| json!({ "scope": scope, "region": "eu", "step": 60 });
    json!({ "kayenta": {
        "address": "http://k", "application": "app", "canaryConfigName": "conf",
        "metricsAccountName": "m", "configurationAccountName": "c", "storageAccountName": "s",
        "threshold": { "pass": 90, "marginal": 75 },
        "scopes": [{ "name": "default", "controlScope": scope("base"),
            "experimentScope": scope("new") }],
    } })
}

#[test]
fn kayenta_is_started_once_and_looked_at_until_it_is_complete() {
    let list = said(200, r#"[{"name":"other","id":"1"},{"name":"conf","id":"2"}]"#);
    let expected = "GET http://k/canaryConfig?application=app&configurationAccountName=s";
    assert_eq!(after(&kayenta(), &[]), expected);
    let expected = "acts: POST http://k/canary/2?application=app&metricsAccountName=m\
        &configurationAccountName=c&storageAccountName=s {\"scopes\":{\"default\":{\"controlScope\":\
        {\"end\":\"2024-01-01T00:00:01Z\",\"location\":\"eu\",\"scope\":\"base\",\"start\":\
        \"2023-12-31T23:59:01Z\",\"step\":60},\"experimentScope\":{\"end\":\"2024-01-01T00:00:01Z\",\
        \"location\":\"eu\",\"scope\":\"new\",\"start\":\"2023-12-31T23:59:01Z\",\"step\":60}}},\
        \"thresholds\":{\"marginal\":75,\"pass\":90}}";
    assert_eq!(after(&kayenta(), std::slice::from_ref(&list)), expected);
    let rows = [
        (
            said(200, r#"{"canaryExecutionId":"e1"}"#),
            "until 2024-01-01T00:00:16.5Z canaryExecutionId=e1",
        ),
        (said(200, "{}"), "until 2024-01-01T00:00:16.5Z canaryExecutionId=<nil>"),
        (said(500, ""), "! Invalid Response"),
    ];
    for (second, expected) in rows {
        let found = after(&kayenta(), &[list.clone(), second]);
        assert_eq!(found.split(" (").next(), Some(expected));
    }
    table(
        &kayenta(),
        &[(200, "[]", "! Canary config not found"), (503, "", "! Invalid Response: HTTP 503")],
    );
}

#[test]
fn the_score_of_kayenta_is_the_verdict() {
    let measurement: Measurement = serde_json::from_value(json!({ "phase": "Running",
        "metadata": { "canaryExecutionId": "e1" } }))
    .unwrap();
    let resume = Call::Resume(&measurement);
    assert_eq!(told(&called(&kayenta(), resume, &[])), "GET http://k/canary/e1");
    let score = |score: &str| {
        said(200, &format!(r#"{{"complete":true,"result":{{"judgeResult":{{"score":{score}}}}}}}"#))
    };
    let rows = [
        (said(200, r#"{"complete":false}"#), "until 2024-01-01T00:00:16.5Z canaryExecutionId=e1"),
        (said(200, "{}"), "! Missing Complete Status"),
        (said(404, ""), "! Invalid Response"),
        (score("{}"), "! Missing Score"),
        (score(r#"{"score":90.9}"#), "Successful 90 canaryExecutionId=e1"),
        (score(r#"{"score":75}"#), "Inconclusive 75 canaryExecutionId=e1"),
        (score(r#"{"score":74.9}"#), "Failed 74 canaryExecutionId=e1"),
    ];
    for (reply, expected) in rows {
        let found = told(&called(&kayenta(), resume, &[reply]));
        assert_eq!(found.split(" (").next(), Some(expected));
    }
    let ended = called(&kayenta(), Call::Terminate(&measurement), &[]);
    assert_eq!(told(&ended), "Inconclusive  canaryExecutionId=e1", "nobody waits for it any more");
    let mut spec = kayenta();
    spec["kayenta"]["scopes"][0]["controlScope"]["start"] = json!("2024-01-01T00:00:00Z");
    let list = said(200, r#"[{"name":"conf","id":"2"}]"#);
    let expected = "! controlScope.start and experimentScope.start must both be set or be empty";
    assert_eq!(after(&spec, &[list]), expected);
}

#[test]
fn cloudwatch_is_asked_for_one_page() {
    let spec = json!({ "cloudWatch": { "metricDataQueries": [
        { "id": "rate", "expression": "a / b" },
        { "id": "a", "returnData": false, "metricStat": { "metric": { "namespace": "ns",
            "metricName": "errors", "dimensions": [{ "name": "n", "value": "v" }] },
            "period": "300", "stat": "Sum", "unit": "None" } },
    ] } });
    let sent = request(&spec, &[]);
    let body: Value = serde_json::from_str(&sent.body.unwrap().to_string()).unwrap();
    assert_eq!(
        body,
        json!({ "StartTime": 1_704_066_901, "EndTime": 1_704_067_201,
        "MetricDataQueries": [
            { "Id": "rate", "Expression": "a / b" },
            { "Id": "a", "ReturnData": false, "MetricStat": { "Metric": { "Namespace": "ns",
                "MetricName": "errors", "Dimensions": [{ "Name": "n", "Value": "v" }] },
                "Period": 300, "Stat": "Sum", "Unit": "None" } },
        ] })
    );
    assert!(matches!(sent.auth, Auth::SigV4 { service, .. } if service == "monitoring"));
    table(
        &spec,
        &[
            (
                200,
                r#"{"MetricDataResults":[{"Id":"rate","Values":[1,1000000]},{"Id":"a"}]}"#,
                "= [[1 1e+06] []]",
            ),
            (
                200,
                r#"{"MetricDataResults":[],"Messages":[{"Code":"c"}]}"#,
                "= [] messages=[{\"Code\":\"c\"}]",
            ),
            (
                400,
                r#"{"__type":"com.amazonaws#ValidationError","message":"bad id"}"#,
                "! https response error StatusCode: 400, ValidationError: bad id",
            ),
            (503, "busy", "! https response error StatusCode: 503"),
            (200, "busy", "! deserialization failed: expected value at line 1 column 1"),
        ],
    );
}
