//! Who posts the Events? One task beside the loop, so that no pass waits for them.

use futures::stream::{FuturesUnordered, StreamExt};
use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;

use super::told::ToldNamespaces;
use super::{Outbox, Posting};
use crate::clock::Clock;
use crate::cluster::{Cluster, WriteError};
use crate::shell::Outgoing;
use crate::telemetry::Metrics;

/// Events of different objects that are posted at once.
const AT_ONCE: usize = 16;

/// Posts what comes in until all senders are gone and nothing is left. The cluster must bring the
/// token bucket of Events ([`crate::rate::Limited`]).
pub async fn post_events<C: Cluster>(
    cluster: C,
    clock: Clock,
    mut inbox: UnboundedReceiver<Outgoing>,
    metrics: Metrics,
) {
    let mut outbox = Outbox::default();
    let mut posting = FuturesUnordered::new();
    let mut is_open = true;
    let mut told = ToldNamespaces::default();
    loop {
        while posting.len() < AT_ONCE
            && let Some(next) = outbox.next(clock.now())
        {
            posting.push(post(&cluster, next));
        }
        if !is_open && posting.is_empty() && outbox.is_empty() {
            return;
        }
        // With all places taken, only an outcome can free the next.
        let due = outbox.next_due().filter(|_| posting.len() < AT_ONCE);
        tokio::select! {
            outgoing = inbox.recv(), if is_open => match outgoing {
                Some(outgoing) => metrics.events_dropped(outbox.push(outgoing)),
                None => is_open = false,
            },
            Some((done, outcome)) = posting.next() => {
                let (about, is_posted) = (done.event.about.clone(), outcome.is_ok());
                match outbox.done(done, outcome, clock.now()) {
                    Ok(()) if is_posted => told.is_well(&about.namespace),
                    Ok(()) => {} // It is tried again.
                    Err(error) => {
                        metrics.events_dropped(1);
                        if told.is_news(&about.namespace, error.class) {
                            tracing::warn!("cannot post an Event about {about}: {error}");
                        }
                    }
                }
            }
            () = tokio::time::sleep_until(clock.instant(due.unwrap_or(Timestamp::MAX))),
                if due.is_some() => {}
        }
    }
}

async fn post<C: Cluster>(cluster: &C, posting: Posting) -> (Posting, Result<(), WriteError>) {
    let outcome = cluster.post(&posting.event).await;
    (posting, outcome)
}
