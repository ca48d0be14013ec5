//! Is a query PromQL? Arguments are known later, so something that fits stands for them.

use promql_parser::parser::value::ValueType;

use crate::near;

/// What can stand for an argument: a span of time, a number, a name.
const STAND_INS: [&str; 3] = ["5m", "1", "x"];

/// Why a query is none.
pub struct Fault {
    /// What the parser expected.
    pub message: String,
    /// Servers with Prometheus' API know further functions.
    pub may_be_dialect: bool,
}

/// Why a text is no PromQL, whatever its arguments are.
pub fn fault(query: &str) -> Option<Fault> {
    let mut first = None;
    for others in STAND_INS {
        for in_brackets in [true, false] {
            match promql_parser::parser::parse(&filled(query, others, in_brackets)) {
                Ok(found) => return unmeasurable(found.value_type()),
                Err(message) => first = first.or(Some(message)),
            }
        }
    }
    let message = first?;
    let message = message.lines().next().unwrap_or_default();
    if let Some((_, name)) = message.split_once("unknown function with name '") {
        let name = name.trim_end_matches('\'');
        let near = near::offered(name, &FUNCTIONS.map(str::to_owned));
        let hint = near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let message = format!("unknown function {name:?}{hint}");
        return Some(Fault { message, may_be_dialect: true });
    }
    let hint = match message {
        "invalid promql query" if is_open_list(query) => {
            "the labels of by, without, on and ignoring stand in parentheses"
        }
        "invalid promql query" => "an operator, a name or a bracket is missing, or one is too many",
        _ => return Some(Fault { message: message.to_owned(), may_be_dialect: false }),
    };
    Some(Fault { message: format!("{message}: {hint}"), may_be_dialect: false })
}

/// What a measurement cannot be, although it is PromQL.
fn unmeasurable(found: ValueType) -> Option<Fault> {
    let message = match found {
        ValueType::Matrix => "it gives a range of values, not one: wrap it, as in rate(up[5m])",
        ValueType::String => "it gives a text, not a number",
        ValueType::Vector | ValueType::Scalar => return None,
    };
    Some(Fault { message: message.to_owned(), may_be_dialect: false })
}

/// Do the labels of a grouping stand without parentheses?
fn is_open_list(query: &str) -> bool {
    let words: Vec<&str> = query.split_whitespace().collect();
    words.windows(2).any(|pair| {
        ["by", "without", "on", "ignoring"].contains(&pair[0]) && !pair[1].starts_with('(')
    })
}

/// Functions and aggregations that queries use most.
const FUNCTIONS: [&str; 40] = [
    "abs",
    "absent",
    "absent_over_time",
    "avg",
    "avg_over_time",
    "ceil",
    "changes",
    "clamp",
    "clamp_max",
    "clamp_min",
    "count",
    "count_over_time",
    "delta",
    "deriv",
    "floor",
    "histogram_quantile",
    "idelta",
    "increase",
    "irate",
    "label_join",
    "label_replace",
    "last_over_time",
    "max",
    "max_over_time",
    "min",
    "min_over_time",
    "predict_linear",
    "quantile",
    "quantile_over_time",
    "rate",
    "resets",
    "round",
    "scalar",
    "stddev",
    "stdvar",
    "sum",
    "sum_over_time",
    "time",
    "topk",
    "vector",
];

/// The query with its arguments filled in: within brackets a span of time, elsewhere `others`.
fn filled(query: &str, others: &str, in_brackets: bool) -> String {
    let mut text = String::new();
    let mut rest = query;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((_, after)) = behind.split_once("}}") else { break };
        text.push_str(before);
        let is_span = in_brackets && text.rfind('[') > text.rfind(']');
        text.push_str(if is_span { "5m" } else { others });
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_with_and_without_arguments() {
        let cases = [
            ("a plain one", "sum(rate(http_requests_total{code=~\"5.*\"}[5m])) > 0.5", true),
            ("an argument in a text", "up{job=\"{{args.job}}\"}", true),
            ("an argument as a span", "rate(up[{{args.span}}])", true),
            ("an argument as a number", "up > {{args.limit}}", true),
            ("an argument as a name", "sum({{ args.metric }})", true),
            ("both", "rate({{args.metric}}[{{args.span}}]) > {{args.limit}}", true),
            ("a range of values", "up[5m]", false),
            ("a text", "\"up\"", false),
            ("labels without parentheses", "sum(up) by job", false),
            ("a slip in a function", "summ(up)", false),
            ("an open bracket", "sum(rate(up[5m])", false),
            ("no span", "rate(up[five])", false),
            ("a text that is not closed", "up{job=\"web}", false),
        ];
        for (what, query, is_right) in cases {
            assert_eq!(fault(query).is_none(), is_right, "{what}");
        }
    }
}
