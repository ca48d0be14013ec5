//! Which tests does the suite have? Go lists its suites but not the tests in them, so its sources
//! are read for their names.

use std::{fmt, fs, io};

use super::suite::Suite;

/// One test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The type that has the method, e.g. `CanarySuite`.
    pub suite: String,
    /// The method.
    pub test: String,
}

/// All of them, sorted.
pub fn of(suite: &Suite) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(suite.folder())? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with("_test.go") {
            cases.extend(fs::read_to_string(path)?.lines().filter_map(case));
        }
    }
    cases.sort();
    Ok(cases)
}

impl Case {
    /// True for its suite, its test, or both with a slash.
    pub fn is_meant_by(&self, name: &str) -> bool {
        name == self.suite || name == self.test || name == self.to_string()
    }

    /// What selects this test alone.
    pub fn pattern(&self) -> String {
        format!("^{}$/^{}$", self.starter(), self.test)
    }

    /// As Go reports it.
    pub fn reported(&self) -> String {
        format!("{}/{}", self.starter(), self.test)
    }

    /// The function that starts its suite: `TestX` for a suite `X`, but for one.
    fn starter(&self) -> String {
        let suite = match self.suite.as_str() {
            "HeaderRouteSuite" => "HeaderRoutingSuite",
            suite => suite,
        };
        format!("Test{suite}")
    }

    /// A namespace of its own, unless it needs one that is there already.
    pub fn namespace(&self) -> String {
        if let Some(namespace) = self.fixed_namespace() {
            return namespace.to_owned();
        }
        let name = format!("{}-{}", self.suite, self.test).to_lowercase().replace('_', "-");
        name.chars().take(LONGEST_NAMESPACE).collect()
    }

    /// One suite reads its configuration in a namespace it names, and one test has a manifest that names
    /// a namespace.
    pub fn fixed_namespace(&self) -> Option<&'static str> {
        match (self.suite.as_str(), self.test.as_str()) {
            ("StepPluginSuite", _) => Some(super::ground::CONTROLLER_NAMESPACE),
            ("APISIXSuite", "TestAPISIXCanarySetHeaderStep") => Some("default"),
            _ => None,
        }
    }

    pub fn file_name(&self) -> String {
        format!("{}-{}.log", self.suite, self.test)
    }
}

/// A namespace is a DNS label.
const LONGEST_NAMESPACE: usize = 63;

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.suite, self.test)
    }
}

/// `func (s *CanarySuite) TestX() {`
fn case(line: &str) -> Option<Case> {
    let (receiver, method) = line.strip_prefix("func (s *")?.split_once(") ")?;
    let test = method.strip_suffix("() {").filter(|name| name.starts_with("Test"))?;
    Some(Case { suite: receiver.to_owned(), test: test.to_owned() })
}

#[test]
fn tests_are_methods_whose_name_begins_with_test() {
    let found = case("func (s *CanarySuite) TestX() {").unwrap();
    assert_eq!(found.pattern(), "^TestCanarySuite$/^TestX$");
    assert_eq!(found.reported(), "TestCanarySuite/TestX");
    assert_eq!(found.namespace(), "canarysuite-testx");
    let named = case("func (s *APISIXSuite) TestAPISIXCanarySetHeaderStep() {").unwrap();
    assert_eq!(named.namespace(), "default", "a manifest of this test names it");
    assert_eq!(case("func (s *CanarySuite) SetupSuite() {"), None);
    assert_eq!(case("func TestCanarySuite(t *testing.T) {"), None);
}
