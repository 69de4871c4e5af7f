//! Whether an environment may be changed.

use api_types::condition::whole_seconds;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Incoming, Known, Present, Record, annotation_of};
use crate::{Observed, Precondition};

/// The object that is the environment now.
pub(crate) struct Live<'o> {
    pub(crate) observed: &'o Observed,
    /// Whether it is the object that the rendering is written to, not one that the step used to write to.
    pub(crate) in_place: bool,
}

/// What becomes of a rendering.
#[derive(Debug)]
pub(crate) enum Decision<'o> {
    /// It is submitted, with this record in it: status knows of it.
    Submit {
        record: Record,
        precondition: Precondition,
    },
    /// The environment is kept as it is, with what counts as being in it; once status calls it free, `next` is announced.
    Hold {
        observed: &'o Observed,
        record: Record,
        next: Box<Record>,
        is_free: bool,
    },
    /// Nothing is written: first status has to say that this arrives. What the object says meanwhile is disregarded.
    Announce {
        record: Record,
        disregarded: Option<String>,
    },
    /// Nothing is decided: first status has to say that what the object says is disregarded.
    Disregard(String),
    /// The revision came from a Secret, and there is no key to keep it in the environment with.
    Keyless,
}

/// Decides whether the environment may be changed. `rendered` is the digest of the rendering without the record.
pub(crate) fn decide<'o>(
    rendered: &str,
    incoming: &Incoming,
    live: Option<&Live<'o>>,
    known: &Known<'_>,
    now: Timestamp,
) -> Decision<'o> {
    let arriving = Arriving {
        rendered,
        incoming,
        known,
        now: whole_seconds(&Time(now)),
        precondition: match live.filter(|live| live.in_place) {
            None => Precondition::Absent,
            Some(live) if live.observed.version == 0 => Precondition::None,
            Some(live) => Precondition::Version(live.observed.version),
        },
    };
    let Some(observed) = live.map(|live| live.observed) else {
        return arriving.unless_announced(None);
    };
    let said = annotation_of(&observed.object);
    match known.present(said, &arriving.now) {
        Present::Unheard(digest) => Decision::Disregard(digest),
        Present::Revision(record) => arriving.unless_kept(observed, record),
        Present::Nothing | Present::Either => {
            arriving.unless_announced(known.unless_deployed(said))
        }
    }
}

/// A rendering that is to arrive in an environment.
struct Arriving<'d> {
    rendered: &'d str,
    incoming: &'d Incoming,
    known: &'d Known<'d>,
    now: Time,
    precondition: Precondition,
}

impl Arriving<'_> {
    /// Beside what is in the environment: it is kept, unless it is this.
    fn unless_kept(self, observed: &Observed, record: Record) -> Decision<'_> {
        let key = self.known.key;
        match record.verified(self.rendered, self.incoming, key) {
            Some(record) => self.submit(record),
            None => match self.next(record.arrival.number) {
                Some(next) => Decision::Hold {
                    observed,
                    next: Box::new(next),
                    is_free: self.known.is_free(record.arrival.number),
                    record,
                },
                None => Decision::Keyless,
            },
        }
    }

    /// Nothing is in the environment, or what was announced and never called deployed, which is not being validated.
    fn unless_announced<'o>(self, disregarded: Option<String>) -> Decision<'o> {
        let known = self.known;
        match known.announced(self.rendered, self.incoming, &self.now) {
            Some(record) => self.submit(record),
            None => match self.next(0) {
                Some(record) => Decision::Announce {
                    record,
                    disregarded,
                },
                None => Decision::Keyless,
            },
        }
    }

    fn submit<'o>(self, record: Record) -> Decision<'o> {
        Decision::Submit {
            record,
            precondition: self.precondition,
        }
    }

    /// What comes after this arrival; none if it has to be sealed and there is no key.
    fn next(&self, after: u64) -> Option<Record> {
        let number = self.known.number_after(after);
        let arrival = self.incoming.arrival(number, self.rendered, &self.now);
        Record::new(arrival, self.now.clone(), self.known.key)
    }
}
