//! What time is it at the API server? Each answer says so.

use http::{HeaderMap, Request, header};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;

use crate::clock::Clock;

/// The same client. The time in each answer is shown to the clock.
pub fn dated(client: Client, clock: &Clock) -> Client {
    let (default_namespace, clock) = (client.default_namespace().to_owned(), clock.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, clock) = (client.clone(), clock.clone());
        async move {
            let answer = client.send(request).await;
            let time = answer.as_ref().ok().and_then(|answer| time_in(answer.headers()));
            time.into_iter().for_each(|time| clock.follow_server(time));
            answer
        }
    });
    Client::new(service, default_namespace)
}

/// The time in a `Date` header.
pub(super) fn time_in(headers: &HeaderMap) -> Option<Timestamp> {
    headers.get(header::DATE)?.to_str().ok().and_then(http_date)
}

pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use jiff::SignedDuration;

    use super::*;

    #[tokio::test]
    async fn the_clock_follows_the_dates_of_answers() {
        let cases = [
            ("an hour ahead", Some(SignedDuration::from_hours(1)), true),
            ("an hour behind", Some(SignedDuration::from_hours(-1)), false),
            ("no date", None, false),
        ];
        for (what, ahead, is_followed) in cases {
            let date = ahead.map(|ahead| {
                let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
                printer.timestamp_to_rfc9110_string(&(Timestamp::now() + ahead)).unwrap()
            });
            let service = tower::service_fn(move |_: Request<Body>| {
                let mut answer = Response::new(axum::body::Body::empty());
                if let Some(date) = &date {
                    answer.headers_mut().insert(header::DATE, date.parse().unwrap());
                }
                std::future::ready(Ok::<_, Infallible>(answer))
            });
            let clock = Clock::system();
            let before = clock.now();
            let client = dated(Client::new(service, "default"), &clock);
            client.send(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
            let stepped = before + SignedDuration::from_mins(59) < clock.now();
            assert_eq!(stepped, is_followed, "{what}");
        }
    }
}
