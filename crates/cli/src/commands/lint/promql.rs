//! Is a query PromQL? Arguments are known later, so something that fits stands for them.

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
                Ok(_) => return None,
                Err(message) => first = first.or(Some(message)),
            }
        }
    }
    let message = first?;
    let may_be_dialect = message.contains("unknown function");
    Some(Fault { message: message.lines().next().unwrap_or_default().to_owned(), may_be_dialect })
}

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
            ("an open bracket", "sum(rate(up[5m])", false),
            ("no span", "rate(up[five])", false),
            ("a text that is not closed", "up{job=\"web}", false),
        ];
        for (what, query, is_right) in cases {
            assert_eq!(fault(query).is_none(), is_right, "{what}");
        }
    }
}
