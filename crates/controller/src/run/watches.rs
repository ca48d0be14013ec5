//! The watches of a process: one per selection, however many engines want it. What a watch shows goes
//! to all of them.
//!
//! A watch keeps nothing. An engine that wants one which has begun already gets its state by having
//! the watch begin anew: it lists again for everybody, and an index takes in only what is new.
//!
//! So do all of them when this process begins to lead: whoever led before may have written what a watch
//! that lags has not shown yet, and to decide on half of it would undo it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{AbortHandle, BoxStream, SelectAll, StreamExt, abortable};
use kube::Client;

use crate::shell::Seen;
use crate::telemetry::Metrics;
use crate::watch::{Failed, FailedCause, Outage, counted, watch};
use crate::watched::Selection;

/// One message of a watch, and whose.
pub(super) type Message = (Arc<Selection>, Result<Seen, Failed>);

/// All watches that run; one more may start at any time.
pub(super) struct Watches {
    client: Client,
    outage: Outage,
    metrics: Metrics,
    running: BTreeMap<Arc<Selection>, Running>,
    streams: SelectAll<BoxStream<'static, Message>>,
    /// Does this process hold the lead?
    holds: bool,
}

/// A watch that runs.
struct Running {
    /// The engines that want it, by their place in the list.
    engines: Vec<usize>,
    /// It has shown something to those who wanted it so far.
    has_begun: bool,
    /// It lists again since this process holds the lead.
    is_renewed: bool,
    stream: AbortHandle,
}

impl Watches {
    pub(super) fn new(client: Client, outage: Outage, metrics: Metrics) -> Self {
        let (running, streams) = (BTreeMap::new(), SelectAll::new());
        Watches { client, outage, metrics, running, streams, holds: false }
    }

    /// An engine wants a watch. One that has begun already begins anew, for all.
    pub(super) fn want(&mut self, selection: Selection, engine: usize) {
        let selection = Arc::new(selection);
        match self.running.get_mut(&selection) {
            None => {
                let stream = self.start(&selection);
                let (engines, has_begun, is_renewed) = (vec![engine], false, false);
                let running = Running { engines, has_begun, is_renewed, stream };
                self.running.insert(selection, running);
            }
            Some(running) => {
                running.engines.push(engine);
                if std::mem::take(&mut running.has_begun) {
                    running.stream.abort();
                    let stream = self.start(&selection);
                    self.running.entry(selection).and_modify(|running| running.stream = stream);
                }
            }
        }
    }

    /// Takes in whether this process holds the lead; every watch that has begun before then lists again.
    /// May it decide: does it hold the lead, with nothing missing of what others wrote before?
    pub(super) fn may_lead(&mut self, holds: bool) -> bool {
        if holds && !std::mem::replace(&mut self.holds, holds) {
            let begun = self.running.iter().filter(|(_, running)| running.has_begun);
            let begun: Vec<_> = begun.map(|(selection, _)| Arc::clone(selection)).collect();
            for selection in begun {
                let stream = self.start(&selection);
                if let Some(running) = self.running.get_mut(&selection) {
                    running.stream.abort();
                    (running.stream, running.has_begun, running.is_renewed) = (stream, false, true);
                }
            }
        }
        self.holds = holds;
        holds && !self.running.values().any(|running| running.is_renewed)
    }

    /// The next message of any watch; `None` while there is none.
    pub(super) async fn next(&mut self) -> Option<Message> {
        let message = self.streams.next().await?;
        if let Some(running) = self.running.get_mut(&message.0) {
            running.has_begun = true;
            running.is_renewed &= match &message.1 {
                Ok(seen) => !matches!(seen, Seen::InitDone),
                // There is nothing to list, or it is unknown as before.
                Err(failed) => failed.cause == FailedCause::Away,
            };
        }
        Some(message)
    }

    /// The engines that want a watch.
    pub(super) fn engines(&self, selection: &Arc<Selection>) -> Vec<usize> {
        self.running.get(selection).map_or_else(Vec::new, |running| running.engines.clone())
    }

    fn start(&mut self, selection: &Arc<Selection>) -> AbortHandle {
        let client = counted(self.client.clone(), selection, &self.metrics);
        let shown = watch(client, Selection::clone(selection), &self.outage);
        let selection = Arc::clone(selection);
        let (stream, handle) = abortable(shown.map(move |seen| (Arc::clone(&selection), seen)));
        self.streams.push(stream.boxed());
        handle
    }
}

#[cfg(test)]
mod tests {
    use gradus_engine::kinds;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::watched::Scope;

    /// A server on which one Ingress is listed; watches of it show nothing more.
    fn client() -> Client {
        let service = tower::service_fn(|request: Request<Body>| async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                std::future::pending::<()>().await;
            }
            let item = json!({ "metadata": { "name": "web", "resourceVersion": "7" } });
            let list = json!({ "kind": "IngressList", "apiVersion": "networking.k8s.io/v1",
                "metadata": { "resourceVersion": "10" }, "items": [item] });
            Ok::<_, std::io::Error>(Response::new(axum::body::Body::from(list.to_string())))
        });
        Client::new(service, "default")
    }

    /// What the next messages are, and for which engines.
    async fn heard(watches: &mut Watches, count: usize) -> Vec<(&'static str, Vec<usize>)> {
        let mut found = Vec::new();
        while found.len() < count {
            let (watch, seen) = watches.next().await.expect("a watch never ends");
            let word = match seen.expect("the server answers") {
                Seen::Init => "init",
                Seen::InitApply(_) => "has",
                Seen::InitDone => "done",
                Seen::Apply(_) | Seen::Delete(_) | Seen::Resumed => "other",
            };
            found.push((word, watches.engines(&watch)));
        }
        found
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_comes_late_is_shown_all_there_is() {
        let mut watches = Watches::new(client(), Outage::default(), Metrics::new());
        let ingresses = Scope::default().all(kinds::INGRESS);
        watches.want(ingresses.clone(), 1);
        watches.want(ingresses.clone(), 2);
        let both = ["init", "has", "done"].map(|word| (word, vec![1, 2]));
        assert_eq!(heard(&mut watches, 3).await, both, "one watch for both");
        watches.want(ingresses, 0);
        let all = ["init", "has", "done"].map(|word| (word, vec![1, 2, 0]));
        assert_eq!(heard(&mut watches, 3).await, all, "it begins anew, for all three");
        assert_eq!(watches.streams.len(), 1, "and the former one has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn who_begins_to_lead_lists_again_before_it_decides() {
        let mut watches = Watches::new(client(), Outage::default(), Metrics::new());
        watches.want(Scope::default().all(kinds::INGRESS), 0);
        assert!(watches.may_lead(true), "nothing was listed before: there is nothing to renew");
        assert!(!watches.may_lead(false));
        heard(&mut watches, 3).await;
        assert!(!watches.may_lead(true), "what was listed may be old");
        assert_eq!(heard(&mut watches, 2).await.len(), 2);
        assert!(!watches.may_lead(true), "the list is not complete");
        assert_eq!(heard(&mut watches, 1).await, [("done", vec![0])]);
        assert!(watches.may_lead(true));
        assert_eq!(watches.streams.len(), 1, "and the former one has ended");
    }
}
