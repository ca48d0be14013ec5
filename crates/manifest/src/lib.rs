//! What does a manifest say, and where? YAML as kubectl reads it, every value with its place.
//!
//! kubectl reads YAML 1.1 through Go's JSON: `yes` is true, `0644` is 420, a key is always text.
//! A parser of YAML 1.2 would judge another document than the one that is applied.

mod scalar;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Map, Value};

/// Values that aliases may bring in again: aliases of aliases make a few lines larger than any memory.
const MOST_COPIED: usize = 400_000;

/// What the parser says of a quoted text whose later lines are less indented than YAML asks for.
const SHALLOW: &str = "invalid indentation in multiline quoted scalar";
/// Deeper than manifests are.
const DEEP: &str = "                                                                ";

/// A text with manifests, and what people call it.
#[derive(Debug)]
pub struct Source {
    /// The path of the file, or `-` for standard input.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A place in a source: lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
    /// Characters on that line.
    pub length: usize,
}

/// One document of a source.
#[derive(Clone, Debug)]
pub struct Document {
    /// Where it stands.
    pub source: Arc<Source>,
    /// What it says.
    pub root: Node,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub content: Content,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Content {
    /// Null, a truth, a number or a text.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// An object, in the order it is written.
    Object(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key, as text.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// The value.
    pub value: Node,
    /// Did the same object have this key before? The last one counts.
    pub is_repeated: bool,
    /// Did it have the key before, be it that it came in with `<<`?
    pub is_again: bool,
}

/// Why a text is no YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where it breaks.
    pub place: Place,
    /// What is wrong.
    pub message: String,
}

/// All documents of a source, empty ones left out; those of a list one by one, as
/// `kubectl get -o yaml` prints them.
pub fn read(source: &Arc<Source>) -> Result<Vec<Document>, Malformed> {
    let mut text = Cow::Borrowed(source.text.as_str());
    let mut line = 0;
    loop {
        match documents(source, &text) {
            // Each time further down, so this ends.
            Err(broken) if broken.message == SHALLOW && broken.place.line > line => {
                line = broken.place.line;
                text = Cow::Owned(deeper(&text, line));
            }
            result => return result,
        }
    }
}

/// The same text with the rest of a quoted text indented: how far it is does not matter to kubectl, and
/// not to what it says.
fn deeper(text: &str, line: usize) -> String {
    let mut is_inside = false;
    let mut indented = String::with_capacity(text.len() + 64);
    for (number, content) in (1..).zip(text.split_inclusive('\n')) {
        is_inside |= number == line;
        if is_inside {
            indented.push_str(DEEP);
            is_inside = !content.trim_end().ends_with(['\'', '"']);
        }
        indented.push_str(content);
    }
    indented
}

fn documents(source: &Arc<Source>, text: &str) -> Result<Vec<Document>, Malformed> {
    begins_with_no_tab(text)?;
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        text,
        anchors: BTreeMap::new(),
        copied: 0,
        is_cut: !text.ends_with('\n'),
        letters: text.chars().count(),
    };
    let mut documents = Vec::new();
    while let Some((event, span)) = reader.next()? {
        if matches!(event, Event::StreamStart | Event::StreamEnd) {
            continue;
        }
        match event {
            Event::DocumentStart(_, None) => {}
            Event::DocumentStart(_, Some(version)) if (version.major, version.minor) == (1, 1) => {}
            Event::DocumentStart(..) => {
                return Err(malformed(&span, "found incompatible YAML document".to_owned()));
            }
            _ => return Err(malformed(&span, "expected the start of a document".to_owned())),
        }
        reader.anchors.clear();
        let root = reader.node()?;
        reader.next()?; // The end of the document.
        if !matches!(&root.content, Content::Scalar(Value::Null)) {
            let roots = root.items_of_list().unwrap_or_else(|| vec![root]);
            let document = |root| Document { source: Arc::clone(source), root };
            documents.extend(roots.into_iter().map(document));
        }
    }
    Ok(documents)
}

/// A tab where the first line has its indentation is no YAML to kubectl.
fn begins_with_no_tab(text: &str) -> Result<(), Malformed> {
    let is_content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let Some((number, line)) = (1..).zip(text.lines()).find(|(_, line)| is_content(line)) else {
        return Ok(());
    };
    let indentation = line.len() - line.trim_start().len();
    match line[..indentation].find('\t') {
        None => Ok(()),
        Some(at) => Err(Malformed {
            place: Place { line: number, column: at + 1, length: 1 },
            message: "found character that cannot start any token".to_owned(),
        }),
    }
}

impl Document {
    /// The document as the API server would get it.
    pub fn json(&self) -> Value {
        self.root.json()
    }

    /// The text at the top, as `kind` or `metadata.name`.
    pub fn text(&self, path: &[&str]) -> Option<&str> {
        let mut node = &self.root;
        for key in path {
            node = &node.entry(key)?.value;
        }
        match &node.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }
}

