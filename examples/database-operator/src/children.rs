//! Which objects does a Database ask for, and what must be written to bring each there?

use gradus_engine::decision::{Change, Kind, ObjectRef};
use gradus_engine::family::Family;
use gradus_engine::frame::Frame;
use serde_json::{Value, json};

use crate::accept::bytes;
use crate::api::{ACCEPTED, CLAIM, LABEL, SECRET, SERVICE, STATEFUL_SET, Spec};

/// PostgreSQL's port.
const PORT: u16 = 5432;
/// What of a StatefulSet cannot be changed later.
const FIXED: [&str; 4] = ["serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates"];

/// The name of the one child of each kind.
pub fn name_of(family: &Family, kind: &Kind) -> String {
    let name = &family.head.meta.name;
    match &*kind.name {
        "Secret" => format!("{name}-credentials"),
        "PersistentVolumeClaim" => format!("data-{name}-0"),
        _ => name.to_string(),
    }
}

/// The child of this kind, if it is there.
pub fn child<'f>(family: &'f Family, kind: &Kind) -> Option<&'f Frame> {
    family.member(kind, &name_of(family, kind)).map(|frame| &**frame)
}

/// Where the child of this kind is.
pub fn place(family: &Family, kind: &Kind) -> ObjectRef {
    family.place(kind, &name_of(family, kind))
}

/// The Secret: made once, with what was drawn. Later only its metadata are touched.
pub fn new_secret(family: &Family, spec: &Spec, drawn: &[u8]) -> Change {
    let password: String = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
    let meta = &family.head.meta;
    let body = json!({
        "metadata": { "labels": labels(family), "annotations": accepted(spec) },
        "immutable": true, // PostgreSQL would not notice another password.
        "stringData": {
            "username": spec.settled.user, "password": password,
            "database": spec.settled.database,
            "host": format!("{}.{}.svc", meta.name, meta.namespace), "port": PORT.to_string(),
        },
    });
    family.create(&SECRET, &name_of(family, &SECRET), body, !spec.keep_data)
}

/// What is wrong with the Secret's metadata.
pub fn secret(family: &Family, spec: &Spec) -> Option<Change> {
    let wanted = json!({ "metadata": { "annotations": accepted(spec) } });
    family.repair(&SECRET, &name_of(family, &SECRET), &wanted, !spec.keep_data)
}

/// A headless Service: every pod under its own name.
pub fn service(family: &Family) -> Option<Change> {
    let body = json!({
        "metadata": { "labels": labels(family) },
        "spec": {
            "clusterIP": "None", "selector": labels(family),
            "ports": [{ "name": "postgres", "port": PORT, "targetPort": PORT }],
        },
    });
    family.bring(&SERVICE, &name_of(family, &SERVICE), body, &[])
}

/// The StatefulSet that runs PostgreSQL.
pub fn stateful_set(family: &Family, spec: &Spec) -> Option<Change> {
    let body = json!({
        "metadata": { "labels": labels(family) },
        "spec": {
            "replicas": spec.replicas,
            "serviceName": family.head.meta.name,
            // Of one pod there is no order to keep, and a pod that never starts is replaced.
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": labels(family) },
            // The claim belongs to the Database: a StatefulSet that is deleted takes no data along.
            "persistentVolumeClaimRetentionPolicy":
                { "whenDeleted": "Retain", "whenScaled": "Retain" },
            "template": {
                "metadata": { "labels": labels(family) },
                "spec": { "containers": [container(family, spec)] },
            },
            "volumeClaimTemplates": [{
                "metadata":
                    { "name": "data", "ownerReferences": family.owners(!spec.keep_data) },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": { "requests": { "storage": spec.settled.storage } },
                },
            }],
        },
    });
    family.bring(&STATEFUL_SET, &name_of(family, &STATEFUL_SET), body, &FIXED)
}

/// The claim: made by the StatefulSet, owned by the Database, and grown when more is wanted.
pub fn claim(family: &Family, spec: &Spec) -> Option<Change> {
    let size = &child(family, &CLAIM)?.spec["resources"]["requests"]["storage"];
    let wanted = if size.as_str().and_then(bytes) < bytes(&spec.settled.storage) {
        json!({ "spec": { "resources": { "requests": { "storage": spec.settled.storage } } } })
    } else {
        json!({})
    };
    family.repair(&CLAIM, &name_of(family, &CLAIM), &wanted, !spec.keep_data)
}

fn container(family: &Family, spec: &Spec) -> Value {
    let settled = &spec.settled;
    let password = json!({ "name": name_of(family, &SECRET), "key": "password" });
    json!({
        "name": "postgres",
        "image": format!("postgres:{}", settled.version),
        "env": [
            { "name": "POSTGRES_DB", "value": settled.database },
            { "name": "POSTGRES_USER", "value": settled.user },
            { "name": "POSTGRES_PASSWORD", "valueFrom": { "secretKeyRef": password } },
            { "name": "PGDATA", "value": "/var/lib/postgresql/data/files" },
        ],
        "ports": [{ "name": "postgres", "containerPort": PORT }],
        "readinessProbe":
            { "exec": { "command": ["pg_isready", "-U", settled.user, "-d", settled.database] } },
        "volumeMounts": [{ "name": "data", "mountPath": "/var/lib/postgresql/data" }],
    })
}

fn labels(family: &Family) -> Value {
    json!({ LABEL: family.head.meta.name })
}

fn accepted(spec: &Spec) -> Value {
    json!({ ACCEPTED: json!(spec.settled).to_string() })
}
