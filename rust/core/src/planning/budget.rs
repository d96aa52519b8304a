//! The most work that a plan or a verification may take.
//!
//! Work is counted in steps and not measured by a clock: every machine ends the search for the same input at the same place, so
//! two leaders have the same plan. A step is about a visit to one arc, or to one partition and one member. A loop whose length
//! depends on the group must spend its steps inside the loop: steps that are spent after the loop cannot end it.

use std::cell::Cell;
use std::fmt;

/// The steps between two calls of `interrupted`: some microseconds.
const STEPS_PER_POLL: u64 = 1 << 12;

/// The work that the caller allows. The default is the number of steps that the work sets for its input, without interruption.
#[derive(Clone, Copy, Default)]
pub struct Limit<'a> {
    steps: Option<u64>,
    interrupted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Limit<'a> {
    /// At most `steps` for each search of the work, however large the input.
    #[must_use]
    pub fn of_steps(steps: u64) -> Self {
        Self { steps: Some(steps), interrupted: None }
    }

    /// Calls `interrupted` now and then. The work ends once it returns true. The plan then depends on time: it is valid, but
    /// another run may end with another plan.
    #[must_use]
    pub fn interrupted_by(self, interrupted: &'a dyn Fn() -> bool) -> Self {
        Self { interrupted: Some(interrupted), ..self }
    }

    /// The budget of work that needs at most `steps` for ordinary input.
    pub(crate) fn budget(&self, steps: u64) -> Budget<'a> {
        Budget::new(self.steps.map_or(steps, |given| given.min(steps)), self.interrupted)
    }
}

impl fmt::Debug for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interruptible = self.interrupted.is_some();
        f.debug_struct("Limit").field("steps", &self.steps).field("interruptible", &interruptible).finish()
    }
}

/// Why work ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The work took all its steps.
    Steps,
    /// The work was interrupted.
    Interrupted,
    /// The search contradicted itself. A defect of the solver, never of the group.
    Defect,
}

/// The objective of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The least balance score.
    Balance,
    /// The fewest partitions moved, and the fewest read from another rack, among the plans of the least balance score.
    Moves,
    /// The least lag of the heaviest member.
    Lag,
    /// The least load of the most loaded member, relative to its capacity.
    Load,
}

/// A search that ended early. The plan is valid, but a better one may exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    /// The objective of the search.
    pub goal: Goal,
    /// Why the search ended.
    pub cause: Cause,
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let goal = match self.goal {
            Goal::Balance => "the least balance score",
            Goal::Moves => "the fewest moves",
            Goal::Lag => "the least lag of the heaviest member",
            Goal::Load => "the least load of the heaviest member",
        };
        let cause = match self.cause {
            Cause::Steps => "at its limit of steps",
            Cause::Interrupted => "when its time was up",
            Cause::Defect => "at a defect of the solver, please report it",
        };
        write!(f, "the search for {goal} ended {cause}")
    }
}

/// The budget has no steps left, or the work was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent(pub(crate) Cause);

impl Spent {
    pub(crate) fn seeking(self, goal: Goal) -> Limited {
        Limited { goal, cause: self.0 }
    }
}

/// The steps that are left. A spent budget stays spent.
pub(crate) struct Budget<'a> {
    /// The steps left before the next poll.
    near: Cell<u64>,
    /// The steps left after the next poll.
    far: Cell<u64>,
    end: Cell<Option<Cause>>,
    interrupted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Budget<'a> {
    fn new(steps: u64, interrupted: Option<&'a dyn Fn() -> bool>) -> Self {
        Self { near: Cell::new(0), far: Cell::new(steps), end: Cell::new(None), interrupted }
    }

    /// Spends steps, at least one.
    #[inline]
    pub(crate) fn spend(&self, steps: u64) -> Result<(), Spent> {
        let near = self.near.get();
        if steps.max(1) <= near {
            self.near.set(near - steps.max(1));
            return Ok(());
        }
        self.poll(steps.max(1))
    }

    /// The cause, if the budget is spent.
    pub(crate) fn spent(&self) -> Option<Spent> {
        self.end.get().map(Spent)
    }

    /// Spends steps that reach beyond the next poll.
    #[cold]
    fn poll(&self, steps: u64) -> Result<(), Spent> {
        if let Some(cause) = self.end.get() {
            return Err(Spent(cause));
        }
        let left = self.near.get() + self.far.get();
        let end = if left < steps {
            Some(Cause::Steps)
        } else {
            self.interrupted.filter(|interrupted| interrupted()).map(|_| Cause::Interrupted)
        };
        if let Some(cause) = end {
            self.near.set(0);
            self.end.set(end);
            return Err(Spent(cause));
        }
        let left = left - steps;
        self.near.set(left.min(STEPS_PER_POLL));
        self.far.set(left - left.min(STEPS_PER_POLL));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_steps_as_there_are() {
        for steps in [0, 1, 7, STEPS_PER_POLL, 10 * STEPS_PER_POLL + 3] {
            let budget = Limit::default().budget(steps);
            let mut spent = 0;
            while budget.spend(1).is_ok() {
                spent += 1;
                assert_eq!(budget.spent(), None);
            }
            assert_eq!((spent, budget.spent()), (steps, Some(Spent(Cause::Steps))));
            assert_eq!(budget.spend(1), Err(Spent(Cause::Steps)));
            assert_eq!(budget.spend(0), Err(Spent(Cause::Steps)));
        }
        let budget = Limit::default().budget(3 * STEPS_PER_POLL);
        assert_eq!(budget.spend(3 * STEPS_PER_POLL), Ok(()));
        assert_eq!(budget.spend(1), Err(Spent(Cause::Steps)));
        let budget = Limit::default().budget(100);
        assert_eq!(budget.spend(101), Err(Spent(Cause::Steps)));
        assert_eq!(budget.spend(1), Err(Spent(Cause::Steps)), "who could not pay gets nothing more");
    }

    #[test]
    fn a_limit_only_lowers_what_the_work_allows_itself() {
        let steps = |limit: Limit<'_>| {
            let budget = limit.budget(10);
            (0..100).take_while(|_| budget.spend(1).is_ok()).count()
        };
        assert_eq!([steps(Limit::default()), steps(Limit::of_steps(4)), steps(Limit::of_steps(40))], [10, 4, 10]);
    }

    #[test]
    fn an_interrupt_is_seen_within_a_poll_and_stays() {
        let interrupted = Cell::new(false);
        let ask = || interrupted.get();
        let budget = Limit::default().interrupted_by(&ask).budget(u64::MAX / 2);
        assert_eq!(budget.spend(10 * STEPS_PER_POLL), Ok(()));
        interrupted.set(true);
        let more = (0..10 * STEPS_PER_POLL).take_while(|_| budget.spend(1).is_ok()).count() as u64;
        assert!(more <= STEPS_PER_POLL, "{more} steps after the interrupt");
        interrupted.set(false);
        assert_eq!(budget.spend(1), Err(Spent(Cause::Interrupted)));
    }
}
