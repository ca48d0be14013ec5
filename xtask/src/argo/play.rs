//! How does one test of the suite end, and what did both sides say?

use std::{
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use super::{
    catalogue::Case,
    ground,
    stand_in::{NEED_THE_INTERNET, StandIn},
    suite::Suite,
};
use crate::{
    Failure,
    plane::User,
    process::{Process, Recipe},
    real::{create_namespace, remove_namespace},
    stage::Stage,
};

/// The longest test takes about three minutes.
const LONGEST: &str = "8m";

/// The suite's own patience with each state it waits for, in seconds; a busy machine is slow.
const PATIENCE_SECONDS: &str = "90";

/// How often the end of a test is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How many lines of each side are printed.
const QUOTED_LINES: usize = 12;

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestResult {
    Passed,
    Failed,
    /// The suite itself found something missing that it needs.
    Skipped,
}

/// A test that was played.
#[derive(Clone, Debug)]
pub struct Played {
    pub case: Case,
    pub verdict: TestResult,
    pub seconds: u64,
    /// What the test printed.
    output: String,
    /// What our controller said about its namespace meanwhile.
    log: Vec<String>,
}

/// Plays one test to its end; `run` tells several runs of one test apart.
pub async fn alone(
    stage: &Stage,
    suite: &Suite,
    stand_in: &StandIn,
    case: &Case,
    run: &str,
) -> Result<Played, Failure> {
    if NEED_THE_INTERNET.contains(&case.to_string().as_str()) {
        println!("{case} asks the Internet, by an address that is compiled into it");
        return Ok(Played::skipped(case));
    }
    let is_own = case.fixed_namespace().is_none();
    let namespace = case.namespace();
    let namespace = if is_own { format!("{namespace}{run}") } else { namespace };
    let client = stage.plane.client(User::Person).await?;
    if is_own {
        create_namespace(&client, &namespace).await?;
    }
    stage.kubelet.behave(&namespace, ground::behaviours(case));
    let began = Instant::now();
    let (ended_well, output) = play(stage, (suite, stand_in), case, &namespace, run).await?;
    let seconds = began.elapsed().as_secs();
    let log = lines_about(&namespace, &stage.plane.folder().join("controller.log"))?;
    if is_own {
        remove_namespace(&client, &namespace).await?;
    }
    let verdict = verdict(case, &output, ended_well);
    Ok(Played { case: case.clone(), verdict, seconds, output, log })
}

async fn play(
    stage: &Stage,
    (suite, stand_in): (&Suite, &StandIn),
    case: &Case,
    namespace: &str,
    run: &str,
) -> io::Result<(bool, String)> {
    let name = format!("{}{run}", case.to_string().replace('/', "-"));
    let kubeconfig = stage.plane.kubeconfig_in(namespace).map_err(io::Error::other)?;
    let recipe = Recipe::new(&name, &suite.program())
        .argument("-test.v")
        .argument("-test.short")
        .flag("test.timeout", LONGEST)
        .flag("test.run", case.pattern())
        .within(stand_in.folder())
        .variable("KUBECONFIG", kubeconfig)
        .variable("HOME", stage.plane.folder())
        .variable("PATH", stage.plane.path_with_kubectl())
        .variable("E2E_WAIT_TIMEOUT", PATIENCE_SECONDS)
        // Tests of load balancers are skipped where it is not set; none of its annotations matters.
        .variable("E2E_ALB_INGESS_ANNOTATIONS", "{}");
    let mut process = Process::start(&recipe, stage.plane.folder())?;
    let status = loop {
        if let Some(status) = process.ended()? {
            break status;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    let output = fs::read_to_string(stage.plane.folder().join(format!("{name}.log")))?;
    Ok((status.success(), output))
}

/// A test that nobody ran is no success.
fn verdict(case: &Case, output: &str, ended_well: bool) -> TestResult {
    let result = |word: &str| output.contains(&format!("--- {word}: {} (", case.reported()));
    if ended_well && result("PASS") {
        TestResult::Passed
    } else if ended_well && output.contains("--- SKIP: ") {
        TestResult::Skipped
    } else {
        TestResult::Failed
    }
}

fn lines_about(namespace: &str, log: &Path) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(log)?;
    let mark = format!("{namespace}/");
    Ok(text.lines().filter(|line| line.contains(&mark)).map(str::to_owned).collect())
}

impl Played {
    fn skipped(case: &Case) -> Self {
        Self {
            case: case.clone(),
            verdict: TestResult::Skipped,
            seconds: 0,
            output: String::new(),
            log: Vec::new(),
        }
    }

    /// Both sides, whole.
    pub fn whole(&self) -> String {
        format!("{}\n--- our log\n{}\n", self.output, self.log.join("\n"))
    }

    /// The end of what the test said before it gave up; what follows are objects printed whole.
    pub fn last_words(&self) -> String {
        let is_an_object =
            |line: &&str| line.starts_with("apiVersion: ") || line.starts_with("Name: ");
        let lines: Vec<&str> = self.output.lines().collect();
        let end = lines.iter().position(is_an_object).unwrap_or(lines.len());
        last(&lines[..end])
    }

    pub fn our_last_words(&self) -> String {
        if self.log.is_empty() {
            return "    nothing about its namespace".to_owned();
        }
        last(&self.log.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn last(lines: &[&str]) -> String {
    let quoted = &lines[lines.len().saturating_sub(QUOTED_LINES)..];
    quoted.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_verdict_needs_the_word_of_the_test_itself() {
    let case = Case { suite: "ASuite".to_owned(), test: "TestX".to_owned() };
    let passed = "=== RUN\n    --- PASS: TestASuite/TestX (1.00s)\nPASS\n";
    let cases = [
        ("it says so", passed, true, TestResult::Passed),
        ("it says so, but the program fails", passed, false, TestResult::Failed),
        ("no test was run", "testing: warning: no tests to run\nPASS\n", true, TestResult::Failed),
        ("it was skipped", "--- SKIP: TestASuite (0.1s)\nPASS\n", true, TestResult::Skipped),
        ("it failed", "--- FAIL: TestASuite/TestX (1.00s)\nFAIL\n", false, TestResult::Failed),
    ];
    for (what, output, ended_well, expected) in cases {
        assert_eq!(verdict(&case, output, ended_well), expected, "{what}");
    }
}