impl Node {
    /// The value alone.
    pub fn json(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Node::json).collect(),
            Content::Object(entries) => {
                let pairs = entries.iter().map(|entry| (entry.key.clone(), entry.value.json()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// How many values it is made of.
    fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(Node::size).sum(),
            Content::Object(entries) => entries.iter().map(|entry| entry.value.size()).sum(),
        }
    }

    /// The entry of a key; the last where it is repeated.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.content {
            Content::Object(entries) => entries.iter().rev().find(|entry| entry.key == key),
            Content::List(_) | Content::Scalar(_) => None,
        }
    }

    /// The place of the last key of a path, whatever its value.
    pub fn place_of_key(&self, path: &str) -> Option<Place> {
        let (around, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut node = self;
        for step in around.split(['.', '[']).filter(|step| !step.is_empty()) {
            node = match step.strip_suffix(']') {
                Some(index) => node.item(index)?,
                None => &node.entry(step)?.value,
            };
        }
        node.entry(key).map(|entry| entry.place)
    }

    /// A key that one object has twice, and where it does so again; one that came in with `<<` counts,
    /// as it does for who reads strictly.
    pub fn repeated_key(&self) -> Option<(&str, Place)> {
        match &self.content {
            Content::Scalar(_) => None,
            Content::List(items) => items.iter().find_map(Node::repeated_key),
            Content::Object(entries) => entries.iter().find_map(|entry| {
                let own = entry.is_again.then_some((entry.key.as_str(), entry.place));
                own.or_else(|| entry.value.repeated_key())
            }),
        }
    }

    /// What a list of objects holds; nothing where this is no list.
    fn items_of_list(&self) -> Option<Vec<Node>> {
        let kind = &self.entry("kind")?.value.content;
        let is_list =
            matches!(kind, Content::Scalar(Value::String(kind)) if kind.ends_with("List"));
        match &self.entry("items")?.value.content {
            Content::List(items) if is_list => Some(items.clone()),
            _ => None,
        }
    }

    /// The place of a field named as error messages name it (`spec.steps[1].pause`), or of the
    /// nearest thing around it that is there: the value where it is short, else its key.
    pub fn place_of(&self, path: &str) -> Place {
        let mut node = self;
        let mut place = self.place;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match step.strip_suffix(']') {
                Some(index) => node.item(index).map(|item| (item, item.place)),
                None => node.entry(step).map(|entry| (&entry.value, entry.nearest())),
            };
            match next {
                Some((found, at)) => (node, place) = (found, at),
                None => break,
            }
        }
        place
    }

    /// An item by its index, or an entry by its quoted key.
    fn item(&self, index: &str) -> Option<&Node> {
        match &self.content {
            Content::List(items) => items.get(index.parse::<usize>().ok()?),
            _ => self.entry(index.trim_matches('"')).map(|entry| &entry.value),
        }
    }
}

impl Entry {
    /// The value itself where it stands on one line, else the key.
    fn nearest(&self) -> Place {
        let is_scalar = matches!(&self.value.content, Content::Scalar(value) if !value.is_null());
        if is_scalar && self.value.place.length > 0 { self.value.place } else { self.place }
    }
}

