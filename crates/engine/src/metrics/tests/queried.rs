//! Datadog, New Relic, Wavefront, Graphite, InfluxDB, SkyWalking and plugins.

use super::*;

#[test]
fn datadog_is_asked_for_a_series_or_for_scalars() {
    let of = |spec: Value| json!({ "datadog": spec });
    let base = "<variable DD_ADDRESS>";
    let expected =
        format!("GET {base}/api/v1/query?from=1704066901&query=avg%3Aa%7B%2A%7D&to=1704067201");
    assert_eq!(after(&of(json!({ "query": "avg:a{*}" })), &[]), expected);
    let body = "{\"data\":{\"attributes\":{\"formulas\":[{\"formula\":\"a/b\"}],\
        \"from\":1704067141500,\"queries\":[{\"aggregator\":\"last\",\"data_source\":\"metrics\",\
        \"name\":\"a\",\"query\":\"qa\"},{\"aggregator\":\"last\",\"data_source\":\"metrics\",\
        \"name\":\"b\",\"query\":\"qb\"}],\"to\":1704067201500},\"type\":\"scalar_request\"}}";
    let two = json!({ "queries": { "a": "qa", "b": "qb" }, "formula": "a/b", "apiVersion": "v2",
        "interval": "1m" });
    assert_eq!(after(&of(two), &[]), format!("POST {base}/api/v2/query/scalar {body}"));
    let one = after(&of(json!({ "query": "q", "apiVersion": "v2", "aggregator": "avg" })), &[]);
    assert!(one.contains("\"formulas\":[]") && one.contains("\"name\":\"query\""), "{one}");
    let own = of(json!({ "query": "q", "secretRef": { "name": "mine", "namespaced": true } }));
    assert!(after(&own, &[]).starts_with("GET <Secret mine, key address>/api/v1"));
}

#[test]
fn a_wrong_datadog_metric_is_not_sent() {
    let review = "Please review the Analysis Template.";
    let rows = [
        (json!({}), format!("Must have either a query or queries. {review}")),
        (
            json!({ "query": "q", "queries": { "a": "b" } }),
            format!("Cannot have both a query and queries. {review}"),
        ),
        (
            json!({ "queries": { "a": "b" } }),
            "Query is empty. API Version v1 only supports using \
            the query parameter in your Analysis Template."
                .to_owned(),
        ),
        (
            json!({ "query": "q", "formula": "a", "apiVersion": "v2" }),
            format!("Formula are only valid when queries are set. {review}"),
        ),
        (
            json!({ "queries": { "a": "b", "c": "d" }, "apiVersion": "v2" }),
            "When multiple queries are provided you must include a formula.".to_owned(),
        ),
        (
            json!({ "query": "q", "aggregator": "avg" }),
            format!("Aggregator is not supported in v1. {review}"),
        ),
        (
            json!({ "query": "q", "requestTimeout": "-1s" }),
            format!("Request timeout must be a positive duration (e.g. 30s). {review}"),
        ),
        (
            json!({ "query": "q", "requestTimeout": "x" }),
            format!("Could not parse the request timeout: time: invalid duration \"x\". {review}"),
        ),
        (
            json!({ "query": "q", "secretRef": { "namespaced": true } }),
            "secret name is required for namespaced credentials".to_owned(),
        ),
    ];
    for (spec, expected) in rows {
        assert_eq!(after(&json!({ "datadog": spec }), &[]), format!("! {expected}"), "{spec}");
    }
}

