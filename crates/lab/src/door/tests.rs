//! What the door of the simulator says of requests that a server refuses.

use gradus_engine::ask::Class;

use super::*;

#[test]
fn a_refusal_means_what_that_of_a_real_server_does() {
    let said = |code, reason, message: &str| {
        let error = ApiError { code, reason, message: message.to_owned(), details: None };
        refusal(&error).class
    };
    let webhook = "failed calling webhook \"check.example.com\": timeout";
    let no_kind = "the server could not find the requested resource";
    let cases = [
        (said(401, "Unauthorized", "who are you?"), Class::Unreachable),
        (said(403, "Forbidden", "no"), Class::Denied),
        (said(404, "NotFound", "pods \"a\" not found"), Class::Gone),
        (said(404, "NotFound", no_kind), Class::Unreachable),
        (said(408, "Timeout", "too slow"), Class::Unknown),
        (said(409, "AlreadyExists", "is there"), Class::Exists),
        (said(409, "Conflict", "changed"), Class::Stale),
        (said(410, "Expired", "too old"), Class::Gone),
        (said(422, "Invalid", "spec.x: wrong"), Class::Denied),
        (said(429, "TooManyRequests", "later"), Class::Throttled),
        (said(500, "InternalError", webhook), Class::Denied),
        (said(500, "InternalError", "etcd"), Class::Unknown),
        (said(503, "ServiceUnavailable", "soon"), Class::Unknown),
    ];
    for (at, (class, expected)) in cases.into_iter().enumerate() {
        assert_eq!(class, expected, "case {at}");
    }
}
