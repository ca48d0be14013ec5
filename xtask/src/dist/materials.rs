//! The bill of materials: every package that is compiled into the program, as CycloneDX.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::{Value, json};

use super::{Release, output};
use crate::{Failure, repository};

/// Writes `gradus.cdx.json`.
pub(super) fn write(release: &Release) -> Result<(), Failure> {
    let mut cargo = Command::new(env!("CARGO"));
    let arguments = ["metadata", "--locked", "--format-version=1", "--filter-platform"];
    let said = output(cargo.current_dir(repository()).args(arguments).arg(super::host()?))?;
    let metadata: Value = serde_json::from_slice(&said.stdout)?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let wanted = compiled(&metadata, packages);
    let mut components: Vec<Value> = packages
        .iter()
        .filter(|package| wanted.contains(text(&package["id"])))
        .map(component)
        .collect();
    components.sort_by_key(|one| text(&one["purl"]).to_owned());
    println!("  bill of materials: {} packages", components.len());
    let document = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": { "component": {
            "type": "application", "name": "gradus", "version": release.version } },
        "components": components,
    });
    Ok(fs::write(release.folder.join("gradus.cdx.json"), format!("{document:#}\n"))?)
}

/// The packages that the program needs when it is built and not only when it is tested.
fn compiled<'m>(metadata: &'m Value, packages: &'m [Value]) -> BTreeSet<&'m str> {
    let nodes = metadata["resolve"]["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let program = packages.iter().find(|package| package["name"] == "gradus");
    let mut waiting: Vec<&str> = program.iter().map(|package| text(&package["id"])).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !found.insert(id) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id);
        let needs = node.and_then(|node| node["deps"].as_array()).into_iter().flatten();
        for need in needs {
            let kinds = need["dep_kinds"].as_array().into_iter().flatten();
            if kinds.into_iter().any(|kind| kind["kind"] != "dev") {
                waiting.push(text(&need["pkg"]));
            }
        }
    }
    found
}

fn component(package: &Value) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut component = json!({
        "type": "library", "name": name, "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
    });
    if let Some(licence) = package["license"].as_str() {
        component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    component
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn what_only_tests_need_is_left_out() {
    let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0" });
    let need = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
    let metadata = json!({ "resolve": { "nodes": [
        { "id": "gradus", "deps": [need("serde", Value::Null), need("proptest", json!("dev"))] },
        { "id": "serde", "deps": [need("build", json!("build"))] },
        { "id": "build", "deps": [] },
        { "id": "proptest", "deps": [] },
    ] } });
    let packages = ["gradus", "serde", "build", "proptest"].map(package);
    let found: Vec<&str> = compiled(&metadata, &packages).into_iter().collect();
    assert_eq!(found, ["build", "gradus", "serde"]);
}
