//! What one schedule is made of, as plain data: it can be printed, cut down, and played again.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Scenario {
    /// What ids and the steps of the clock follow from.
    pub(super) seed: u64,
    pub(super) start: Start,
    pub(super) actors: Vec<Actor>,
    pub(super) faults: Vec<Fault>,
    /// Who goes on, step by step; once they are used up, whoever went last.
    pub(super) choices: Vec<u16>,
}

/// What there is before anybody begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) table: bool,
    /// Whether other writers leave checksum files.
    pub(super) checksums: bool,
    pub(super) ops: Vec<Op>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Actor {
    /// A release that knows so many migrations, run so often, one after the other.
    Migrator {
        known: u32,
        chain: Chain,
        budget_ms: u64,
        skew_ms: i64,
        runs: u32,
        create: bool,
    },
    Writer {
        ops: Vec<Op>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Chain {
    Ours,
    /// Another program's chain under the same names, which parts from ours at version 3.
    Other,
}

/// Something that happens to a request of an actor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Fault {
    pub(super) actor: usize,
    pub(super) phase: Phase,
    /// The how-manieth request of the actor in that phase.
    pub(super) nth: u32,
    /// What other writers do right before it.
    pub(super) before: Vec<Op>,
    pub(super) kind: FaultKind,
}

/// What a migrator's request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    Read,
    List,
    /// Looks right before the put.
    Before,
    Put,
    /// Everything after a put until the table is read anew.
    After,
}

impl Phase {
    pub(super) const ALL: [Self; 5] = [Self::Read, Self::List, Self::Before, Self::Put, Self::After];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum FaultKind {
    /// 503, as each store words it; nothing is done.
    RefusedS3,
    RefusedAzure,
    RefusedGcs,
    /// 403.
    Forbidden,
    /// Done, and then the store says 503.
    ErrorAfter,
    /// The store says 503, and does it later.
    ErrorLater,
    /// Done; the client sends it again by itself and is told that the entry exists.
    RetryCollides,
    /// The same, as Azure words it: a failed precondition.
    RetryPrecondition,
    /// 409 although nothing was done.
    ExistsNothing,
    /// Azure's 409 BlobAlreadyExists although nothing was done.
    BlobExistsNothing,
    /// 412 although nothing was done.
    PreconditionNothing,
    /// Done, but no answer ever comes.
    AnswerLost,
    /// No answer, and nothing is ever done.
    RequestLost,
    /// No answer, but it is done when nobody waits any more.
    ActsLater,
    /// Others go first, for a while.
    Delay,
    /// The answer ends in an error in its middle.
    Breaks,
    /// The listing ends early without an error.
    TornList,
    /// The listing does not have the newest entries yet.
    StaleList,
    /// The listing lacks an entry in its middle.
    HoleyList,
    /// The migrator's process dies before the request is known to be done.
    Crash,
    /// The migrator's process dies after it was done.
    CrashAfter,
    /// Another writer does something right before the request.
    Meanwhile(Op),
}

/// What other writers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Op {
    Append,
    /// Other files, the same schema.
    Overwrite,
    /// Other files, with the columns of version 0 and all properties.
    OverwriteOldSchema,
    /// Other files, with the columns of version 0 and no properties.
    Replace,
    SetProperty,
    AddColumn,
    /// A migration to this version, by hand.
    StampTo(u32),
    RaiseFloor,
    Diverge,
    BadStamp,
    OtherKind,
    EnableTimestamps,
    EnableMapping,
    EnableV2Checkpoint,
    /// A feature that nobody knows.
    EnableUnknown,
    Checkpoint,
    /// A checkpoint, and no entry below it is left.
    CleanUp,
    /// A checkpoint, and no entry up to it is left.
    CleanUpAll,
    /// The hint names a checkpoint that is not there.
    BrokenHint,
    EmptyHint,
    Drop,
    RecreateLower,
    RecreateEqual,
    RecreateHigher,
}
