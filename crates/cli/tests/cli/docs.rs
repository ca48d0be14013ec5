//! Do the documents tell the truth? Their commands run, their manifests are valid, their links lead
//! somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gradus_api::crd::crds;
use gradus_api::rollout::RolloutSpec;
use gradus_api::validate::{SpecSource, validate};
use gradus_engine::rollout::supported::first_unsupported;
use gradus_lab::faults::Faults;
use gradus_lab::{Prepared, simulate};
use serde_json::{Value, json};

use crate::outputs::PRINTED;
use crate::program::{Running, command, folder, gradus};

/// A fenced block of a document.
pub struct Block {
    pub page: String,
    /// What stands after the fence: `console`, `yaml scenario`, …
    pub info: String,
    pub text: String,
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page of the documentation, by its path.
fn pages() -> Vec<PathBuf> {
    let mut pages = files("md");
    pages.sort();
    pages
}

/// Every file of the repository with this ending.
fn files(ending: &str) -> Vec<PathBuf> {
    let mut folders = vec![root()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            match path.is_dir() {
                true if name != "target" && !name.starts_with('.') => folders.push(path),
                false if path.extension().is_some_and(|found| found == ending) => files.push(path),
                _ => {}
            }
        }
    }
    files
}

/// Every fenced block of every page.
pub fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let [all, found] = ["```", "\n```"].map(|fence| text.matches(fence).count());
        assert_eq!(all, found, "{}: a fence begins its line", page.display());
        // Odd parts are inside fences.
        for part in text.split("\n```").skip(1).step_by(2) {
            let (info, text) = part.split_once('\n').unwrap();
            let page = page.display().to_string();
            blocks.push(Block { page, info: info.to_owned(), text: text.to_owned() });
        }
    }
    blocks
}

/// The only block of a kind.
pub fn the_block(info: &str) -> Block {
    let mut found: Vec<Block> = blocks().into_iter().filter(|block| block.info == info).collect();
    assert_eq!(found.len(), 1, "{info:?} is tried where it stands once");
    found.remove(0)
}

/// The arguments of a line that calls the program.
fn arguments(line: &str) -> Option<Vec<&str>> {
    let rest = line.strip_prefix("cargo run --release -- ").or(line.strip_prefix("gradus "))?;
    Some(rest.split_whitespace().collect())
}

/// Every kind of block, as its fence names it, and the test that tries such blocks. Those of
/// [`PRINTED`] show output.
const KINDS: [(&str, &str); 19] = [
    ("console", "every_console_block_runs"),
    ("console error", "every_console_block_runs"),
    ("json lines", "the_documented_lines_are_of_the_protocol"),
    ("rust", "every_piece_of_code_is_a_piece_of_ours"),
    ("sh", "every_task_in_the_documents_is_there"),
    ("sh check", "the_example_plugins_pass_the_check_and_all_that_is_said_fits_the_schema"),
    ("sh cluster", "a_cluster_is_set_up_as_the_documents_say"),
    ("sh complete", "kubectl_completes_live_names_as_the_documents_say"),
    ("sh demo", "the_demo_is_open_to_kubectl_as_the_documents_say"),
    ("sh install", "kubectl_finds_and_runs_the_plugin"),
    ("sh kind", "the_quick_start_builds_loads_and_applies_what_is_there"),
    ("sh operator", "every_command_runs"),
    ("sh plugin", "every_example_of_the_command_pages_works"),
    ("text picture", "every_function_in_a_picture_is_there"),
    ("yaml", "every_yaml_block_is_valid"),
    ("yaml behaviour", "every_yaml_block_is_valid"),
    ("yaml operator", "the_manifest_is_the_sample"),
    ("yaml plugins", "the_documented_configuration_is_accepted"),
    ("yaml scenario", "every_yaml_block_is_valid"),
];

#[test]
fn every_block_is_of_a_kind_that_a_test_tries() {
    let printed = PRINTED.map(|(kind, _)| (kind, "commands_print_what_the_documents_show"));
    let kinds: Vec<(&str, &str)> = KINDS.into_iter().chain(printed).collect();
    let blocks = blocks();
    for Block { page, info, text } in &blocks {
        let is_known = kinds.iter().any(|(kind, _)| kind == info);
        assert!(is_known, "{page}: nothing tries blocks of the kind {info:?}:\n{text}");
        let is_tried = !info.ends_with("operator") || page.ends_with("write-a-controller.md");
        assert!(is_tried, "{page}: the operator has a page of its own");
    }
    let code = code();
    for (kind, test) in kinds {
        assert!(blocks.iter().any(|block| block.info == kind), "no document has a {kind:?}");
        assert!(code.contains(&format!("fn {test}()")), "{kind:?}: there is no {test}");
    }
}

