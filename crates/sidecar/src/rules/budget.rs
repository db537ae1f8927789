//! How often a run may call, so that a flood reaches the record and not the forge.

/// What a run may ask for in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) reads_max: u64,
    pub(crate) writes_max: u64,
}

/// What a run has asked for so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

/// Which purse a call is paid from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purse {
    Read,
    Write,
    /// Saying that the work is done must always be possible.
    Free,
}

/// Takes a call into account; false if there is nothing left for it.
pub(crate) fn spend(budget: &Budget, spent: &mut Spent, purse: Purse) -> bool {
    let (used, most) = match purse {
        Purse::Read => (&mut spent.reads, budget.reads_max),
        Purse::Write => (&mut spent.writes, budget.writes_max),
        Purse::Free => return true,
    };
    let is_left = *used < most;
    *used += u64::from(is_left);
    is_left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purse_is_emptied_by_itself_and_the_end_is_free() {
        let budget = Budget { reads_max: 2, writes_max: 1 };
        let mut spent = Spent::default();
        let mut ask = |purse| spend(&budget, &mut spent, purse);
        assert!(ask(Purse::Read) && ask(Purse::Read) && !ask(Purse::Read));
        assert!(ask(Purse::Write) && !ask(Purse::Write));
        assert!(ask(Purse::Free) && ask(Purse::Free));
        assert_eq!(spent, Spent { reads: 2, writes: 1 });
    }
}
