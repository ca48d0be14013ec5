//! What is wrong, where, and how is it shown?

use std::fmt;
use std::sync::Arc;

use gradus_api::decode::FieldError;

use crate::near;
use gradus_manifest::{Document, Malformed, Place, Source};

/// What a finding is about where the schema of the kind refuses it.
pub const SCHEMA: &str = "schema";
/// What a finding is about where the kind has no such field.
pub const UNKNOWN_FIELD: &str = "unknown-field";

/// Fields of a backend in versions of Ingress that are gone.
const OLD_BACKEND: [&str; 2] = ["serviceName", "servicePort"];

/// So many fields are all named where none of them is like the one that is written.
const FEW: usize = 4;

/// What a document may have instead of a field that there is not.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The fields that may stand at its place.
    pub names: Vec<String>,
    /// Where a field of its name may stand, above its place or below it.
    pub places: Vec<String>,
}

/// One thing that is wrong or doubtful.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Must it be mended?
    pub severity: Severity,
    /// When it shows.
    pub stage: Stage,
    /// What it is about, by a fixed name for tools.
    pub rule: &'static str,
    /// The field, from the top of the document; empty for the whole document.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
    /// Where it stands.
    pub place: Place,
    /// The file.
    pub source: Arc<Source>,
    /// Where the document begins in it.
    document: Place,
    /// The fields that were probably meant by an unknown one: they are not missing.
    meant: Vec<String>,
    /// The same in the words of `kubectl argo rollouts`, for scripts, where these are others.
    contract: Option<FieldError>,
}

/// Must it be mended?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The API server or the controller refuses it, or it cannot work.
    Error,
    /// It is accepted, and will surprise.
    Warning,
}

impl Severity {
    /// Its name in every format.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// When does a finding show?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The manifest cannot be read as what it says it is.
    Decoding,
    /// It is read, and refused.
    Validation,
}

impl Finding {
    /// A field of a document that is refused.
    pub fn error(document: &Document, path: &str, message: String) -> Self {
        let whole = whole(document, path);
        let said = FieldError { path: path.to_owned(), message: message.clone() };
        Finding {
            severity: Severity::Error,
            stage: Stage::Validation,
            rule: "invalid",
            contract: (whole != path).then_some(said),
            place: document.root.place_of(&whole),
            path: whole,
            message,
            document: document.root.place,
            meant: Vec::new(),
            source: Arc::clone(&document.source),
        }
    }

    /// A field of a document that will surprise.
    pub fn warning(document: &Document, path: &str, message: String) -> Self {
        let error = Self::error(document, path, message);
        Finding { severity: Severity::Warning, rule: "surprise", ..error }
    }

    /// A document that cannot be read as what it says it is, at this field.
    pub fn undecodable(document: &Document, path: &str, message: String) -> Self {
        let error = Self::error(document, path, message);
        Finding { stage: Stage::Decoding, rule: "unreadable", ..error }
    }

    /// A key that a document must not have; `known` are those that it may, `places` where there is a
    /// field of that name near by.
    pub fn unknown_field(document: &Document, path: &str, Known { names, places }: &Known) -> Self {
        let (around, field) = path.rsplit_once('.').unwrap_or(("", path));
        let near = near::offered(field, names);
        let is_selector = names.iter().any(|name| name == "matchLabels");
        let is_old_backend = around.ends_with(".backend") && OLD_BACKEND.contains(&field);
        let hint = match (near.as_slice(), places.as_slice()) {
            _ if is_selector => "; labels that are selected stand in matchLabels".to_owned(),
            _ if path == "spec.strategy.rollingUpdate" => {
                "; that is of Deployments: maxSurge and maxUnavailable stand in canary".to_owned()
            }
            _ if path == "spec.strategy.type" => {
                "; that is of Deployments: a Rollout has canary or blueGreen".to_owned()
            }
            _ if is_old_backend => {
                "; in networking.k8s.io/v1 write service: {name: …, port: {number: …}}".to_owned()
            }
            ([], []) if (1..=FEW).contains(&names.len()) => {
                let verb = if names.len() == 1 { "is" } else { "are" };
                format!("; there {verb} {}", names.join(", "))
            }
            ([], []) => String::new(),
            // A name that is cut short is meant where it stands.
            ([first, ..], [_, ..]) if first.starts_with(&format!("\"{field}")) => {
                format!("; did you mean {first}?")
            }
            (_, [_, ..]) => format!("; it belongs in {}", places.join(" or ")),
            (near, []) => format!("; did you mean {}?", near[..near.len().min(2)].join(" or ")),
        };
        let message = format!("unknown field {field:?}{hint}");
        let said =
            format!("error unmarshaling JSON: while decoding JSON: json: unknown field {field:?}");
        let finding = Self::undecodable(document, path, message);
        let place = document.root.place_of_key(path).unwrap_or(finding.place);
        let contract = Some(FieldError { path: String::new(), message: said });
        let beside = |name: &String| format!("{around}.{}", name.trim_matches('"'));
        let there = |place: &String| format!("{place}.{field}");
        let mut meant: Vec<String> =
            near.iter().map(beside).chain(places.iter().map(there)).collect();
        if is_old_backend {
            meant.push(around.to_owned());
        }
        // The path is that of the manifest, however near it is to a path of the contract.
        Finding { place, rule: UNKNOWN_FIELD, contract, meant, path: path.to_owned(), ..finding }
    }