/// The text of all our sources, one line after the other, without indentation.
pub fn code() -> String {
    let texts = files("rs").into_iter().map(|path| std::fs::read_to_string(path).unwrap());
    texts
        .flat_map(|text| text.lines().map(|line| format!("{}\n", line.trim())).collect::<Vec<_>>())
        .collect()
}

#[test]
fn every_piece_of_code_is_a_piece_of_ours() {
    let code = code();
    for Block { page, text, .. } in blocks().iter().filter(|block| block.info == "rust") {
        for piece in text.split("\n\n") {
            let lines: Vec<&str> = piece.lines().map(str::trim).collect();
            assert!(code.contains(&lines.join("\n")), "{page}: in no file:\n{piece}");
        }
    }
}

#[test]
fn every_function_in_a_picture_is_there() {
    let code = code();
    for Block { page, text, .. } in blocks().iter().filter(|block| block.info == "text picture") {
        let functions = text.split_whitespace().filter_map(|word| word.strip_suffix("()"));
        for function in functions {
            assert!(code.contains(&format!("fn {function}")), "{page}: there is no {function}()");
        }
    }
}

#[test]
fn every_console_block_runs() {
    let mut count = 0;
    for (at, block) in blocks().iter().enumerate().filter(|(_, b)| b.info.starts_with("console")) {
        for line in block.text.lines() {
            let arguments = arguments(line);
            let arguments = arguments.unwrap_or_else(|| panic!("{}: {line}", block.page));
            let mut program = command(&arguments);
            let folder = folder(&format!("docs-{at}"));
            std::os::unix::fs::symlink(root().join("examples"), folder.join("examples")).unwrap();
            program.current_dir(folder);
            let mut running = Running::start(program);
            if arguments == ["demo"] {
                running.until("Healthy"); // This one runs until somebody ends it.
                running.signal("INT");
            }
            let is_refused = block.info == "console error";
            let status = running.end();
            assert_eq!(!status.success(), is_refused, "{}: {line}: {:?}", block.page, running.seen);
            count += 1;
        }
    }
    assert!(count > 3, "the documents show how to use the program");
}

/// kind and Docker are not asked for: what they are given must be there, and fit together.
#[test]
fn the_quick_start_builds_loads_and_applies_what_is_there() {
    let block = the_block("sh kind");
    let after = |start: &str| {
        let line = block.text.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("no line begins with {start:?}:\n{}", block.text))
    };
    assert!(root().join("Dockerfile").is_file());
    let image = after("docker build --tag ").strip_suffix(" .").expect("the repository is built");
    assert_eq!(after("kind load docker-image "), image);
    let install = std::fs::read_to_string(root().join("manifests/install.yaml")).unwrap();
    assert!(install.contains(&format!("image: {image}\n")), "install.yaml runs {image}");
    let mut applied = Vec::new();
    for line in block.text.lines().filter(|line| line.starts_with("kubectl apply ")) {
        let file = line.split(" -f ").nth(1).unwrap();
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        applied.extend(serde_saphyr::from_multiple::<Value>(&text).unwrap());
    }
    let name = after("kubectl get rollout ").split(' ').next().unwrap();
    let is_it = |one: &Value| one["kind"] == "Rollout" && one["metadata"]["name"] == name;
    assert!(applied.iter().any(is_it), "the Rollout {name} is applied");
}

#[test]
fn every_sample_rollout_is_valid() {
    let folder = root().join("examples/rollouts");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{}: what is it for?", path.display());
        let place = path.display().to_string();
        let manifests: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for rollout in manifests.iter().filter(|manifest| manifest["kind"] == "Rollout") {
            is_valid(rollout, &place);
            count += 1;
        }
    }
    assert!(count >= 4);
}

