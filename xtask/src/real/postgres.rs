//! Does a Database hold what is written into it? PostgreSQL itself runs as its pod.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{Api, Client, api::DeleteParams};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::process::Command;

use super::{deeds, reported};
use crate::{Failure, folder::Folder, kubelet::Image, plane::User, stage::Stage, summary::Summary};

const NAMESPACE: &str = "postgres";

/// Where Debian keeps PostgreSQL, by major version.
const PACKAGES: &str = "/usr/lib/postgresql";

/// Who runs it: it refuses to be root.
const USER: &str = "postgres";

/// Making the files of a new database takes seconds; a busy machine takes more.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the image does when its container starts.
const START: &str = r#"
set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf '%s\n' "$POSTGRES_PASSWORD" | "$0/initdb" --pgdata="$PGDATA" --username="$POSTGRES_USER" \
    --auth=scram-sha-256 --pwfile=/dev/stdin --no-locale --encoding=UTF8
  printf 'CREATE DATABASE %s;\n' "$POSTGRES_DB" | "$0/postgres" --single -D "$PGDATA" postgres
fi
exec "$0/postgres" -D "$PGDATA" -h "$POD_IP" -p 5432 -k ''
"#;

#[derive(Debug, Error)]
enum PostgresError {
    #[error("Database orders: expected it to be ready within {} s, found {status}", PATIENCE.as_secs())]
    NotReady { status: Value },
    #[error("psql: {0}")]
    Query(String),
    #[error("after the pod was deleted: expected the row that was written, found {0:?}")]
    RowLost(String),
}

/// Logs in with the Secret's credentials, writes a row, deletes the pod and reads the row back.
pub async fn keeps_a_row(stage: &Stage) -> Summary {
    let Some(programs) = installed() else {
        println!("  postgres: skipped: no PostgreSQL in {PACKAGES} (apt install postgresql)");
        return Summary::skipped();
    };
    reported("postgres", scenario(stage, &programs)).await
}

async fn scenario(stage: &Stage, programs: &Path) -> Result<(), Failure> {
    let client = stage.plane.client(User::Person).await?;
    deeds::create_namespace(&client, NAMESPACE).await?;
    stage.kubelet.run_locally(NAMESPACE, image(programs)?);
    let manifest = json!({
        "apiVersion": "database.gradus.dev/v1", "kind": "Database",
        "metadata": { "name": "orders" },
        "spec": { "version": "15.6", "replicas": 1, "storage": "1Gi", "database": "orders",
                  "user": "clerk" },
    });
    deeds::apply(&client, NAMESPACE, &manifest).await?;
    let first = ready(&client, &manifest, "").await?;
    let query = |sql| query(&client, programs, sql);
    query("CREATE TABLE pear (name text); INSERT INTO pear VALUES ('conference')").await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    pods.delete("orders-0", &DeleteParams::default()).await?;
    ready(&client, &manifest, &first).await?;
    let row = query("SELECT name FROM pear").await?;
    if row.trim() != "conference" {
        return Err(PostgresError::RowLost(row).into());
    }
    Ok(()) // It stays: the silence that is checked later includes a running database.
}

/// Waits until the Database is ready on another pod than this one; returns the pod's uid.
async fn ready(client: &Client, manifest: &Value, other: &str) -> Result<String, Failure> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let began = Instant::now();
    loop {
        let status = deeds::find(client, NAMESPACE, manifest).await?["status"].clone();
        let pod = pods.get_opt("orders-0").await?.filter(is_ready);
        let uid = pod.and_then(|pod| pod.metadata.uid).unwrap_or_default();
        if status["phase"] == "Ready" && !uid.is_empty() && uid != other {
            return Ok(uid);
        }
        if began.elapsed() > PATIENCE {
            return Err(PostgresError::NotReady { status }.into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The Database's own word may be of the pod before.
fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// What psql answers, logged in with what the Secret says.
async fn query(client: &Client, programs: &Path, sql: &str) -> Result<String, Failure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let data = secrets.get("orders-credentials").await?.data.unwrap_or_default();
    let text = |key: &str| {
        let bytes = data.get(key).map(|bytes| bytes.0.clone()).unwrap_or_default();
        String::from_utf8(bytes)
    };
    let address = pods.get("orders-0").await?.status.and_then(|status| status.pod_ip);
    let output = Command::new(programs.join("psql"))
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"])
        .args(["--command", sql])
        .env("PGHOST", address.unwrap_or_default())
        .env("PGPORT", text("port")?)
        .env("PGUSER", text("username")?)
        .env("PGPASSWORD", text("password")?)
        .env("PGDATABASE", text("database")?)
        .output()
        .await?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(PostgresError::Query(words).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// PostgreSQL as the image that Databases run.
fn image(programs: &Path) -> Result<Image, Failure> {
    let is_root = std::fs::metadata("/proc/self")?.uid() == 0;
    let mut command: Vec<String> = Vec::new();
    if is_root {
        let user = [format!("--reuid={USER}"), format!("--regid={USER}")];
        command.push("setpriv".to_owned());
        command.extend(user);
        command.push("--clear-groups".to_owned());
    }
    command.extend(["sh".to_owned(), "-c".to_owned(), START.to_owned()]);
    command.push(programs.display().to_string());
    let folder = Folder::create("volumes")?;
    let user = is_root.then_some(USER);
    let programs = (programs.to_owned(), "PGHOST");
    Ok(Image { name: "postgres:", command, user, programs, folder })
}

/// The programs of the newest PostgreSQL on this machine.
fn installed() -> Option<PathBuf> {
    let versions = std::fs::read_dir(PACKAGES).ok()?.filter_map(Result::ok);
    let programs = versions.map(|version| version.path().join("bin"));
    programs.filter(|programs| programs.join("initdb").is_file()).max()
}
