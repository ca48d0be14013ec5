//! Does this image name mean the tag `latest`? Kubernetes then pulls the image always.

/// Is the tag `latest`, or is there neither a tag nor a digest? A name that container runtimes
/// would refuse has no tag at all.
pub(super) fn is_latest(image: &str) -> bool {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let (repository, tag) = match name.rsplit_once(':') {
        // A colon before the last slash belongs to the port of a registry.
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (name, None),
    };
    let is_valid = is_repository(repository)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
        && !(tag.is_none() && digest.is_none() && is_identifier(image));
    is_valid && tag.map_or(digest.is_none(), |tag| tag == "latest")
}

/// Longest name, registry included, that container runtimes accept.
const NAME_LIMIT: usize = 255;
const TAG_LIMIT: usize = 128;
/// Fewest hexadecimal letters of a digest.
const DIGEST_LEAST: usize = 32;

fn is_repository(repository: &str) -> bool {
    let path = match repository.split_once('/') {
        Some((first, rest)) if names_a_registry(first) => {
            if !is_registry(first) {
                return false;
            }
            rest
        }
        _ => repository,
    };
    repository.len() <= NAME_LIMIT && path.split('/').all(is_path_part)
}

/// The first part of a name is a registry if it could not be part of a path.
fn names_a_registry(first: &str) -> bool {
    first == "localhost"
        || first.contains(['.', ':'])
        || first.bytes().any(|letter| letter.is_ascii_uppercase())
}

fn is_registry(registry: &str) -> bool {
    let (host, port) = registry.rsplit_once(':').unwrap_or((registry, "0"));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|letter| letter == b'-' || letter.is_ascii_alphanumeric())
    };
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_port = !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    is_port && (is_address || host.split('.').all(is_label))
}

/// Lower-case words joined by one point, one or two underscores, or any number of dashes.
fn is_path_part(part: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let has_ends = part.starts_with(is_word) && part.ends_with(is_word);
    let mut joints = part.split(is_word).filter(|joint| !joint.is_empty());
    has_ends
        && joints.all(|joint| {
            matches!(joint, "." | "_" | "__") || joint.bytes().all(|letter| letter == b'-')
        })
}

fn is_tag(tag: &str) -> bool {
    let is_letter = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
    tag.len() <= TAG_LIMIT
        && tag.starts_with(is_letter)
        && tag.chars().all(|letter| is_letter(letter) || matches!(letter, '.' | '-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let is_component = |component: &str| {
        component.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && component.bytes().all(|letter| letter.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_component)
        && hex.len() >= DIGEST_LEAST
        && hex.bytes().all(|letter| letter.is_ascii_hexdigit())
}

/// A bare image identifier is no name.
fn is_identifier(image: &str) -> bool {
    image.len() == 64 && image.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'))
}

#[test]
fn an_image_is_latest_by_its_tag_or_by_having_none() {
    let digest = format!("@sha256:{}", "ab".repeat(32));
    let cases = [
        ("no tag", "nginx", true),
        ("the tag", "nginx:latest", true),
        ("another tag", "nginx:1.25", false),
        ("a registry with a port and no tag", "localhost:5000/team/app", true),
        ("a registry with a port and a tag", "registry.example:5000/team/app:v1", false),
        ("a digest alone", &format!("nginx{digest}"), false),
        ("a tag and a digest", &format!("nginx:v1{digest}"), false),
        ("latest and a digest", &format!("nginx:latest{digest}"), true),
        ("joined words", "team/a.b_c__d---e", true),
        ("an upper-case registry", "Example/app", true),
        ("an address as registry", "[::1]:5000/app", true),
        ("a registry with words joined as in a path", "a.b_c/app", false),
        ("nothing", "", false),
        ("upper case", "Nginx", false),
        ("a variable", "$(IMAGE)", false),
        ("three underscores", "a___b", false),
        ("a part that ends in a point", "a./b", false),
        ("an empty part", "a//b", false),
        ("an empty tag", "nginx:", false),
        ("a broken digest", "nginx@sha256:12", false),
        ("a bare identifier", &"ab".repeat(32), false),
        ("a registry with an empty label", "a..b/app", false),
        ("a port that is no number", "a:b/app", false),
    ];
    for (what, image, expected) in cases {
        assert_eq!(is_latest(image), expected, "{what}: {image}");
    }
}
