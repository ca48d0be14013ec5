//! Who judges the writes of the production loop? The checks of every simulated run, write by write
//! in the order of the log, each on the state that the writes before it have left.
//!
//! Nobody can see from here what the controller had been shown when it decided. So all that is stored
//! before a write counts as known to it. In virtual time that is nearly so, for it is shown before time
//! goes on; and where it is not so, a live run is judged harder than a simulated one, never milder.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use gradus_simkube::object::Object;
use gradus_simkube::server::Server;
use gradus_simkube::{Place, SimCluster};

use crate::checks::{Judge, Violation};
use crate::ends::Ending;
use crate::subject::Erased;

/// Looks at every write, and at the end.
pub(super) struct Witness {
    server: Server,
    place: Place,
    subject: Erased,
    checker: RefCell<Box<dyn Judge>>,
    /// The version up to which writes were judged.
    judged: Cell<u64>,
}

impl Witness {
    /// Who judges what is written about this object.
    pub(super) fn new(server: &Server, place: &Place, subject: Erased) -> Self {
        Witness {
            server: server.clone(),
            place: place.clone(),
            subject,
            checker: RefCell::new(
                server.with(|cluster, _| (subject.judge)(place.kind, cluster.kinds())),
            ),
            judged: Cell::new(0),
        }
    }

    /// Looks whenever something was written, before time goes on.
    pub(super) async fn watch(&self) {
        let mut versions = self.server.versions();
        loop {
            self.look(|_, _, _| ());
            versions.changed().await.expect("the server lives as long as its witness");
        }
    }

    /// How things stand.
    pub(super) fn ending(&self) -> Ending {
        self.look(|cluster, object, checker| Ending::of(cluster, object, checker.counts()))
    }

    /// What was found so far.
    pub(super) fn violation(&self) -> Option<Violation> {
        self.look(|_, _, checker| checker.violations().first().cloned())
    }

    /// What is wrong with things as they stand, if this is the end.
    pub(super) fn violation_at_end(&self) -> Option<Violation> {
        self.look(|cluster, object, checker| {
            let found = (self.subject.judge_end)(cluster, object, checker.counts());
            let traffic = checker.judge_end().map(|(invariant, numbers)| Violation {
                invariant,
                write: "the end".to_owned(),
                object: self.place.key.name.to_string(),
                numbers,
            });
            found.into_iter().chain(traffic).next()
        })
    }

    /// Judges what was written since, and then looks.
    fn look<R>(&self, look: impl FnOnce(&SimCluster, Option<&Arc<Object>>, &dyn Judge) -> R) -> R {
        self.server.with(|cluster, now| {
            let mut checker = self.checker.borrow_mut();
            for write in cluster.writes_after(self.judged.get()) {
                checker.judge(write, now);
                checker.shown(&write.after);
                checker.decided();
            }
            self.judged.set(cluster.version());
            look(cluster, cluster.at(&self.place), &**checker)
        })
    }
}
