//! Which objects does a Database ask for, and what must be written to bring each there?

use gradus_engine::decision::{Change, Kind, ObjectRef};
use gradus_engine::patch::{difference, overlay};
use serde_json::{Value, json};

use crate::accept::{Accepted, bytes};
use crate::api::{ACCEPTED, CLAIM, DATABASE, LABEL, SECRET, SERVICE, STATEFUL_SET, Spec};
use crate::world::{Child, Database};

/// PostgreSQL's port.
const PORT: u16 = 5432;

/// Where a child is, by its kind.
pub fn place(database: &Database, kind: Kind) -> ObjectRef {
    let name = &database.object.name;
    let own = match &*kind.name {
        "Secret" => format!("{name}-credentials").into(),
        "PersistentVolumeClaim" => format!("data-{name}-0").into(),
        _ => name.clone(),
    };
    ObjectRef::new(kind, &database.object.namespace, &own)
}

/// The Secret: made once, with what was drawn. Later only its metadata are touched.
pub fn new_secret(database: &Database, spec: &Spec, drawn: &[u8]) -> Change {
    let password: String = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
    let ObjectRef { namespace, name, .. } = &database.object;
    let mut body = json!({
        "metadata": { "labels": labels(database), "annotations": accepted(spec) },
        "immutable": true, // PostgreSQL would not notice another password.
        "stringData": {
            "username": spec.user,
            "password": password,
            "database": spec.database,
            "host": format!("{name}.{namespace}.svc"),
            "port": PORT.to_string(),
        },
    });
    if !spec.keep_data {
        body["metadata"]["ownerReferences"] = json!([reference(database)]);
    }
    Change::create(place(database, SECRET), body)
}

/// What is wrong with the Secret's metadata.
pub fn secret(database: &Database, spec: &Spec, found: &Child) -> Option<Change> {
    let wanted = json!({ "metadata": { "annotations": accepted(spec) } });
    repair(database, SECRET, found, &wanted, !spec.keep_data)
}

/// A headless Service: every pod under its own name.
pub fn service(database: &Database, found: Option<&Child>) -> Option<Change> {
    let body = json!({
        "metadata": { "labels": labels(database) },
        "spec": {
            "clusterIP": "None",
            "selector": labels(database),
            "ports": [{ "name": "postgres", "port": PORT, "targetPort": PORT }],
        },
    });
    bring(database, SERVICE, found, body, |_| {})
}

/// The StatefulSet that runs PostgreSQL.
pub fn stateful_set(database: &Database, spec: &Spec, found: Option<&Child>) -> Option<Change> {
    let owners = if spec.keep_data { json!([]) } else { json!([reference(database)]) };
    let body = json!({
        "metadata": { "labels": labels(database) },
        "spec": {
            "replicas": spec.replicas,
            "serviceName": database.object.name,
            // Of one pod there is no order to keep, and a pod that never starts is replaced.
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": labels(database) },
            // The claim belongs to the Database: a StatefulSet that is deleted takes no data along.
            "persistentVolumeClaimRetentionPolicy":
                { "whenDeleted": "Retain", "whenScaled": "Retain" },
            "template": {
                "metadata": { "labels": labels(database) },
                "spec": { "containers": [container(database, spec)] },
            },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data", "ownerReferences": owners },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": { "requests": { "storage": spec.storage } },
                },
            }],
        },
    });
    bring(database, STATEFUL_SET, found, body, |spec| {
        for fixed in ["serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates"] {
            spec[fixed].take();
        }
    })
}

/// The claim: made by the StatefulSet, owned by the Database, and grown when more is wanted.
pub fn claim(database: &Database, spec: &Spec, found: &Child) -> Option<Change> {
    let size = &found.content["spec"]["resources"]["requests"]["storage"];
    let wanted = if size.as_str().and_then(bytes) < bytes(&spec.storage) {
        json!({ "spec": { "resources": { "requests": { "storage": spec.storage } } } })
    } else {
        json!({})
    };
    repair(database, CLAIM, found, &wanted, !spec.keep_data)
}

/// Takes the Database off the owners of an object, so that it stays when the Database goes.
pub fn let_go(database: &Database, kind: Kind, found: &Child) -> Option<Change> {
    repair(database, kind, found, &json!({}), false)
}

fn container(database: &Database, spec: &Spec) -> Value {
    let secret = place(database, SECRET).name;
    json!({
        "name": "postgres",
        "image": format!("postgres:{}", spec.version),
        "env": [
            { "name": "POSTGRES_DB", "value": spec.database },
            { "name": "POSTGRES_USER", "value": spec.user },
            { "name": "POSTGRES_PASSWORD",
              "valueFrom": { "secretKeyRef": { "name": secret, "key": "password" } } },
            { "name": "PGDATA", "value": "/var/lib/postgresql/data/files" },
        ],
        "ports": [{ "name": "postgres", "containerPort": PORT }],
        "readinessProbe":
            { "exec": { "command": ["pg_isready", "-U", spec.user, "-d", spec.database] } },
        "volumeMounts": [{ "name": "data", "mountPath": "/var/lib/postgresql/data" }],
    })
}

/// Creates an object that is missing, or changes what we own of one that is there. `fixed` takes
/// out of the spec what cannot be changed later.
fn bring(
    database: &Database,
    kind: Kind,
    found: Option<&Child>,
    mut body: Value,
    fixed: impl FnOnce(&mut Value),
) -> Option<Change> {
    let Some(found) = found else {
        body["metadata"]["ownerReferences"] = json!([reference(database)]);
        return Some(Change::create(place(database, kind), body));
    };
    fixed(&mut body["spec"]);
    if let Some(fields) = body["spec"].as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    repair(database, kind, found, &body, true)
}

/// One patch of what we own and is not as wanted; everything else is left alone.
fn repair(
    database: &Database,
    kind: Kind,
    found: &Child,
    wanted: &Value,
    is_owned: bool,
) -> Option<Change> {
    let mut better = overlay(&found.content, wanted);
    // A selector is owned whole: one more requirement would select nothing.
    if let Some(selector) = wanted["spec"].get("selector") {
        better["spec"]["selector"] = selector.clone();
    }
    let mut patch = difference(&found.content, &better).unwrap_or(Value::Null);
    if found.owners.contains(&database.uid) != is_owned {
        let owners = if is_owned { json!([reference(database)]) } else { Value::Null };
        patch["metadata"]["ownerReferences"] = owners;
    }
    (!patch.is_null()).then(|| Change::patch(place(database, kind), patch, found.version))
}

fn labels(database: &Database) -> Value {
    json!({ LABEL: database.object.name })
}

fn accepted(spec: &Spec) -> Value {
    json!({ ACCEPTED: json!(Accepted::of(spec)).to_string() })
}

/// What makes the garbage collector remove a child with its Database.
fn reference(database: &Database) -> Value {
    json!({
        "apiVersion": DATABASE.api_version(), "kind": DATABASE.name, "name": database.object.name,
        "uid": database.uid, "controller": true, "blockOwnerDeletion": true,
    })
}
