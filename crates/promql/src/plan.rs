//! A query as a tree of what this evaluator knows. Everything else is refused by its name.

use promql_parser::label::{MatchOp, Matcher as ParsedMatcher, Matchers};
use promql_parser::parser::{
    AggregateExpr, BinaryExpr, Call, Expr, LabelModifier, Offset, VectorMatchCardinality,
    VectorSelector,
};

use crate::{Labels, Millis, NAME, QueryError};

/// A part of a query.
#[derive(Clone, Debug)]
pub enum Node {
    Number(f64),
    Instant {
        selector: Selector,
        offset: Millis,
    },
    Range {
        selector: Selector,
        offset: Millis,
        range: Millis,
    },
    Negated(Box<Node>),
    Aggregate {
        by: Grouping,
        how: Aggregation,
        of: Box<Node>,
    },
    Binary {
        op: Op,
        matching: Matching,
        left: Box<Node>,
        right: Box<Node>,
    },
    OverTime {
        function: OverTime,
        of: Box<Node>,
    },
    Quantile {
        quantile: Box<Node>,
        of: Box<Node>,
    },
    /// A function of every single value.
    Each {
        function: Each,
        of: Box<Node>,
        limit: Option<Box<Node>>,
    },
    /// A vector of one scalar.
    Vector(Box<Node>),
    /// The scalar of a vector of one.
    Scalar(Box<Node>),
    /// The moment of the query, in seconds.
    Time,
}

/// Which series are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    matchers: Vec<Matcher>,
}

/// What a label must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher(ParsedMatcher);

/// Which labels make a group.
#[derive(Clone, Debug)]
pub enum Grouping {
    By(Vec<String>),
    Without(Vec<String>),
}

/// How the values of a group become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    Sum,
    Avg,
    Min,
    Max,
    Count,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
    /// Compares, and keeps what compares so.
    Compare(Comparison),
    And,
    Or,
    Unless,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

/// How the values of two sides find each other.
#[derive(Clone, Debug)]
pub struct Matching {
    pub labels: Grouping,
    pub many: Many,
    /// Does a comparison give 0 or 1?
    pub is_bool: bool,
}

/// Which side may have several values for one of the other, and the labels it takes from there.
#[derive(Clone, Debug)]
pub enum Many {
    Neither,
    Left(Vec<String>),
    Right(Vec<String>),
}

/// A function of the samples of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverTime {
    Rate,
    Increase,
    Delta,
    Irate,
    Avg,
    Min,
    Max,
    Sum,
    Count,
    Last,
}

/// A function of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    Abs,
    Ceil,
    Floor,
    ClampMin,
    ClampMax,
}

impl Selector {
    /// Does it select the series with these labels?
    pub fn selects(&self, labels: &Labels) -> bool {
        self.matchers.iter().all(|one| one.fits(labels))
    }

    /// The name it asks for, where it asks for one.
    pub fn name(&self) -> Option<&str> {
        let named = |one: &&Matcher| one.0.name == NAME && matches!(one.0.op, MatchOp::Equal);
        self.matchers.iter().find(named).map(|one| one.0.value.as_str())
    }

    /// What the labels must be.
    pub fn matchers(&self) -> &[Matcher] {
        &self.matchers
    }
}

impl Matcher {
    /// The label.
    pub fn label(&self) -> &str {
        &self.0.name
    }

    /// Is the label what it must be? A label that is not there is empty.
    pub fn fits(&self, labels: &Labels) -> bool {
        self.0.is_match(labels.get(&self.0.name).map_or("", String::as_str))
    }
}

impl Node {
    /// Collects everything that is selected.
    pub fn selectors<'n>(&'n self, found: &mut Vec<&'n Selector>) {
        match self {
            Node::Number(_) | Node::Time => {}
            Node::Instant { selector, .. } | Node::Range { selector, .. } => found.push(selector),
            Node::Negated(of) | Node::Vector(of) | Node::Scalar(of) => of.selectors(found),
            Node::Aggregate { of, .. } | Node::OverTime { of, .. } => of.selectors(found),
            Node::Binary { left, right, .. } => {
                left.selectors(found);
                right.selectors(found);
            }
            Node::Quantile { quantile, of } => {
                quantile.selectors(found);
                of.selectors(found);
            }
            Node::Each { of, limit, .. } => {
                of.selectors(found);
                limit.iter().for_each(|limit| limit.selectors(found));
            }
        }
    }
}

/// Reads a query.
pub fn parse(text: &str) -> Result<Node, QueryError> {
    let parsed = promql_parser::parser::parse(text);
    node(&parsed.map_err(|message| QueryError::Invalid(message.to_string()))?)
}

fn unsupported<T>(what: impl Into<String>) -> Result<T, QueryError> {
    Err(QueryError::Unsupported(what.into()))
}

fn node(expr: &Expr) -> Result<Node, QueryError> {
    match expr {
        Expr::NumberLiteral(number) => Ok(Node::Number(number.val)),
        Expr::Paren(paren) => node(&paren.expr),
        Expr::Unary(unary) => Ok(Node::Negated(Box::new(node(&unary.expr)?))),
        Expr::VectorSelector(selector) => {
            let (selector, offset) = selected(selector)?;
            Ok(Node::Instant { selector, offset })
        }
        Expr::MatrixSelector(matrix) => {
            let (selector, offset) = selected(&matrix.vs)?;
            Ok(Node::Range { selector, offset, range: millis(matrix.range) })
        }
        Expr::Aggregate(aggregate) => aggregation(aggregate),
        Expr::Binary(binary) => operation(binary),
        Expr::Call(call) => function(call),
        Expr::Subquery(_) => unsupported("a subquery"),
        Expr::StringLiteral(_) => unsupported("a text"),
        Expr::Extension(_) => unsupported("an extension"),
    }
}

