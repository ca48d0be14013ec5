//! What is wrong with a CustomResourceDefinition? The words are the API server's.

use serde_json::{Value, json};

use crate::admit::{dns_1035, subdomain};
use crate::error::Cause;
use crate::object::Meta;
use crate::schema;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What makes a group that belongs to Kubernetes available to others.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Everything that is wrong with a definition, or with its new state. `stored` are the versions
/// in which objects were ever stored, with the new one.
pub(crate) fn check(
    meta: &Meta,
    spec: &Value,
    before: Option<&Value>,
    stored: &[String],
) -> Vec<Cause> {
    let mut causes = Vec::new();
    if before.is_none() {
        check_name(&meta.name, spec, &mut causes);
    }
    check_group(text(spec, "group"), &mut causes);
    match text(spec, "scope") {
        "Namespaced" | "Cluster" => {}
        "" => causes.push(Cause::required("spec.scope", "")),
        _ => causes.push(Cause::unsupported(
            "spec.scope",
            &spec["scope"],
            &["Cluster", "Namespaced"],
        )),
    }
    check_versions(spec, &mut causes);
    check_names(&spec["names"], &mut causes);
    check_conversion(&spec["conversion"], &mut causes);
    if let Some(before) = before {
        check_kept(spec, before, &mut causes);
    }
    check_stored(versions(spec), stored, &mut causes);
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let rest = text(spec, "group").strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if is_protected && before.is_none() && !meta.annotations.contains_key(APPROVED) {
        let why = format!(
            "protected groups must have approval annotation {APPROVED:?}, see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        causes.push(Cause::required(format!("metadata.annotations[{APPROVED}]"), &why));
    }
    if spec["preserveUnknownFields"] == true {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &json!(true), why));
    }
    causes
}

fn check_name(name: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let expected = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
    if name != expected {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
}

fn check_group(group: &str, causes: &mut Vec<Cause>) {
    let problems = subdomain(group);
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
    } else if !problems.is_empty() {
        causes.push(Cause::invalid("spec.group", &json!(group), &problems.join(",")));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        causes.push(Cause::invalid("spec.group", &json!(group), why));
    }
}

fn check_versions(spec: &Value, causes: &mut Vec<Cause>) {
    let versions = versions(spec);
    for (index, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(field, ""));
        }
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut is_repeated = false;
    for (index, version) in versions.iter().enumerate() {
        let name = text(version, "name");
        is_repeated |= seen.contains(&name);
        seen.push(name);
        let problems = dns_1035(name);
        if !problems.is_empty() {
            let field = format!("spec.versions[{index}].name");
            causes.push(Cause::invalid(field, &json!(name), &problems.join(",")));
        }
        if version["deprecated"] != true && version["deprecationWarning"].is_string() {
            let field = format!("spec.versions[{index}].deprecationWarning");
            let why = "can only be set for deprecated versions";
            causes.push(Cause::invalid(field, &version["deprecationWarning"], why));
        }
    }
    check_parts(versions, causes);
    let first = versions.first().map_or("", |version| text(version, "name"));
    let problems = dns_1035(first);
    if !versions.is_empty() && !problems.is_empty() {
        // The server keeps the first version's name once more.
        causes.push(Cause::invalid("spec.version", &json!(first), &problems.join(",")));
    }
    if is_repeated {
        let why = "must contain unique version names";
        causes.push(Cause::invalid("spec.versions", &spec["versions"], why));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &spec["versions"], why));
    }
}

/// Where a status is a side of its own, a schema may say of the whole no more than what still
/// holds when the status is looked at by itself.
fn check_root(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    const ALLOWED: [&str; 22] = [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ];
    let schema = &schema["openAPIV3Schema"];
    let mut said = schema.as_object().into_iter().flat_map(serde_json::Map::keys);
    if said.any(|name| !ALLOWED.contains(&name.as_str())) {
        let why = format!(
            "only {ALLOWED:?} fields are allowed at the root of the schema if the status \
             subresource is enabled"
        );
        causes.push(Cause::invalid(format!("{path}.openAPIV3Schema"), schema, &why));
    }
}

/// Schemas, sides and columns. What all versions have in common the server keeps once for all of
/// them, and names it so.
fn check_parts(versions: &[Value], causes: &mut Vec<Cause>) {
    let is_common = |field: &str| {
        let first = versions.first().map(|version| &version[field]);
        first.is_some_and(|first| {
            !first.is_null() && versions.iter().all(|version| version[field] == *first)
        })
    };
    for (index, version) in versions.iter().enumerate() {
        let has_status = version["subresources"].get("status").is_some_and(Value::is_object);
        if is_common("schema") && has_status {
            check_root(&version["schema"], "spec.validation", causes);
            break;
        }
        if has_status {
            check_root(&version["schema"], &format!("spec.versions[{index}].schema"), causes);
        }
    }
    for (field, common, check) in [
        ("schema", "validation", check_schema as fn(&Value, &str, &mut Vec<Cause>)),
        ("subresources", "subresources", check_sides),
        ("additionalPrinterColumns", "additionalPrinterColumns", check_columns),
    ] {
        if is_common(field) {
            check(&versions[0][field], &format!("spec.{common}"), causes);
            continue;
        }
        for (index, version) in versions.iter().enumerate() {
            check(&version[field], &format!("spec.versions[{index}].{field}"), causes);
        }
    }
}

fn check_schema(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    causes.extend(schema::problems(&schema["openAPIV3Schema"], &format!("{path}.openAPIV3Schema")));
}

