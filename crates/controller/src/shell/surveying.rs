//! What is listed once, at the start? Kinds of which a single object may say that they must be watched,
//! although nobody names one.

use gradus_engine::ask::Class;
use gradus_engine::frame::Frame;
use jiff::{SignedDuration, Timestamp};

use super::Shell;
use crate::cluster::{Listing, WriteError};
use crate::watched::{Scope, Watched};

/// How long after a failure a list is tried again, at first; each time twice as long.
const AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// So many failures in a row end it: the kind is not there, and never was.
const TRIES: u32 = 5;

/// So many lists of one engine may be under way: each may be long, and none is urgent.
const AT_ONCE: usize = 4;

/// The lists that are still wanted.
#[derive(Default)]
pub(super) struct Surveying {
    waiting: Vec<Survey>,
    under_way: Vec<Survey>,
}

/// One list.
struct Survey {
    listing: Listing,
    due: Timestamp,
    failures: u32,
}

impl Surveying {
    /// All that an engine wants, due at once.
    pub fn of<W: Watched>(scope: &Scope) -> Self {
        let sources = W::surveys();
        let selections = sources.iter().filter_map(|source| W::selection(source, scope));
        let watches = selections.flat_map(|selection| scope.by_namespace(selection));
        let survey = |kind, namespace: Option<String>, labels: Option<String>| Survey {
            listing: Listing {
                kind,
                namespace: namespace.unwrap_or_default().into(),
                labels: labels.unwrap_or_default(),
            },
            due: Timestamp::MIN,
            failures: 0,
        };
        let waiting = watches.map(|watch| survey(watch.kind, watch.namespace, watch.labels));
        Surveying { waiting: waiting.collect(), under_way: Vec::new() }
    }

    /// When the next one is due. While none may be begun, only the end of one can change that.
    pub fn next_due(&self) -> Option<Timestamp> {
        let waiting = self.waiting.iter().filter(|_| self.has_room());
        waiting.map(|survey| survey.due).min()
    }

    fn has_room(&self) -> bool {
        self.under_way.len() < AT_ONCE
    }
}

impl<W: Watched> Shell<W> {
    /// The next list that is due. What is watched meanwhile need not be listed.
    pub(super) fn next_survey(&mut self, now: Timestamp) -> Option<Listing> {
        if self.surveying.waiting.is_empty() || !self.surveying.has_room() {
            return None;
        }
        let Surveying { waiting, under_way } = &mut self.surveying;
        let demanded: Vec<_> = W::demands(&self.index).iter().map(W::kind_of).collect();
        waiting.retain(|survey| !demanded.contains(&survey.listing.kind));
        let at = waiting.iter().position(|survey| survey.due <= now)?;
        let survey = waiting.swap_remove(at);
        let listing = survey.listing.clone();
        under_way.push(survey);
        Some(listing)
    }

    /// Takes in what a list has shown. One that failed is tried again, unless it says that there is
    /// nothing for us.
    pub fn learn_survey(
        &mut self,
        listing: &Listing,
        reply: Result<Vec<Frame>, WriteError>,
        now: Timestamp,
    ) {
        let Surveying { waiting, under_way } = &mut self.surveying;
        let Some(at) = under_way.iter().position(|survey| survey.listing == *listing) else {
            return;
        };
        let survey = under_way.swap_remove(at);
        match reply {
            Ok(objects) => {
                let mut sources = W::surveys().into_iter();
                if let Some(source) = sources.find(|source| W::kind_of(source) == listing.kind) {
                    W::survey(&mut self.index, &source, &objects);
                }
            }
            Err(error) => {
                let failures = survey.failures + 1;
                let is_final = matches!(error.class, Class::Denied | Class::Gone);
                if is_final || failures >= TRIES {
                    let kind = &listing.kind.plural;
                    tracing::debug!(%kind, reason = error.message, "a kind was not looked at");
                    return;
                }
                let due = error.asked_until(now).unwrap_or(now + AGAIN * (1 << survey.failures));
                waiting.push(Survey { due, failures, ..survey });
            }
        }
    }
}