#[test]
fn answers_of_datadog_become_numbers() {
    table(
        &json!({ "datadog": { "query": "q" } }),
        &[
            (200, r#"{"series":[{"pointlist":[[1,2],[2,1000000]]}]}"#, "= 1000000"),
            (200, r#"{"series":[{"pointlist":[[1,null]]}]}"#, "= 0"),
            (200, r#"{"series":[]}"#, "nil []"),
            (200, r#"{}"#, "nil null"),
            (200, r#"{"series":[{"pointlist":[]}]}"#, "nil [{\"pointlist\":[]}]"),
            (200, r#"{"series":[{"pointlist":[[1]]}]}"#, "! Datapoint does not have 2 values"),
            (200, "x", "! Could not parse JSON body: expected value at line 1 column 1"),
            (401, "no", "! received authentication error response code: 401 no"),
            (403, "no", "! received authentication error response code: 403 no"),
            (500, "oh", "! received non 2xx response code: 500 oh"),
        ],
    );
    let columns = |columns: &str| format!(r#"{{"data":{{"attributes":{{"columns":{columns}}}}}}}"#);
    let number = columns(r#"[{"name":"a","type":"number","values":[null,0.5,2]}]"#);
    let groups = columns(
        r#"[{"type":"group","values":[["x"],["y","z"]]},{"type":"number","values":[1,2.5]}]"#,
    );
    let texts = columns(r#"[{"name":"a","type":"number","values":["x"]}]"#);
    let unlabelled = columns(r#"[{"type":"group","values":[]},{"values":[1]}]"#);
    table(
        &json!({ "datadog": { "query": "q", "apiVersion": "v2" } }),
        &[
            (200, &number, "= 0.5"),
            (
                200,
                &groups,
                "= [1,2.5] groups=[{\"name\":\"x\",\"value\":1},{\"name\":\"y,z\",\"value\":2.5}]",
            ),
            (200, &columns("[]"), "nil []"),
            (200, &columns(r#"[{"type":"number","values":[null]}]"#), "nil []"),
            (
                200,
                &texts,
                "! could not parse numeric value \"\\\"x\\\"\" in column \"a\": it is no number",
            ),
            (200, &unlabelled, "! could not parse group label at index 0"),
            (
                200,
                r#"{"data":{"errors":"bad query"}}"#,
                "! There were errors in your query: bad query",
            ),
        ],
    );
}

#[test]
fn of_many_groups_of_datadog_the_extremes_are_named() {
    let count = 120;
    let labels: Vec<Value> = (0..count).map(|n| json!([format!("g{n}")])).collect();
    let values: Vec<i32> = (0..count).collect();
    let body = json!({ "data": { "attributes": { "columns": [
        { "type": "group", "values": labels }, { "type": "number", "values": values }] } } });
    let spec = json!({ "datadog": { "query": "q", "apiVersion": "v2" } });
    let next = called(&spec, Call::Run, &[said(200, &body.to_string())]);
    let Next::Done(Reading::Value { result: MetricValue::Numbers(all), metadata, .. }) = next
    else {
        panic!("a list of numbers: {next:?}");
    };
    assert_eq!(all.len(), 120, "conditions see all of them");
    assert_eq!(metadata["groups_truncated"], "true");
    let named: Vec<Value> = serde_json::from_str(&metadata["groups"]).unwrap();
    assert_eq!(named.len(), 100);
    assert_eq!((&named[49]["name"], &named[50]["name"]), (&json!("g49"), &json!("g70")));
}

#[test]
fn new_relic_is_asked_through_nerdgraph_and_again_where_that_may_help() {
    let spec = json!({ "newRelic": { "query": "SELECT \"x\"" } });
    let asked = after(&spec, &[]);
    assert!(asked.starts_with("POST <Secret newrelic, key base-url-nerdgraph> {"), "{asked}");
    let variables = "\"variables\":{\"accountId\":<Secret newrelic, key account-id>,\
                     \"query\":\"SELECT \\\"x\\\"\",\"timeout\":5}}";
    assert!(asked.ends_with(variables), "{asked}");
    let busy = || said(429, "");
    let mut replies = vec![busy(), Err(HttpError::Connect("refused".into())), said(502, "")];
    assert_eq!(after(&spec, &replies), asked, "a fourth attempt");
    replies.push(busy());
    let found = after(&spec, &replies);
    assert!(found.starts_with("! 429 response returned (NewRelic at NerdGraph"), "{found}");
    assert!(after(&spec, &[said(400, "{}")]).starts_with("! 400 response returned"), "no repeat");
    let negative = json!({ "newRelic": { "query": "q", "timeout": -1 } });
    assert_eq!(after(&negative, &[]), "! timeout value needs to be a positive value");
}

#[test]
fn rows_of_new_relic_become_a_map_or_a_list() {
    let rows = |rows: &str| {
        format!(r#"{{"data":{{"actor":{{"account":{{"nrql":{{"results":{rows}}}}}}}}}}}"#)
    };
    table(
        &json!({ "newRelic": { "query": "q" } }),
        &[
            (200, &rows(r#"[{"count":3}]"#), "= {\"count\":3}"),
            (200, &rows(r#"[{"a":1},{"a":2}]"#), "= [{\"a\":1},{\"a\":2}]"),
            (200, &rows("[]"), "! no results returned from NRQL query"),
            (200, &rows("[{}]"), "! no results returned from NRQL query"),
            (200, r#"{"errors":[{"message":"NRQL Syntax Error"}]}"#, "! NRQL Syntax Error"),
            (200, "x", "! could not parse JSON body: expected value at line 1 column 1"),
        ],
    );
}

#[test]
fn wavefront_gives_the_points_closest_to_now() {
    let spec = json!({ "wavefront": { "address": "w.example", "query": "ts(a)" } });
    let expected = "GET https://w.example/api/v2/chart/api?q=ts%28a%29&s=1704067201000\
        &e=1704067201000&autoEvents=false&g=s&i=true&includeObsoleteMetrics=false&listmode=false\
        &p=1&strict=false";
    assert_eq!(after(&spec, &[]), expected);
    let one = r#"{"warnings":"slow","timeseries":[{"data":[[1704067000,1],[1704067191,0.126]]}]}"#;
    let two = r#"{"timeseries":[{"data":[[1704067201,1]]},{"data":[[1704067200,2]]}]}"#;
    table(
        &spec,
        &[
            (200, one, "= 0.13 drift=-10 timestamps=1704067191 warnings=slow"),
            (200, two, "= [1.00,2.00] drift=[0,-1] timestamps=[1704067201,1704067200]"),
            (
                200,
                r#"{"warnings":"w","timeseries":[]}"#,
                "! No TimeSeries found in response from Wavefront",
            ),
            (200, "x", "! expected value at line 1 column 1"),
            (403, "no", "! server returned 403 Forbidden\nno\n"),
        ],
    );
}

#[test]
fn graphite_gives_the_points_of_the_first_target() {
    let spec = json!({ "graphite": { "address": "http://g/base",
        "query": "target=sum(a.b)\n &from=-5min" } });
    let expected = "GET http://g/base/render?format=json&from=-5min&target=sum%28a.b%29";
    assert_eq!(after(&spec, &[]), expected);
    table(
        &spec,
        &[
            (
                200,
                r#"[{"datapoints":[[1,10],[null,20],["2.5",30]]},{"datapoints":[[9,1]]}]"#,
                "= [1.000000,2.500000]",
            ),
            (200, r#"[{"datapoints":[[null,1]]}]"#, "= []"),
            (200, r#"[{"datapoints":[]}]"#, "! no values found"),
            (200, "[]", "! no values found"),
            (200, r#"[{"datapoints":[[true,1]]}]"#, "! invalid value true in a data point"),
            (200, "x", "! expected value at line 1 column 1"),
            (500, "broken", "! error response: broken"),
        ],
    );
    let nowhere = json!({ "graphite": { "address": "g", "query": "target=a" } });
    assert_eq!(after(&nowhere, &[]), "! Graphite address g is not a valid URL");
}

#[test]
fn influxdb_gives_the_value_of_every_record() {
    let spec = json!({ "influxdb": { "query": "from(bucket: \"b\")" } });
    let asked = after(&spec, &[]);
    let start = "POST <Secret influxdb, key address>/api/v2/query?org=<Secret influxdb, key org> {";
    assert!(asked.starts_with(start), "{asked}");
    assert!(asked.ends_with("\"query\":\"from(bucket: \\\"b\\\")\",\"type\":\"flux\"}"), "{asked}");
    let head = "#datatype,string,long,double\n,result,table,_value\n";
    table(
        &spec,
        &[
            (200, &format!("{head},,0,1000000\n,,0,0.5\n"), "= [1e+06 0.5]"),
            (200, &format!("{head},,0,\n"), "= [<nil>]"),
            (200, "", "! no results returned from flux query"),
            (
                200,
                &format!("{head},,0,1\n\n,error,reference\n,query broke,1\n"),
                "! flux query failed: query broke",
            ),
            (401, "{}", "! 401 Unauthorized: {}"),
            (500, "oh", "! 500 Internal Server Error: oh"),
        ],
    );
}

#[test]
fn skywalking_gives_all_data_whatever_the_status() {
    let spec =
        json!({ "skywalking": { "address": "http://s", "query": "query q", "interval": "3m" } });
    let body = "{\"query\":\"query q\",\"variables\":{\"duration\":{\"end\":\"2024-01-01 0000\",\
                \"start\":\"2023-12-31 2357\",\"step\":\"MINUTE\"}}}\n";
    assert_eq!(after(&spec, &[]), format!("POST http://s/graphql {body}"));
    table(
        &spec,
        &[
            (200, r#"{"data":{"a":[1,2]}}"#, "= {\"a\":[1,2]}"),
            (500, r#"{"data":7}"#, "= 7"),
            (200, r#"{"errors":[{"message":"bad"}]}"#, "! graphql: bad"),
            (200, "{}", "! no results returned from SkyWalking query"),
            (200, "x", "! decoding response: expected value at line 1 column 1"),
        ],
    );
    let without = json!({ "skywalking": { "address": "http://s", "query": "q" } });
    assert_eq!(after(&without, &[]), "! time: invalid duration \"\"");
}
