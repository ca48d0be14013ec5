//! `cargo xtask manifests`: what is applied to a cluster, put together from the CRDs, the rights of
//! each feature and the workload.
//!
//! A feature's rights are one file of `manifests/rbac/`: a list of rules, each with the call that needs
//! it. Three lines of its comment are read: `# scope: cluster` leaves it out of a namespaced installation,
//! `# default: off` out of both, and `# scope: home` grants it in the controller's own namespace alone.

mod rights;
#[cfg(test)]
mod tests;

use std::{fs, io, path::Path};

use crate::{Failure, repository, summary::Summary};

pub use rights::{Fragment, Place, fragments};

/// The namespace of an installation that says nothing else: Argo Rollouts', where the Lease is.
pub const NAMESPACE: &str = "argo-rollouts";

/// How much of a cluster a controller manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Cluster,
    Namespace,
}

/// Writes the files that differ, and names them.
pub fn run(_arguments: &[String]) -> Result<Summary, Failure> {
    let folder = repository().join("manifests");
    for (name, text) in files(&folder)? {
        let path = folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|written| written == text) {
            continue;
        }
        fs::write(&path, text)?;
        println!("written: manifests/{name}");
    }
    Ok(Summary::default())
}

/// The generated files, by their names in `manifests/`.
fn files(folder: &Path) -> io::Result<Vec<(&'static str, String)>> {
    let fragments = fragments(&folder.join("rbac"))?;
    let cluster_rights = rights(Extent::Cluster, &fragments);
    let mut install = vec![
        heading("Gradus for a whole cluster: kubectl apply --server-side -f install.yaml"),
        cluster_rights.clone(),
    ];
    install.extend(gradus_api::crd::files().into_iter().map(|(_, text)| text));
    install.push(include_str!("manifests/people.yaml").to_owned());
    install.push(fs::read_to_string(folder.join("admission/policy.yaml"))?);
    install.push(workload(Extent::Cluster));
    let namespaced = [
        heading(
            "Gradus for one namespace, without any right in the cluster. The CRDs must be there:\n\
             # kubectl apply -n NAMESPACE -f namespace-install.yaml",
        ),
        rights(Extent::Namespace, &fragments),
        workload(Extent::Namespace),
    ];
    let rbac = [heading("What the controller may do in a whole cluster."), cluster_rights];
    Ok(vec![
        ("install.yaml", joined(&install)),
        ("namespace-install.yaml", joined(&namespaced)),
        ("rbac.yaml", joined(&rbac)),
    ])
}

fn heading(text: &str) -> String {
    format!(
        "# {text}\n# Written by `cargo xtask manifests`: change manifests/rbac/ or the parts.\n"
    )
}

/// Several documents in one text; a heading joins the first one.
fn joined(parts: &[String]) -> String {
    let (heading, documents) = parts.split_first().expect("a heading comes first");
    format!("{heading}{}", documents.join("---\n"))
}

fn rights(extent: Extent, fragments: &[Fragment]) -> String {
    let mut documents = Vec::new();
    if extent == Extent::Cluster {
        let namespace =
            format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n");
        documents.push(namespace);
    }
    documents.push(filled(include_str!("manifests/account.yaml"), extent));
    let is_of_home = |one: &&Fragment| one.is_on && one.place == Place::Home;
    let about = "# What the controller may do in its own namespace alone.\n";
    let home = role("Role", ("gradus-home", "{{namespace}}"), about, fragments, is_of_home);
    documents.push(filled(&home, extent));
    documents.push(filled(include_str!("manifests/home.yaml"), extent));
    let is_granted = |one: &&Fragment| match one.place {
        Place::Home => false,
        Place::Managed => one.is_on,
        Place::Cluster => one.is_on && extent == Extent::Cluster,
    };
    let kind = match extent {
        Extent::Cluster => "ClusterRole",
        Extent::Namespace => "Role",
    };
    let about = "# What the controller may do, and the call that needs it. Nothing else: a verb without a\n\
                 # call goes.\n";
    documents.push(role(kind, ("gradus", ""), about, fragments, is_granted));
    documents.push(filled(include_str!("manifests/binding.yaml"), extent));
    documents.join("---\n")
}

/// One role with the rules of those features, and why each is there.
fn role(
    kind: &str,
    (name, namespace): (&str, &str),
    about: &str,
    fragments: &[Fragment],
    is_granted: impl Fn(&&Fragment) -> bool,
) -> String {
    let mut text = format!(
        "{about}apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  \
         name: {name}{namespace}\n  \
         labels:\n    app.kubernetes.io/name: gradus\n    app.kubernetes.io/part-of: gradus\nrules:\n"
    );
    for fragment in fragments.iter().filter(is_granted) {
        text.push_str(&format!("  # ---- {}: {}\n", fragment.name, fragment.about));
        for line in fragment.rules.lines() {
            text.push_str(if line.is_empty() { "" } else { "  " });
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn workload(extent: Extent) -> String {
    let arguments = match extent {
        Extent::Cluster => "[controller]",
        Extent::Namespace => "[controller, --namespaced]",
    };
    let image = format!("gradus:{}", env!("CARGO_PKG_VERSION"));
    filled(include_str!("manifests/workload.yaml"), extent)
        .replace("{{args}}", arguments)
        .replace("{{image}}", &image)
}

fn filled(text: &str, extent: Extent) -> String {
    let (namespace, subject, cluster) = match extent {
        Extent::Cluster => (
            format!("\n  namespace: {NAMESPACE}"),
            format!("\n    namespace: {NAMESPACE}"),
            "Cluster",
        ),
        // A binding without one is about an account of its own namespace.
        Extent::Namespace => (String::new(), String::new(), ""),
    };
    text.replace("{{namespace}}", &namespace)
        .replace("{{subject}}", &subject)
        .replace("{{cluster}}", cluster)
}