fn millis(duration: std::time::Duration) -> Millis {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn selected(parsed: &VectorSelector) -> Result<(Selector, Millis), QueryError> {
    if parsed.at.is_some() {
        return unsupported("the modifier @");
    }
    let Matchers { matchers, or_matchers } = &parsed.matchers;
    if !or_matchers.is_empty() {
        return unsupported("or between matchers");
    }
    let mut all: Vec<Matcher> = matchers.iter().cloned().map(Matcher).collect();
    if let Some(name) = &parsed.name {
        all.push(Matcher(ParsedMatcher::new(MatchOp::Equal, NAME, name)));
    }
    let offset = match &parsed.offset {
        None => 0,
        Some(Offset::Pos(by)) => millis(*by),
        Some(Offset::Neg(by)) => -millis(*by),
    };
    Ok((Selector { matchers: all }, offset))
}

fn grouping(modifier: Option<&LabelModifier>, otherwise: Grouping) -> Grouping {
    match modifier {
        None => otherwise,
        Some(LabelModifier::Include(labels)) => Grouping::By(labels.labels.clone()),
        Some(LabelModifier::Exclude(labels)) => Grouping::Without(labels.labels.clone()),
    }
}

fn aggregation(parsed: &AggregateExpr) -> Result<Node, QueryError> {
    let name = parsed.op.to_string();
    let how = match name.as_str() {
        "sum" => Aggregation::Sum,
        "avg" => Aggregation::Avg,
        "min" => Aggregation::Min,
        "max" => Aggregation::Max,
        "count" => Aggregation::Count,
        _ => return unsupported(format!("the aggregation {name}")),
    };
    let by = grouping(parsed.modifier.as_ref(), Grouping::By(Vec::new()));
    Ok(Node::Aggregate { by, how, of: Box::new(node(&parsed.expr)?) })
}

fn operation(parsed: &BinaryExpr) -> Result<Node, QueryError> {
    let name = parsed.op.to_string();
    let op = match name.as_str() {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Mod,
        "^" => Op::Pow,
        "==" => Op::Compare(Comparison::Equal),
        "!=" => Op::Compare(Comparison::NotEqual),
        ">" => Op::Compare(Comparison::Greater),
        "<" => Op::Compare(Comparison::Less),
        ">=" => Op::Compare(Comparison::GreaterOrEqual),
        "<=" => Op::Compare(Comparison::LessOrEqual),
        "and" => Op::And,
        "or" => Op::Or,
        "unless" => Op::Unless,
        _ => return unsupported(format!("the operator {name}")),
    };
    let modifier = parsed.modifier.as_ref();
    if modifier.is_some_and(|one| one.fill_values.lhs.is_some() || one.fill_values.rhs.is_some()) {
        return unsupported("the modifier fill");
    }
    let many = match modifier.map(|modifier| &modifier.card) {
        Some(VectorMatchCardinality::ManyToOne(labels)) => Many::Left(labels.labels.clone()),
        Some(VectorMatchCardinality::OneToMany(labels)) => Many::Right(labels.labels.clone()),
        _ => Many::Neither,
    };
    let matching = modifier.and_then(|modifier| modifier.matching.as_ref());
    let matching = Matching {
        labels: grouping(matching, Grouping::Without(Vec::new())),
        many,
        is_bool: modifier.is_some_and(|modifier| modifier.return_bool),
    };
    let (left, right) = (Box::new(node(&parsed.lhs)?), Box::new(node(&parsed.rhs)?));
    Ok(Node::Binary { op, matching, left, right })
}

fn function(parsed: &Call) -> Result<Node, QueryError> {
    let name = parsed.func.name;
    let mut arguments = Vec::new();
    for argument in &parsed.args.args {
        arguments.push(Box::new(node(argument)?));
    }
    let over = |name: &str| {
        Some(match name {
            "rate" => OverTime::Rate,
            "increase" => OverTime::Increase,
            "delta" => OverTime::Delta,
            "irate" => OverTime::Irate,
            "avg_over_time" => OverTime::Avg,
            "min_over_time" => OverTime::Min,
            "max_over_time" => OverTime::Max,
            "sum_over_time" => OverTime::Sum,
            "count_over_time" => OverTime::Count,
            "last_over_time" => OverTime::Last,
            _ => return None,
        })
    };
    let each = |name: &str| {
        Some(match name {
            "abs" => Each::Abs,
            "ceil" => Each::Ceil,
            "floor" => Each::Floor,
            "clamp_min" => Each::ClampMin,
            "clamp_max" => Each::ClampMax,
            _ => return None,
        })
    };
    let mut arguments = arguments.into_iter();
    match (name, arguments.next(), arguments.next()) {
        ("time", None, None) => Ok(Node::Time),
        ("vector", Some(of), None) => Ok(Node::Vector(of)),
        ("scalar", Some(of), None) => Ok(Node::Scalar(of)),
        ("histogram_quantile", Some(quantile), Some(of)) => Ok(Node::Quantile { quantile, of }),
        (name, Some(of), None) if over(name).is_some() => {
            let function = over(name).unwrap_or(OverTime::Last);
            Ok(Node::OverTime { function, of })
        }
        (name, Some(of), limit) if each(name).is_some() => {
            Ok(Node::Each { function: each(name).unwrap_or(Each::Abs), of, limit })
        }
        _ => unsupported(format!("the function {name}")),
    }
}
