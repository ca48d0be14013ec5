//! The life of one Database on an embedded cluster, told line by line as it happens.

use std::time::Duration;

use anyhow::{Context, anyhow};
use gradus_controller::engines::Engines;
use gradus_lab::live::live;
use gradus_lab::simulate::Prepared;
use gradus_lab::subject::Subject;
use serde_json::Value;

use crate::engine::{Databases, ENGINES};

/// All the lab must know of this controller.
impl Subject for Databases {
    const ENGINES: &'static Engines = &ENGINES;
    fn definitions() -> Vec<(&'static str, Value)> {
        let definition = serde_saphyr::from_str(include_str!("../crd.yaml"));
        vec![("crd.yaml", definition.expect("the CRD is YAML"))]
    }
}

/// Plays the scenario once, in a few seconds of real time.
pub fn play() -> anyhow::Result<()> {
    let scenario = serde_saphyr::from_str(include_str!("../scenarios/database_life.yaml"))?;
    let prepared = Prepared::about::<Databases>(scenario)?;
    println!("somebody creates Database orders");
    let told =
        live(&prepared, async |lab| lab.tell_aloud(&prepared, |line| println!("{line}")).await);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told =
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), told).await });
    let told = told.context("the scenario is not over after a minute")?;
    told.map(drop).map_err(|violation| anyhow!("{violation}"))
}
