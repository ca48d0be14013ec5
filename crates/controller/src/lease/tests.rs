//! Leader election against a cluster: what is stored, who may write, and what is given back.

use std::cell::RefCell;
use std::sync::Arc;

use super::election::LeaseDurations;
use super::*;

/// A cluster with one Lease.
#[derive(Default)]
struct OneLease {
    stored: RefCell<Option<(Value, u64)>>,
    is_away: RefCell<bool>,
}

impl OneLease {
    fn answer<T>(&self, answer: T) -> Result<T, WriteError> {
        if *self.is_away.borrow() { Err(refused(Class::Unreachable)) } else { Ok(answer) }
    }

    fn holder(&self) -> String {
        let stored = self.stored.borrow();
        let holder = stored.as_ref().and_then(|(spec, _)| spec["holderIdentity"].as_str());
        holder.unwrap_or("nobody").to_owned()
    }
}

fn refused(class: Class) -> WriteError {
    WriteError { class, message: format!("{class:?}"), retry_after_secs: None }
}

impl Cluster for &OneLease {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        self.answer(())?;
        let mut stored = self.stored.borrow_mut();
        let version = stored.as_ref().map_or(1, |(_, version)| version + 1);
        let spec = match (&write.op, stored.as_ref()) {
            (Op::Create(_), Some(_)) => return Err(refused(Class::Exists)),
            (Op::Merge(_), Some((_, now))) if write.expect != Expect::Version(*now) => {
                return Err(refused(Class::Stale));
            }
            (Op::Create(body) | Op::Merge(body), _) => body["spec"].clone(),
            _ => return Err(refused(Class::Denied)),
        };
        *stored = Some((spec, version));
        Ok(Written { version, status: Arc::default() })
    }

    async fn read(&self, _: &ObjectRef) -> Result<Option<Frame>, WriteError> {
        let stored = self.stored.borrow();
        self.answer(stored.as_ref().map(|(spec, version)| {
            let mut frame = Frame { spec: Arc::new(spec.clone()), ..Frame::default() };
            frame.meta.version = *version;
            frame
        }))
    }

    async fn read_whole(&self, _: &ObjectRef) -> Result<Option<serde_json::Value>, WriteError> {
        unreachable!("nobody reads whole objects here")
    }

    async fn permit(&self) -> Result<(), WriteError> {
        Ok(())
    }

    async fn list(&self, _: &Listing) -> Result<Vec<Frame>, WriteError> {
        Ok(Vec::new())
    }

    async fn post(&self, _: &PostedEvent) -> Result<(), WriteError> {
        Ok(())
    }
}

fn lease() -> ObjectRef {
    ObjectRef::new(LEASE, &"argo-rollouts".into(), &"argo-rollouts-controller-lock".into())
}

fn candidate(name: &str) -> Candidate {
    Candidate::new(name.to_owned(), LeaseDurations::default())
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn one_leads_the_other_takes_over_when_it_stops() {
    let cluster = OneLease::default();
    let server = &cluster;
    let stopwatch = Stopwatch::start();
    let (first, one) = Leadership::elected(stopwatch.clone());
    let (second, two) = Leadership::elected(stopwatch.clone());
    let place = lease();
    let running = async {
        tokio::join!(
            elect(&server, &place, candidate("one"), stopwatch.clone(), first, seconds(30)),
            elect(&server, &place, candidate("two"), stopwatch.clone(), second, seconds(60)),
        )
    };
    let looking = async {
        seconds(1).await;
        assert_eq!((one.holds(), two.holds(), cluster.holder().as_str()), (true, false, "one"));
        seconds(28).await;
        assert!(one.holds(), "it renews");
        seconds(3).await;
        assert_eq!((one.holds(), two.holds()), (false, true), "released, and taken within 2 s");
    };
    tokio::join!(running, looking);
    assert_eq!(cluster.holder(), "", "given back at the end");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_closes_the_door_before_the_lease_ends() {
    let cluster = OneLease::default();
    let server = &cluster;
    let stopwatch = Stopwatch::start();
    let (sender, leadership) = Leadership::elected(stopwatch.clone());
    let door = LedCluster::new(&cluster, leadership.clone());
    let place = lease();
    let write = || lease_write(&place, &LeaseRecord::default(), 0);
    let looking = async {
        seconds(1).await;
        let stale = door.write(write()).await.unwrap_err();
        assert_eq!(stale.class, Class::Stale, "the door is open: the server answers");
        *cluster.is_away.borrow_mut() = true;
        seconds(8).await;
        assert!(leadership.holds());
        seconds(3).await;
        let closed = door.write(write()).await.unwrap_err();
        assert!(closed.message.contains("not the leader"), "{closed}");
        *cluster.is_away.borrow_mut() = false;
        seconds(3).await;
        assert!(leadership.holds(), "nobody else took it");
    };
    tokio::select! {
        () = looking => {}
        () = elect(&server, &place, candidate("one"), stopwatch.clone(), sender, seconds(99)) => {}
    }
}

#[test]
fn a_record_survives_the_server() {
    let record = LeaseRecord {
        holder: "pod_1".to_owned(),
        duration: Duration::from_secs(15),
        acquired: Some("2026-11-18T03:00:00Z".parse().unwrap()),
        renewed: Some("2026-11-18T03:00:02.5Z".parse().unwrap()),
        transitions: 2,
    };
    let spec = spec_of(&record);
    assert_eq!(spec["renewTime"], "2026-11-18T03:00:02.500000Z");
    let frame = Frame { spec: Arc::new(spec), ..Frame::default() };
    assert_eq!(record_of(&frame), record);
}

#[test]
fn each_instance_has_a_lease_of_its_own() {
    let name = |instance: &str| {
        let durations = LeaseDurations::default();
        let election = Election::of_rollouts("argo-rollouts", instance, durations).unwrap();
        election.lease.name.to_string()
    };
    assert_eq!(name(""), "argo-rollouts-controller-lock");
    assert_eq!(name("blue"), "argo-rollouts-controller-lock-blue");
}

#[test]
fn a_process_has_a_name_with_a_uuid_as_that_of_argo_rollouts() {
    assert_eq!(uuid(&[0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    assert_eq!(uuid(&[0; 16]), "00000000-0000-4000-8000-000000000000");
    let (one, other) = (identity().unwrap(), identity().unwrap());
    assert_ne!(one, other);
    let (_, number) = one.rsplit_once('_').unwrap();
    assert_eq!(number.len(), 36, "{one}");
}
