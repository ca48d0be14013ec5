//! In which version are the kinds of routers? What the flags of Argo Rollouts say about it.

use gradus_controller::connect::{ServedKind, ServedKinds};

const AMBASSADOR: &str = "getambassador.io";
/// The group in which Mappings have another name.
const OLD_AMBASSADOR: &str = "x.getambassador.io";
const APP_MESH: &str = "appmesh.k8s.aws";
const ISTIO: &str = "networking.istio.io";
const SMI: &str = "split.smi-spec.io";
const TRAEFIK: &str = "traefik.io";
const TRAEFIK_VERSION: &str = "v1alpha1";

/// The versions of a TrafficSplit that can be had.
const SPLITS: [&str; 3] = ["v1alpha1", "v1alpha2", "v1alpha3"];

/// Notes what a flag says; what is wrong where it cannot be.
pub fn note(places: &mut ServedKinds, flag: &str, value: &str) -> Result<(), String> {
    let of = |group: &str, version: &str, plural: &str| ServedKind {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: None,
    };
    let mut put = |group: &str, plural: &str, place: ServedKind| {
        places.insert((group.to_owned(), plural.to_owned()), place);
    };
    match flag {
        "ambassador-api-version" => {
            let (group, version) = value.split_once('/').unwrap_or((AMBASSADOR, value));
            let place = match group {
                OLD_AMBASSADOR => ServedKind {
                    kind: Some("AmbassadorMapping"),
                    ..of(group, version, "ambassadormappings")
                },
                group => of(group, version, "mappings"),
            };
            put(AMBASSADOR, "mappings", place);
        }
        "appmesh-crd-version" => {
            for plural in ["virtualnodes", "virtualrouters", "virtualservices"] {
                put(APP_MESH, plural, of(APP_MESH, value, plural));
            }
        }
        "istio-api-version" => {
            for plural in ["destinationrules", "virtualservices"] {
                put(ISTIO, plural, of(ISTIO, value, plural));
            }
        }
        "traffic-split-api-version" if SPLITS.contains(&value) => {
            put(SMI, "trafficsplits", of(SMI, value, "trafficsplits"));
        }
        "traffic-split-api-version" => {
            return Err(format!("Unsupported TrafficSplit API version `{value}`"));
        }
        // Two flags say where a TraefikService is: one the group, one the version.
        _ => {
            let key = (TRAEFIK.to_owned(), "traefikservices".to_owned());
            let usual = || of(TRAEFIK, TRAEFIK_VERSION, "traefikservices");
            let place = places.entry(key).or_insert_with(usual);
            match (flag, value.split_once('/')) {
                ("traefik-api-group", _) => value.clone_into(&mut place.group),
                (_, Some((_, version))) => version.clone_into(&mut place.version),
                (_, None) => value.clone_into(&mut place.version),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags | the kinds that are elsewhere, and where.
    #[test]
    fn flags_say_where_kinds_are() {
        let cases: [(&[(&str, &str)], &str); 9] = [
            (
                &[("ambassador-api-version", "v3alpha1")],
                "mappings: getambassador.io/v3alpha1/mappings",
            ),
            (
                &[("ambassador-api-version", "getambassador.io/v1")],
                "mappings: getambassador.io/v1/mappings",
            ),
            (&[("ambassador-api-version", "a.b/v2")], "mappings: a.b/v2/mappings"),
            (
                &[("ambassador-api-version", "x.getambassador.io/v3alpha1")],
                "mappings: x.getambassador.io/v3alpha1/ambassadormappings AmbassadorMapping",
            ),
            (
                &[("istio-api-version", "v1")],
                "destinationrules: networking.istio.io/v1/destinationrules, virtualservices: \
                 networking.istio.io/v1/virtualservices",
            ),
            (
                &[("appmesh-crd-version", "v1beta1")],
                "virtualnodes: appmesh.k8s.aws/v1beta1/virtualnodes, virtualrouters: \
                 appmesh.k8s.aws/v1beta1/virtualrouters, virtualservices: \
                 appmesh.k8s.aws/v1beta1/virtualservices",
            ),
            (
                &[("traffic-split-api-version", "v1alpha2")],
                "trafficsplits: split.smi-spec.io/v1alpha2/trafficsplits",
            ),
            (
                &[
                    ("traefik-api-group", "traefik.containo.us"),
                    ("traefik-api-version", "traefik.containo.us/v1alpha1"),
                ],
                "traefikservices: traefik.containo.us/v1alpha1/traefikservices",
            ),
            (&[("traffic-split-api-version", "v2")], "Unsupported TrafficSplit API version `v2`"),
        ];
        for (flags, expected) in cases {
            let mut places = ServedKinds::new();
            let noted = flags.iter().try_for_each(|(flag, value)| note(&mut places, flag, value));
            let line = |((_, asked), place): (&(String, String), &ServedKind)| {
                let ServedKind { group, version, plural, kind } = place;
                let kind = kind.map(|kind| format!(" {kind}")).unwrap_or_default();
                format!("{asked}: {group}/{version}/{plural}{kind}")
            };
            let found = places.iter().map(line).collect::<Vec<_>>().join(", ");
            assert_eq!(noted.map_or_else(|wrong| wrong, |()| found), expected, "{flags:?}");
        }
    }
}
