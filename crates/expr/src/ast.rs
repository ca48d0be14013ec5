//! The tree of an expression.

use crate::builtins::Builtin;
use crate::error::Span;
use crate::types::Type;
use crate::value::Value;
use regex::bytes::Regex;

/// A part of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) expr: Expr,
    /// Where errors point.
    pub(crate) span: Span,
    /// What the check found out about its value.
    pub(crate) of: Type,
    /// How deep the tree below it is.
    pub(crate) depth: u32,
}

/// Two parts are equal where they read the same, wherever they stand.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr
    }
}

/// What a part of an expression is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// A literal, or what was computed before the run.
    Literal(Value),
    /// A list of literals, or a set of them behind `in`, computed before the run.
    Constant(Value),
    /// A variable, a function or `$env`.
    Name(String),
    /// An operator before its operand.
    Unary(Unary, Box<Node>),
    /// An operator between its operands.
    Binary(Binary, Box<Node>, Box<Node>),
    /// `matches` with a pattern that is known before the run.
    Matches(Box<Node>, Pattern),
    /// What ends with `nil` where a `?.` inside it finds `nil`.
    Chain(Box<Node>),
    /// A field, a method or an element.
    Member(Member),
    /// A part of a list or a text.
    Slice { base: Box<Node>, from: Option<Box<Node>>, to: Option<Box<Node>> },
    /// A call of a function of the environment or of a method.
    Call { callee: Box<Node>, arguments: Vec<Node> },
    /// A call of a function of the language.
    Builtin { builtin: &'static Builtin, arguments: Vec<Node> },
    /// A function that goes over a list.
    Loop(Box<Loop>),
    /// The sum of several expressions.
    Sum(Vec<Node>),
    /// `#`, `#index` or `#acc`.
    Pointer(String),
    /// `let name = value; body`.
    Let { name: String, value: Box<Node>, body: Box<Node> },
    /// Several expressions; the last one is the value.
    Sequence(Vec<Node>),
    /// `condition ? yes : no`, or `if … { } else { }`.
    Condition { condition: Box<Node>, yes: Box<Node>, no: Box<Node> },
    /// `[a, b]`.
    List(Vec<Node>),
    /// `{a: b}`.
    Map(Vec<(Node, Node)>),
}

/// A field, a method or an element of something.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) base: Box<Node>,
    pub(crate) property: Box<Node>,
    /// Is `nil` for an answer where the base is `nil`?
    pub(crate) is_optional: bool,
    /// Is it called?
    pub(crate) is_method: bool,
}

/// A function that goes over a list with an expression for each element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    pub(crate) list: Node,
    pub(crate) body: Option<Node>,
    /// Where `reduce` begins, or the order of `sortBy`.
    pub(crate) extra: Option<Node>,
    /// What becomes of an element that `filter` or `find` picked.
    pub(crate) then: Option<Node>,
    /// `count` may stop here.
    pub(crate) enough: Option<i64>,
    /// `find` stands for an index into a filtered list: nothing found is an error.
    pub(crate) must_find: bool,
}

/// The functions that go over a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopKind {
    All,
    None,
    Any,
    One,
    Filter,
    Map,
    Count,
    Sum,
    Find,
    FindIndex,
    FindLast,
    FindLastIndex,
    GroupBy,
    SortBy,
    Reduce,
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Minus,
    Plus,
}

/// An operator between its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    More,
    AtLeast,
    AtMost,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Coalesce,
}

