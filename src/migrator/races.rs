//! The races that were lost, and the error that they become when the time is over.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorCode, Stage};
use crate::model::text;
use crate::retry::Budget;

/// What one table's work has seen so far.
#[derive(Debug, Default)]
pub(super) struct Races {
    lost: u32,
    /// Who won, and how often.
    winners: BTreeMap<String, usize>,
    /// How often rows were added after a data step had gone through all that there were.
    rounds: u32,
}

/// More winners are only counted.
const MOST_NAMED: usize = 4;

impl Races {
    /// How many attempts were made and lost.
    pub(super) fn attempts(&self) -> u32 {
        self.lost
    }

    /// Notes how often a data step had to look at new files.
    pub(super) fn note_rounds(&mut self, rounds: u32) {
        self.rounds = rounds;
    }

    /// Notes an attempt that another writer won.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] when the time is over.
    pub(super) fn lost(&mut self, budget: &Budget, winner: &str) -> Result<(), Error> {
        self.lost += 1;
        *self.winners.entry(winner.to_owned()).or_default() += 1;
        if !budget.is_spent() {
            return Ok(());
        }
        let never_rests = match self.rounds {
            0 | 1 => String::new(),
            rounds => format!(
                "; the table never rests: {rounds} times files were added after all had been gone through"
            ),
        };
        let message = format!(
            "every race was lost: {} in {:.1} s; won by {}{never_rests}",
            text::count(self.lost as usize, "attempt"),
            budget.elapsed().as_secs_f64(),
            self.names()
        );
        Err(Error::new(ErrorCode::Conflict, Stage::Commit, message)
            .with_hint("nothing was written; run it again, or give it more time"))
    }

    /// The winners, those that won most often first.
    fn names(&self) -> String {
        let mut all: Vec<(&String, usize)> =
            self.winners.iter().map(|(name, times)| (name, *times)).collect();
        all.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let named = all.iter().take(MOST_NAMED).map(|(name, times)| match times {
            1 => (*name).clone(),
            times => format!("{name} ({times} times)"),
        });
        let mut named: Vec<String> = named.collect();
        let more: usize = all.iter().skip(MOST_NAMED).map(|(_, times)| times).sum();
        if more > 0 {
            named.push(format!("{more} more"));
        }
        named.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::migrator::moments::Real;

    #[test]
    fn the_error_says_how_long_how_often_and_who_won() {
        let start = |limit| Budget::start(limit, Arc::new(Real));
        let mut races = Races::default();
        for winner in ["WRITE by a", "MERGE by b", "MERGE by b", "c", "d", "e", "e", "f"] {
            assert!(races.lost(&start(Duration::from_secs(3600)), winner).is_ok());
        }
        let error = races.lost(&start(Duration::ZERO), "MERGE by b").unwrap_err();
        assert_eq!((error.code(), races.attempts()), (ErrorCode::Conflict, 9));
        assert_eq!(
            error.message(),
            "every race was lost: 9 attempts in 0.0 s; won by MERGE by b (3 times), e (2 times), WRITE by a, c, 2 more"
        );
        assert!(error.hint().unwrap().starts_with("nothing was written"));
    }
}
