//! Parallel work on many small files: a thousand of them in sequence is mostly waiting for the kernel.

use std::thread;

/// Below this, starting a thread costs more than it saves.
const WORTH_IT: usize = 64;
/// More would only wait for one another in the same file system.
const MAX_THREADS: usize = 4;

/// Maps every item, on several threads if there are many; the results keep the order.
pub(crate) fn spread<T: Send, R: Send>(items: Vec<T>, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    let processors = host::cpu::available().unwrap_or(1).clamp(1, MAX_THREADS);
    if processors == 1 || items.len() < WORTH_IT {
        return items.into_iter().map(act).collect();
    }
    let (share, count) = (items.len().div_ceil(processors), items.len());
    let mut items = items.into_iter();
    let shares: Vec<Vec<T>> =
        (0..processors).map(|_| items.by_ref().take(share).collect()).collect();
    let act = &act;
    let done = thread::scope(|scope| {
        let threads: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || share.into_iter().map(act).collect::<Vec<R>>()))
            .collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut results = Vec::with_capacity(count);
    for share in done {
        results.extend(share.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items_however_many_there_are() {
        for count in [0, 1, WORTH_IT - 1, WORTH_IT, 1001] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(spread(items, |item| item * 2), expected);
        }
    }
}