    /// The same, at another place of the document.
    pub fn at(self, place: Place) -> Self {
        Finding { place, ..self }
    }

    /// The same, by another name of what it is about.
    pub fn about(self, rule: &'static str) -> Self {
        Finding { rule, ..self }
    }

    /// The same in words of our own; scripts still get those they know.
    pub fn in_words(self, message: String) -> Self {
        let path = || self.path.clone();
        let said = |message| FieldError { path: path(), message };
        let contract = self.contract.clone().unwrap_or_else(|| said(self.message.clone()));
        Finding { message, contract: Some(contract), ..self }
    }

    /// A field error in one text, as the controller writes it into a condition: `path: message`.
    pub fn field_error(document: &Document, text: &str) -> Self {
        let (path, message) = text.split_once(": ").unwrap_or(("", text));
        Self::error(document, path, message.to_owned())
    }

    /// An error of the contract's validation.
    pub fn refused(document: &Document, error: &FieldError) -> Self {
        Self::error(document, &error.path, error.message.clone())
    }

    /// A text that is no YAML.
    pub fn malformed(source: &Arc<Source>, malformed: &Malformed) -> Self {
        Finding {
            severity: Severity::Error,
            stage: Stage::Decoding,
            rule: "yaml",
            path: String::new(),
            message: format!(
                "yaml: line {}: {}{}",
                malformed.place.line,
                malformed.message,
                yaml_hint(source, malformed)
            ),
            place: malformed.place,
            document: Place::default(),
            meant: Vec::new(),
            source: Arc::clone(source),
            contract: None,
        }
    }

    /// Is it about a mistake that this one has told already? The same field; one within it at the
    /// same place; or what follows from a field that could not be read.
    pub fn covers(&self, later: &Finding) -> bool {
        let (one, two) = (self.path.as_str(), later.path.as_str());
        let is_near = is_within(one, two) || is_within(two, one);
        let is_unread = [SCHEMA, UNKNOWN_FIELD].contains(&self.rule);
        let both = |start: &str| {
            self.message.starts_with(start) && later.message.starts_with(start) && is_near
        };
        let around = |path: &str| path.rsplit_once('.').map(|(around, _)| around.to_owned());
        let is_missing = self.rule == UNKNOWN_FIELD
            && later.message.starts_with("Required value")
            && around(one) == around(two);
        let is_required = later.for_scripts().starts_with("Required value");
        let is_meant = self.meant.iter().any(|meant| {
            is_within(meant, two)
                || is_required && around(meant).as_deref() == Some(two)
                || meant.ends_with(".steps") && later.message.starts_with("there are no steps")
        });
        // The mounts of a volume that has the name of another.
        let is_mount = self.message.starts_with("Duplicate value")
            && one.contains(".volumes[")
            && two.contains(".volumeMounts[")
            && later.message.starts_with("Not found");
        // What is referred to cannot be read, so nothing is.
        let is_unreferred = is_unread
            && (one == "spec.workloadRef"
                || self.meant.iter().any(|meant| meant == "spec.workloadRef"))
            && ["spec.selector", "spec.template"].iter().any(|outer| is_within(outer, two));
        // Arguments that cannot be read are not missing.
        let is_given = is_unread
            && later.message.contains(" was not resolved")
            && around(two).is_some_and(|analysis| is_within(&format!("{analysis}.args"), one));
        let is_unique = self.message.starts_with("Duplicate value")
            && later.message.ends_with("must be unique")
            && is_near;
        // What is wrong inside explains what is said of the whole.
        let is_whole = is_within(two, one)
            && one != two
            && (self.severity == Severity::Error && later.severity == Severity::Warning
                || later.message.ends_with("invalid label selector")
                || later.message.contains("empty selector is invalid"));
        if !Arc::ptr_eq(&self.source, &later.source) || self.document != later.document {
            return false;
        }
        is_meant
            || is_whole
            || is_mount
            || is_given
            || is_unreferred
            || is_unique
            || (self.severity == later.severity || is_missing)
                && (one == two
                    || self.place == later.place && is_near
                    || is_unread && around(one).as_deref() == Some(two)
                    || is_missing
                    || both("Duplicate value"))
    }