#[test]
fn every_yaml_block_is_valid() {
    for block in blocks().iter().filter(|block| block.info.starts_with("yaml")) {
        if block.info == "yaml behaviour" {
            let file = folder("docs-behaviour").join("behaviour.yaml");
            std::fs::write(&file, &block.text).unwrap();
            let sample = root().join("examples/rollouts/canary-with-analysis.yaml");
            let [sample, file] = [&sample, &file].map(|path| path.to_str().unwrap());
            let mut words = vec!["simulate", "-f", sample, "--behaviour", file];
            words.extend(["--image", "nginx:1.28"]);
            let done = gradus(&words);
            assert_eq!(done.code, Some(0), "{}: {}{}", block.page, done.stdout, done.stderr);
        } else if block.info == "yaml scenario" {
            let value: Value = serde_saphyr::from_str(&block.text).unwrap();
            let folder = folder("docs-scenario");
            let examples = folder.join("examples");
            std::fs::create_dir_all(folder.join("scenarios")).unwrap();
            std::os::unix::fs::symlink(root().join("examples"), examples).unwrap();
            let name = value["name"].as_str().unwrap();
            let path = folder.join("scenarios").join(format!("{name}.yaml"));
            std::fs::write(&path, &block.text).unwrap();
            let scenario = Prepared::new(gradus_lab::load(&path).unwrap()).unwrap();
            let outcome = simulate(&scenario, &Faults::default());
            let wrong: Vec<_> = outcome.violations.iter().map(ToString::to_string).collect();
            assert!(wrong.is_empty(), "{}: {}", block.page, wrong.join("\n"));
        } else if block.info == "yaml" {
            let file = folder("docs-yaml").join("manifest.yaml");
            std::fs::write(&file, &block.text).unwrap();
            let said = gradus(&["lint", "-f", file.to_str().unwrap()]);
            assert_eq!(said.code, Some(0), "{}: {}", block.page, said.stderr);
        }
    }
}

#[test]
fn the_demo_is_told_and_pictured_with_all_its_rollouts() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (page, picture, readme) = (read("docs/demo.md"), read("docs/demo.svg"), read("README.md"));
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("examples/rollouts")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy();
        let manifests: Vec<Value> =
            serde_saphyr::from_multiple(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for rollout in manifests.iter().filter(|manifest| manifest["kind"] == "Rollout") {
            let name = rollout["metadata"]["name"].as_str().unwrap();
            let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            assert!(row.is_some_and(|row| row.contains(&*file)), "{file} in docs/demo.md");
            assert!(picture.contains(&format!(">{name}</tspan>")), "{name} in docs/demo.svg");
            assert!(readme.contains(&format!("`{name}`")), "{name} in README.md");
            count += 1;
        }
    }
    assert_eq!(count, 6, "README.md and docs/demo.svg say six");
}

fn is_valid(manifest: &Value, place: &str) {
    assert_eq!(manifest["kind"], "Rollout", "{place}");
    let spec: RolloutSpec = serde_json::from_value(manifest["spec"].clone()).unwrap();
    let errors = validate(&spec, SpecSource::Written);
    assert!(errors.is_empty(), "{place}: {errors:?}");
}

#[test]
fn what_is_refused_is_said_to_be_refused() {
    let page = std::fs::read_to_string(root().join("docs/differences.md")).unwrap();
    let rows = page.split("## Not there yet").nth(1).unwrap().split("\n## ").next().unwrap();
    let said: BTreeSet<&str> = rows.split('`').filter(|text| text.starts_with("spec.")).collect();
    let mut refused = BTreeSet::new();
    let properties = &crds()[0].1["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let canary = &properties["spec"]["properties"]["strategy"]["properties"]["canary"];
    let fields = &canary["properties"]["trafficRouting"]["properties"];
    let routers = fields.as_object().unwrap().iter().filter(|(_, field)| field["type"] == "object");
    for (router, _) in routers {
        let asked_for = json!({ router: { "config": {} } });
        let strategy = json!({ "canary": { "trafficRouting": asked_for } });
        let spec = serde_json::from_value(json!({ "strategy": strategy })).unwrap();
        refused.extend(first_unsupported(&spec).map(|fault| fault.path));
    }
    assert!(refused.iter().map(String::as_str).eq(said), "refused are {refused:?}");
}

#[test]
fn every_page_can_be_reached_from_the_readme_and_no_link_is_dead() {
    let mut reached = BTreeSet::new();
    let mut left = vec![root().join("README.md")];
    while let Some(page) = left.pop() {
        if !reached.insert(page.clone()) || page.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let target = target.canonicalize();
            let target =
                target.unwrap_or_else(|_| panic!("{}: {link} leads nowhere", page.display()));
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#')).map(slug);
                let is_found = headings.any(|heading| heading == anchor);
                assert!(is_found, "{}: {link} leads nowhere", page.display());
            }
            left.push(target);
        }
    }
    for page in pages() {
        assert!(reached.contains(&page), "{} cannot be found from the README", page.display());
    }
}

/// Links to files of the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://"))
}

/// A heading as links name it.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
