//! `database-operator`: runs the controller of Databases on a cluster, or shows it on its own.
fn main() {}