    /// Takes in another field that is missing at the same place.
    pub fn takes_in(&mut self, other: &Finding) -> bool {
        const MISSING: &str = "Required value";
        let around = |path: &str| path.rsplit_once('.').map(|(around, _)| around.to_owned());
        let is_beside = around(&self.path) == around(&other.path)
            && Arc::ptr_eq(&self.source, &other.source)
            && self.place == other.place;
        if !(is_beside && self.message.starts_with(MISSING) && other.message == MISSING) {
            return false;
        }
        self.message.push_str(if self.message == MISSING { ", and so are " } else { ", " });
        self.message.push_str(other.path.rsplit('.').next().unwrap_or_default());
        true
    }

    /// What scripts read of it.
    pub fn for_scripts(&self) -> &str {
        self.contract.as_ref().map_or(&self.message, |said| &said.message)
    }

    /// The field and what is wrong with it, as scripts read it.
    pub fn in_one_line(&self) -> String {
        let said = self.contract.as_ref();
        let (path, message) =
            said.map_or((&self.path, &self.message), |said| (&said.path, &said.message));
        if path.is_empty() || self.stage == Stage::Decoding {
            message.clone()
        } else {
            format!("{path}: {message}")
        }
    }

    /// The field and what is wrong with it, as people read it.
    pub fn said(&self) -> String {
        let field = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        format!("{field}{}", self.message)
    }
}

/// What was probably meant where a text is no YAML.
fn yaml_hint(source: &Source, malformed: &Malformed) -> &'static str {
    let line = source.text.lines().nth(malformed.place.line.saturating_sub(1)).unwrap_or_default();
    if line.contains("{{") {
        return "; this looks like a template: lint what it renders";
    }
    if malformed.message.contains("unknown anchor") {
        return "; a text that begins with * stands in quotes";
    }
    if malformed.message.starts_with("unexpected character") {
        return "; a text that begins with this character stands in quotes";
    }
    ""
}

/// Is the inner field the outer one, or a part of it?
pub fn is_within(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Errors of the contract leave out the name of a strategy; the manifest does not.
fn whole(document: &Document, path: &str) -> String {
    if path == "spec.template.labels" {
        return "spec.template.metadata.labels".to_owned();
    }
    let Some(field) = path.strip_prefix("spec.strategy.") else { return path.to_owned() };
    if field == "strategy" {
        return "spec.strategy".to_owned();
    }
    let first = field.split(['.', '[']).next().unwrap_or_default();
    let strategy = document.root.entry("spec").and_then(|spec| spec.value.entry("strategy"));
    let named = |name: &str| strategy.is_some_and(|strategy| strategy.value.entry(name).is_some());
    let inside = ["canary", "blueGreen"].into_iter().find(|name| named(name));
    match inside {
        Some(inside) if !["canary", "blueGreen"].contains(&first) => {
            format!("spec.strategy.{inside}.{field}")
        }
        _ => path.to_owned(),
    }
}

/// As compilers show it: what, where, the line, and the text underlined.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column, length } = self.place;
        let text = self.source.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let margin = " ".repeat(line.to_string().len());
        writeln!(f, "{}: {}", self.severity.name(), self.said())?;
        writeln!(f, "{margin}--> {}:{line}:{column}", self.source.name)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{line} | {text}")?;
        let before: String = text
            .chars()
            .take(column.saturating_sub(1))
            .map(|letter| if letter == '\t' { '\t' } else { ' ' })
            .collect();
        write!(f, "{margin} | {before}{}", "^".repeat(length.max(1)))
    }
}
