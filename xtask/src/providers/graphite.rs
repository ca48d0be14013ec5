//! graphite-web over files that whisper writes; carbon is not needed.

use std::{fs, path::Path};

use serde_json::json;

use super::{Case, moto::listens, python::Python};
use crate::{
    Failure, ports,
    process::{Process, Recipe},
};

pub const PACKAGES: &[&str] =
    &["graphite-web==1.1.10", "whisper==1.1.10", "Django<4", "gunicorn<24", "setuptools<81"];

/// Where everything of graphite-web is.
const SETTINGS: &str = r#"
import os
HERE = os.path.dirname(os.path.abspath(__file__))
SECRET_KEY = "a test"
STORAGE_DIR = CONF_DIR = LOG_DIR = HERE
WHISPER_DIR = os.path.join(HERE, "whisper")
DATABASES = {"default": {"NAME": os.path.join(HERE, "graphite.db"),
                         "ENGINE": "django.db.backends.sqlite3"}}
"#;

/// The value 2.5 every ten seconds of the last five minutes.
const POINTS: &str = r#"
import os, sys, time, whisper
folder = os.path.join(sys.argv[1], "whisper", "app")
os.makedirs(folder)
path = os.path.join(folder, "errors.wsp")
whisper.create(path, [(10, 360)])
now = int(time.time())
whisper.update_many(path, [(now - 10 * back, 2.5) for back in range(60)])
"#;

/// A running graphite-web; dropping it ends it.
pub struct Running {
    _process: Process,
    port: u16,
}

pub async fn start(python: &Python, folder: &Path) -> Result<Running, Failure> {
    let folder = folder.join("graphite");
    fs::create_dir(&folder)?;
    fs::write(folder.join("local_settings.py"), SETTINGS)?;
    python.run(POINTS, &folder)?;
    let [port] = ports::free()?;
    let recipe = Recipe::new("graphite", &python.bin.join("gunicorn"))
        .within(&folder)
        .variable("GRAPHITE_SETTINGS_MODULE", "local_settings")
        .variable("DJANGO_SETTINGS_MODULE", "graphite.settings")
        .variable("PYTHONPATH", &folder)
        .argument("--workers=1")
        .argument(format!("--bind=127.0.0.1:{port}"))
        .argument("graphite.wsgi:application");
    let mut process = Process::start(&recipe, &folder)?;
    listens(&mut process, port).await?;
    Ok(Running { _process: process, port })
}

impl Running {
    pub fn cases(&self) -> Vec<Case> {
        let metric = |query: &str, condition: &str| {
            json!({ "successCondition": condition, "provider": { "graphite": {
                "address": format!("http://127.0.0.1:{}", self.port), "query": query } } })
        };
        let good = "len(result) > 0 && all(result, # == 2.5)";
        vec![
            Case {
                what: "graphite, a series",
                metric: metric("target=app.errors&from=-2min", good),
                phase: "Successful",
                shows: "2.5",
            },
            Case {
                what: "graphite, too many",
                metric: metric("target=scale(app.errors,2)&from=-2min", "result[0] < 5"),
                phase: "Failed",
                shows: "5.0",
            },
            Case {
                what: "graphite, no such series",
                metric: metric("target=app.nothing&from=-2min", good),
                phase: "Error",
                shows: "no values found",
            },
        ]
    }
}