struct Reader<'t> {
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    text: &'t str,
    anchors: BTreeMap<usize, Node>,
    /// Values that stand in the text once and are meant again by an alias.
    copied: usize,
    /// The text ends within a line.
    is_cut: bool,
    letters: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, Malformed> {
        let is_comment = |next: &Result<(Event<'_>, Span), ScanError>| {
            matches!(next, Ok((Event::Comment(..), _)))
        };
        let next = self.parser.by_ref().find(|next| !is_comment(next));
        next.transpose().map_err(|error| broken(&error))
    }

    fn expect(&mut self) -> Result<(Event<'t>, Span), Malformed> {
        self.next()?.ok_or_else(|| Malformed {
            place: Place::default(),
            message: "the document ends too early".to_owned(),
        })
    }

    fn node(&mut self) -> Result<Node, Malformed> {
        let (event, span) = self.expect()?;
        self.node_of(event, &span)
    }

    fn node_of(&mut self, event: Event<'t>, span: &Span) -> Result<Node, Malformed> {
        let place = place(span);
        let (content, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let is_last = self.is_cut && span.end.index() >= self.letters;
                // A block that the end of the text cuts off has no line break at its end.
                let text = match text.strip_suffix('\n').filter(|_| is_block && is_last) {
                    Some(text) => text,
                    None => &text,
                };
                let quoted = self.quoted(style, span);
                let content = escapes(quoted).and_then(|()| scalar(text, style, tag.as_deref()));
                (Content::Scalar(content.map_err(|message| malformed(span, message))?), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list()?, anchor),
            Event::MappingStart(_, anchor, _) => (self.object()?, anchor),
            Event::Alias(anchor) => {
                let named = self.anchors.get(&anchor);
                let named = named.ok_or_else(|| malformed(span, "unknown anchor".to_owned()))?;
                self.copied += named.size();
                if self.copied > MOST_COPIED {
                    let message = "document contains excessive aliasing".to_owned();
                    return Err(malformed(span, message));
                }
                (named.content.clone(), 0)
            }
            other => return Err(malformed(span, format!("expected a value, found {other:?}"))),
        };
        let node = Node { place, content };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// What stands between the quotes of a text that may have escapes.
    fn quoted(&self, style: ScalarStyle, span: &Span) -> &'t str {
        let range = (span.start.byte_offset(), span.end.byte_offset());
        match (style, range) {
            (ScalarStyle::DoubleQuoted, (Some(start), Some(end))) => {
                self.text.get(start..end).unwrap_or_default()
            }
            _ => "",
        }
    }

    fn list(&mut self) -> Result<Content, Malformed> {
        let mut items = Vec::new();
        loop {
            match self.expect()? {
                (Event::SequenceEnd, _) => return Ok(Content::List(items)),
                (event, span) => items.push(self.node_of(event, &span)?),
            }
        }
    }

    fn object(&mut self) -> Result<Content, Malformed> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut own = BTreeSet::new();
        loop {
            let (event, span) = self.expect()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Content::Object(entries));
            }
            let plain = match &event {
                Event::Scalar(text, ScalarStyle::Plain, 0, None) => Some(text.to_string()),
                _ => None,
            };
            if plain.as_deref() == Some("<<") {
                self.node_of(event, &span)?;
                for entry in merge(self.node()?, &span)? {
                    // Whoever comes later counts, in whichever way it came.
                    let is_again = remove(&mut entries, &entry.key);
                    entries.push(Entry { is_again, ..entry });
                }
                continue;
            }
            let value = match plain {
                Some(text) => scalar::key(&text).map_err(|message| malformed(&span, message))?,
                None => self.key(event, &span)?,
            };
            let key = match value {
                Value::String(text) => text,
                Value::Null => {
                    return Err(malformed(&span, "a key must not be null".to_owned()));
                }
                other => other.to_string(),
            };
            let value = self.node()?;
            let is_repeated = !own.insert(key.clone());
            let is_again = is_repeated || remove(&mut entries, &key);
            entries.push(Entry { key, place: place(&span), value, is_repeated, is_again });
        }
    }

    /// A key that is not a plain word.
    fn key(&mut self, event: Event<'t>, span: &Span) -> Result<Value, Malformed> {
        match self.node_of(event, span)?.content {
            Content::Scalar(value) => Ok(value),
            _ => Err(malformed(span, "a key must be text".to_owned())),
        }
    }
}

/// Removes the entries of a key. Were there any?
fn remove(entries: &mut Vec<Entry>, key: &str) -> bool {
    let before = entries.len();
    entries.retain(|known| known.key != key);
    entries.len() < before
}

/// The entries of an object, or of a list of objects, merged into another with `<<`. The first of a list
/// counts, so it comes last.
fn merge(value: Node, span: &Span) -> Result<Vec<Entry>, Malformed> {
    match value.content {
        Content::Object(entries) => Ok(entries),
        Content::List(items) => {
            let mut all = Vec::new();
            for item in items.into_iter().rev() {
                all.extend(merge(item, span)?);
            }
            Ok(all)
        }
        Content::Scalar(_) => {
            Err(malformed(span, "map merge requires map or sequence of maps as the value".into()))
        }
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let is_plain = style == ScalarStyle::Plain;
    match tag {
        None if is_plain => scalar::resolve(text),
        None => Ok(Value::String(text.to_owned())),
        Some(tag) => {
            let name = tag.suffix_in_namespace("tag:yaml.org,2002:");
            scalar::tagged(text, name.as_deref().unwrap_or_default(), is_plain)
        }
    }
}

/// Escapes that YAML 1.2 knows and kubectl does not.
fn escapes(quoted: &str) -> Result<(), String> {
    let mut rest = quoted;
    while let Some((_, behind)) = rest.split_once('\\') {
        if behind.starts_with('/') {
            return Err("found unknown escape character".to_owned());
        }
        let digits = behind.strip_prefix('u').and_then(|digits| digits.get(..4));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if code.is_some_and(|code| (0xd800..0xe000).contains(&code)) {
            return Err("found invalid Unicode character escape code".to_owned());
        }
        let mut letters = behind.chars();
        letters.next();
        rest = letters.as_str();
    }
    Ok(())
}

fn place(span: &Span) -> Place {
    let (start, end) = (&span.start, &span.end);
    let length = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
    Place { line: start.line(), column: start.col() + 1, length }
}

fn malformed(span: &Span, message: String) -> Malformed {
    Malformed { place: place(span), message }
}

fn broken(error: &ScanError) -> Malformed {
    let at = error.marker();
    let place = Place { line: at.line(), column: at.col() + 1, length: 1 };
    Malformed { place, message: error.info().to_owned() }
}
