//! What is wrong, where, and how is it shown?

use std::fmt;
use std::sync::Arc;

use gradus_api::decode::FieldError;

use gradus_manifest::{Document, Malformed, Place, Source};

/// One thing that is wrong or doubtful.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Must it be mended?
    pub severity: Severity,
    /// When it shows.
    pub stage: Stage,
    /// The field, as error messages name it; empty for the whole document.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
    place: Place,
    source: Arc<Source>,
}

/// Must it be mended?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The API server or the controller refuses it.
    Error,
    /// It is accepted, and will surprise.
    Warning,
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
        Finding {
            severity: Severity::Error,
            stage: Stage::Validation,
            path: path.to_owned(),
            message,
            place: place_of(document, path),
            source: Arc::clone(&document.source),
        }
    }

    /// A field of a document that will surprise.
    pub fn warning(document: &Document, path: &str, message: String) -> Self {
        Finding { severity: Severity::Warning, ..Self::error(document, path, message) }
    }

    /// A document that cannot be read as what it says it is, at this field.
    pub fn undecodable(document: &Document, path: &str, message: String) -> Self {
        Finding { stage: Stage::Decoding, ..Self::error(document, path, message) }
    }

    /// The same, at another place of the document.
    pub fn at(self, place: Place) -> Self {
        Finding { place, ..self }
    }

    /// A key that a document must not have.
    pub fn unknown_field(document: &Document, path: &str, message: String) -> Self {
        let finding = Self::undecodable(document, path, message);
        let place = document.root.place_of_key(path).unwrap_or(finding.place);
        Finding { place, ..finding }
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
            path: String::new(),
            message: format!("yaml: line {}: {}", malformed.place.line, malformed.message),
            place: malformed.place,
            source: Arc::clone(source),
        }
    }

    /// The same field of the same document?
    pub fn is_same_place(&self, other: &Finding) -> bool {
        Arc::ptr_eq(&self.source, &other.source)
            && self.place == other.place
            && self.path == other.path
            && self.severity == other.severity
    }

    /// The field and what is wrong with it.
    pub fn in_one_line(&self) -> String {
        if self.path.is_empty() || self.stage == Stage::Decoding {
            self.message.clone()
        } else {
            format!("{}: {}", self.path, self.message)
        }
    }
}

/// Errors about a strategy leave out its name; the manifest does not.
fn place_of(document: &Document, path: &str) -> Place {
    let written = |strategy: &str| {
        let field = path.strip_prefix("spec.strategy.")?;
        let inside = format!("spec.strategy.{strategy}");
        let node = &document.root;
        let key = field.split(['.', '[']).next()?;
        let around = node.entry("spec")?.value.entry("strategy")?.value.entry(strategy)?;
        around.value.entry(key)?;
        Some(node.place_of(&format!("{inside}.{field}")))
    };
    let strategy = || written("canary").or_else(|| written("blueGreen"));
    strategy().unwrap_or_else(|| document.root.place_of(path))
}

/// As compilers show it: what, where, the line, and the text underlined.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Place { line, column, length } = self.place;
        let text = self.source.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let margin = " ".repeat(line.to_string().len());
        let field = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        writeln!(f, "{severity}: {field}{}", self.message)?;
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
