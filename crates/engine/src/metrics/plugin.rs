//! A metric plugin: its own process measures and judges.

use super::{Call, Next, Observed, Provider};

/// A plugin, by its name.
pub struct Plugin<'a>(pub &'a str);

impl Provider for Plugin<'_> {
    fn kind(&self) -> &'static str {
        "RPCPlugin"
    }

    fn next(&self, _: Call<'_>, _: &Observed<'_>) -> Next {
        let name = self.0;
        Next::refused(format!(
            "failed to create plugin: unable to get metric plugin: unable to start plugin system: \
             unable to find plugin ({name}): metric plugins cannot be run by this version"
        ))
    }
}