/// A pattern that was compiled once.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(pub(crate) Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// The operators, how they are written and how strongly they bind.
const OPERATORS: [(&str, Binary, u16); 24] = [
    ("or", Binary::Or, 10),
    ("||", Binary::Or, 10),
    ("and", Binary::And, 15),
    ("&&", Binary::And, 15),
    ("==", Binary::Equal, 20),
    ("!=", Binary::Unequal, 20),
    ("<", Binary::Less, 20),
    (">", Binary::More, 20),
    (">=", Binary::AtLeast, 20),
    ("<=", Binary::AtMost, 20),
    ("in", Binary::In, 20),
    ("matches", Binary::Matches, 20),
    ("contains", Binary::Contains, 20),
    ("startsWith", Binary::StartsWith, 20),
    ("endsWith", Binary::EndsWith, 20),
    ("..", Binary::Range, 25),
    ("+", Binary::Add, 30),
    ("-", Binary::Subtract, 30),
    ("*", Binary::Multiply, 60),
    ("/", Binary::Divide, 60),
    ("%", Binary::Modulo, 60),
    ("**", Binary::Power, 100),
    ("^", Binary::Power, 100),
    ("??", Binary::Coalesce, 500),
];

const LOOPS: [(&str, LoopKind); 15] = [
    ("all", LoopKind::All),
    ("none", LoopKind::None),
    ("any", LoopKind::Any),
    ("one", LoopKind::One),
    ("filter", LoopKind::Filter),
    ("map", LoopKind::Map),
    ("count", LoopKind::Count),
    ("sum", LoopKind::Sum),
    ("find", LoopKind::Find),
    ("findIndex", LoopKind::FindIndex),
    ("findLast", LoopKind::FindLast),
    ("findLastIndex", LoopKind::FindLastIndex),
    ("groupBy", LoopKind::GroupBy),
    ("sortBy", LoopKind::SortBy),
    ("reduce", LoopKind::Reduce),
];

impl Node {
    pub(crate) fn new(expr: Expr, span: Span) -> Node {
        let mut depth = 0;
        expr.each_part(&mut |part| depth = depth.max(part.depth));
        Node { expr, span, of: Type::Unknown, depth: depth + 1 }
    }

    /// Another expression in the place, and of the type, of this one.
    pub(crate) fn becomes(&self, expr: Expr) -> Node {
        Node { of: self.of.clone(), ..Node::new(expr, self.span) }
    }

    /// How many parts it is made of.
    pub(crate) fn size(&self) -> usize {
        let mut size = 1;
        self.expr.each_part(&mut |part| size += part.size());
        size
    }

    pub(crate) fn literal(&self) -> Option<&Value> {
        match &self.expr {
            Expr::Literal(value) => Some(value),
            _ => None,
        }
    }
}

