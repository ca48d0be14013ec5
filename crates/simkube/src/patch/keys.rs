//! How does a strategic merge patch treat each list of the built-in kinds?

/// How one field is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Lists are replaced whole, maps are merged: what a field without an entry gets.
    Plain,
    /// A list of objects, matched by this field.
    ByKey(&'static str),
    /// A list of scalars, merged as a set.
    Set,
}

/// Which lists are merged, and by which key.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    rows: &'static [(&'static str, &'static str, Strategy)],
}

impl Keys {
    /// The lists of all built-in kinds.
    pub const BUILT_IN: Self = Self { rows: ROWS };

    /// The strategy for `field` inside `parent` (the name of the enclosing field; the items of a
    /// list have the list's name).
    pub fn strategy(&self, parent: &str, field: &str) -> Strategy {
        self.rows
            .iter()
            .find(|(within, name, _)| *name == field && (within.is_empty() || *within == parent))
            .map_or(Strategy::Plain, |(_, _, strategy)| *strategy)
    }
}

/// Enclosing field ("" = any), field, strategy.
const ROWS: &[(&str, &str, Strategy)] = &[
    ("metadata", "ownerReferences", Strategy::ByKey("uid")),
    ("metadata", "finalizers", Strategy::Set),
    ("", "containers", Strategy::ByKey("name")),
    ("", "initContainers", Strategy::ByKey("name")),
    ("", "ephemeralContainers", Strategy::ByKey("name")),
    ("containers", "ports", Strategy::ByKey("containerPort")),
    ("initContainers", "ports", Strategy::ByKey("containerPort")),
    ("ephemeralContainers", "ports", Strategy::ByKey("containerPort")),
    // Only a Service has ports directly under its spec.
    ("spec", "ports", Strategy::ByKey("port")),
    ("", "env", Strategy::ByKey("name")),
    ("", "volumeMounts", Strategy::ByKey("mountPath")),
    ("", "volumeDevices", Strategy::ByKey("devicePath")),
    ("spec", "volumes", Strategy::ByKey("name")),
    ("", "imagePullSecrets", Strategy::ByKey("name")),
    ("", "hostAliases", Strategy::ByKey("ip")),
    ("", "topologySpreadConstraints", Strategy::ByKey("topologyKey")),
    ("spec", "schedulingGates", Strategy::ByKey("name")),
    ("spec", "resourceClaims", Strategy::ByKey("name")),
    ("status", "resourceClaimStatuses", Strategy::ByKey("name")),
    ("status", "conditions", Strategy::ByKey("type")),
    // Only a Node has addresses directly under its status.
    ("status", "addresses", Strategy::ByKey("type")),
    ("status", "podIPs", Strategy::ByKey("ip")),
    ("status", "hostIPs", Strategy::ByKey("ip")),
    ("spec", "podCIDRs", Strategy::Set),
    // The secrets of a ServiceAccount stand at the top of the object.
    ("", "secrets", Strategy::ByKey("name")),
    ("", "webhooks", Strategy::ByKey("name")),
];