fn check_sides(sides: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(scale) = sides.get("scale").filter(|scale| scale.is_object()) else { return };
    for (name, roots, why) in [
        ("specReplicasPath", [".spec."].as_slice(), "should be a json path under .spec"),
        ("statusReplicasPath", [".status."].as_slice(), "should be a json path under .status"),
        (
            "labelSelectorPath",
            [".spec.", ".status."].as_slice(),
            "should be a json path under either .spec or .status",
        ),
    ] {
        let field = format!("{path}.scale.{name}");
        match text(scale, name) {
            "" if name == "labelSelectorPath" => {}
            "" => causes.push(Cause::required(field, "")),
            path if !path.starts_with('.') => causes.push(not_simple(field, path)),
            path if !roots.iter().any(|root| path.starts_with(root)) => {
                causes.push(Cause::invalid(field, &json!(path), why));
            }
            _ => {}
        }
    }
}

fn check_columns(columns: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (index, column) in list(columns).iter().enumerate() {
        let at = |field: &str| format!("{path}[{index}].{field}");
        if text(column, "name").is_empty() {
            causes.push(Cause::required(at("name"), ""));
        }
        let one_of = |known: &[&str]| format!("must be one of {}", known.join(","));
        match text(column, "type") {
            "" => causes.push(Cause::required(at("type"), &one_of(&COLUMN_TYPES))),
            kind if !COLUMN_TYPES.contains(&kind) => {
                causes.push(Cause::invalid(at("type"), &json!(kind), &one_of(&COLUMN_TYPES)));
            }
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            causes.push(Cause::invalid(at("format"), &json!(format), &one_of(&COLUMN_FORMATS)));
        }
        match text(column, "jsonPath") {
            "" => causes.push(Cause::required(at("JSONPath"), "")),
            path if !path.starts_with('.') => causes.push(not_simple(at("JSONPath"), path)),
            _ => {}
        }
    }
}

fn not_simple(field: String, path: &str) -> Cause {
    Cause::invalid(field, &json!(path), "must be a simple json path starting with .")
}

fn check_names(names: &Value, causes: &mut Vec<Cause>) {
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(names, name).is_empty() {
            causes.push(Cause::required(format!("spec.names.{name}"), ""));
        }
    }
    for name in ["plural", "singular", "kind", "listKind"] {
        let said = text(names, name);
        let is_kind = matches!(name, "kind" | "listKind");
        let problems = if is_kind { dns_1035(&said.to_lowercase()) } else { dns_1035(said) };
        if said.is_empty() || problems.is_empty() {
            continue;
        }
        let mixed = "may have mixed case, but should otherwise match: ";
        let why = format!("{}{}", if is_kind { mixed } else { "" }, problems.join(","));
        causes.push(Cause::invalid(format!("spec.names.{name}"), &json!(said), &why));
    }
    for field in ["shortNames", "categories"] {
        for (index, said) in list(&names[field]).iter().enumerate() {
            let problems = dns_1035(said.as_str().unwrap_or_default());
            if !problems.is_empty() {
                let field = format!("spec.names.{field}[{index}]");
                causes.push(Cause::invalid(field, said, &problems.join(",")));
            }
        }
    }
    if !text(names, "kind").is_empty() && names["kind"] == names["listKind"] {
        let why = "kind and listKind may not be the same";
        causes.push(Cause::invalid("spec.names.listKind", &names["listKind"], why));
    }
}

fn check_conversion(conversion: &Value, causes: &mut Vec<Cause>) {
    let strategies = ["None", "Webhook"];
    let strategy = text(conversion, "strategy");
    if !strategies.contains(&strategy) {
        let field = "spec.conversion.strategy";
        causes.push(Cause::unsupported(field, &json!(strategy), &strategies));
    }
    if strategy != "Webhook" {
        return;
    }
    let webhook = &conversion["webhook"];
    if webhook["clientConfig"].is_null() {
        let why = "required when strategy is set to Webhook";
        causes.push(Cause::required("spec.conversion.webhookClientConfig", why));
    }
    if list(&webhook["conversionReviewVersions"]).is_empty() {
        causes.push(Cause::required("spec.conversion.conversionReviewVersions", ""));
    }
}

/// What objects are stored by stays as it is.
fn check_kept(spec: &Value, before: &Value, causes: &mut Vec<Cause>) {
    for (field, new, old) in [
        ("spec.scope", &spec["scope"], &before["scope"]),
        ("spec.names.kind", &spec["names"]["kind"], &before["names"]["kind"]),
        ("spec.group", &spec["group"], &before["group"]),
        ("spec.names.plural", &spec["names"]["plural"], &before["names"]["plural"]),
    ] {
        if new != old {
            causes.push(Cause::invalid(field, new, "field is immutable"));
        }
    }
}

/// A version stays as long as an object may be stored in it.
fn check_stored(versions: &[Value], stored: &[String], causes: &mut Vec<Cause>) {
    let field = "status.storedVersions";
    if stored.is_empty() {
        let why = "must have at least one stored version";
        causes.push(Cause::invalid(field, &json!([]), why));
        return;
    }
    for name in versions.iter().filter(|one| one["storage"] == true).map(|one| text(one, "name")) {
        if !stored.iter().any(|one| one == name) {
            let why = format!("must have the storage version {name}");
            causes.push(Cause::invalid(field, &json!(stored), &why));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == **name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            causes.push(Cause::invalid(format!("{field}[{index}]"), &json!(name), &why));
        }
    }
}

fn versions(spec: &Value) -> &[Value] {
    list(&spec["versions"])
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