impl Expr {
    /// The parts it is made of, in the order in which they stand.
    pub(crate) fn each_part<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        match self {
            Expr::Literal(_) | Expr::Constant(_) | Expr::Name(_) | Expr::Pointer(_) => {}
            Expr::Unary(_, one) | Expr::Chain(one) | Expr::Matches(one, _) => visit(one),
            Expr::Binary(_, left, right) => [left, right].into_iter().for_each(|one| visit(one)),
            Expr::Member(member) => {
                [&member.base, &member.property].into_iter().for_each(|one| visit(one));
            }
            Expr::Slice { base, from, to } => {
                visit(base);
                from.iter().chain(to).for_each(|one| visit(one));
            }
            Expr::Call { callee, arguments } => {
                visit(callee);
                arguments.iter().for_each(visit);
            }
            Expr::Builtin { arguments, .. } => arguments.iter().for_each(visit),
            Expr::Loop(round) => {
                visit(&round.list);
                round.body.iter().chain(&round.extra).chain(&round.then).for_each(visit);
            }
            Expr::Let { value, body, .. } => [value, body].into_iter().for_each(|one| visit(one)),
            Expr::Sequence(all) | Expr::List(all) | Expr::Sum(all) => all.iter().for_each(visit),
            Expr::Condition { condition, yes, no } => {
                [condition, yes, no].into_iter().for_each(|one| visit(one));
            }
            Expr::Map(pairs) => pairs.iter().for_each(|(key, value)| {
                visit(key);
                visit(value);
            }),
        }
    }

    /// The same parts, to be changed.
    pub(crate) fn each_part_mut(&mut self, visit: &mut dyn FnMut(&mut Node)) {
        match self {
            Expr::Literal(_) | Expr::Constant(_) | Expr::Name(_) | Expr::Pointer(_) => {}
            Expr::Unary(_, one) | Expr::Chain(one) | Expr::Matches(one, _) => visit(one),
            Expr::Binary(_, left, right) => [left, right].into_iter().for_each(|one| visit(one)),
            Expr::Member(member) => {
                [&mut member.base, &mut member.property].into_iter().for_each(|one| visit(one));
            }
            Expr::Slice { base, from, to } => {
                visit(base);
                from.iter_mut().chain(to).for_each(|one| visit(one));
            }
            Expr::Call { callee, arguments } => {
                visit(callee);
                arguments.iter_mut().for_each(visit);
            }
            Expr::Builtin { arguments, .. } => arguments.iter_mut().for_each(visit),
            Expr::Loop(round) => {
                visit(&mut round.list);
                let rest = round.body.iter_mut().chain(&mut round.extra).chain(&mut round.then);
                rest.for_each(visit);
            }
            Expr::Let { value, body, .. } => [value, body].into_iter().for_each(|one| visit(one)),
            Expr::Sequence(all) | Expr::List(all) | Expr::Sum(all) => {
                all.iter_mut().for_each(visit)
            }
            Expr::Condition { condition, yes, no } => {
                [condition, yes, no].into_iter().for_each(|one| visit(one));
            }
            Expr::Map(pairs) => pairs.iter_mut().for_each(|(key, value)| {
                visit(key);
                visit(value);
            }),
        }
    }
}

impl Binary {
    /// The operator of a token, and how strongly it binds.
    pub(crate) fn of(text: &str) -> Option<(Binary, u16)> {
        let found = OPERATORS.iter().find(|(written, ..)| *written == text);
        found.map(|(_, operator, strength)| (*operator, *strength))
    }

    /// As errors name it.
    pub(crate) fn name(self) -> &'static str {
        let found = OPERATORS.iter().rev().find(|(_, operator, _)| *operator == self);
        match self {
            Binary::Power => "**",
            _ => found.map_or("", |(written, ..)| written),
        }
    }

    pub(crate) fn is_comparison(self) -> bool {
        matches!(self, Binary::Less | Binary::More | Binary::AtLeast | Binary::AtMost)
    }

    /// May `not` stand before it, as in `not in`?
    pub(crate) fn can_be_negated(self) -> bool {
        use Binary::{Contains, EndsWith, In, Matches, StartsWith};
        matches!(self, Contains | Matches | StartsWith | EndsWith | In)
    }
}

impl Unary {
    /// The operator of a token, and how strongly it binds.
    pub(crate) fn of(text: &str) -> Option<(Unary, u16)> {
        match text {
            "not" | "!" => Some((Unary::Not, 50)),
            "-" => Some((Unary::Minus, 90)),
            "+" => Some((Unary::Plus, 90)),
            _ => None,
        }
    }

    /// As errors name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unary::Not => "!",
            Unary::Minus => "-",
            Unary::Plus => "+",
        }
    }
}

impl LoopKind {
    pub(crate) fn of(name: &str) -> Option<LoopKind> {
        LOOPS.iter().find(|(written, _)| *written == name).map(|(_, kind)| *kind)
    }

    pub(crate) fn name(self) -> &'static str {
        LOOPS.iter().find(|(_, kind)| *kind == self).map_or("", |(written, _)| written)
    }

    /// May the expression for each element be left out?
    pub(crate) fn needs_body(self) -> bool {
        !matches!(self, LoopKind::Count | LoopKind::Sum)
    }

    /// Does a third argument follow?
    pub(crate) fn takes_extra(self) -> bool {
        matches!(self, LoopKind::SortBy | LoopKind::Reduce)
    }
}
