//! Memory that the kernel holds for the box outside of its processes. Only a process inside the namespaces of the box can
//! see it: System V objects and the buffers of sockets.

use std::fs;

use super::socket_memory;

/// The kernel's own part of a message, a queue and a semaphore, rounded up to what it allocates.
const MESSAGE_BYTES: u64 = 64;
const QUEUE_BYTES: u64 = 256;
const SEMAPHORE_BYTES: u64 = 64;

pub(crate) fn observe() -> u64 {
    let table =
        |name: &str| fs::read_to_string(format!("/proc/sysvipc/{name}")).unwrap_or_default();
    parse_segments(&table("shm"))
        .saturating_add(parse_queues(&table("msg")))
        .saturating_add(parse_semaphores(&table("sem")))
        .saturating_add(socket_memory::observe())
}

/// Sums the columns of a table, after its line of headings.
fn sum(table: &str, bytes_of: impl Fn(&[u64]) -> Option<u64>) -> u64 {
    table.lines().skip(1).fold(0, |sum, line| {
        // Keys may be negative, and no column that is read here is one.
        let row: Vec<u64> =
            line.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        sum.saturating_add(bytes_of(&row).unwrap_or(0))
    })
}

/// Pages of a segment stay when every process has detached it.
fn parse_segments(table: &str) -> u64 {
    sum(table, |row| Some(row.get(14)? + row.get(15)?))
}

fn parse_queues(table: &str) -> u64 {
    sum(table, |row| Some(row.get(3)? + row.get(4)? * MESSAGE_BYTES + QUEUE_BYTES))
}

fn parse_semaphores(table: &str) -> u64 {
    sum(table, |row| Some(row.get(3)? * SEMAPHORE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHM: &str = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
        -123          0  1600              67108864     7     7      0  1000  1000  1000  1000 0 0 0  4096  8192\n\
        0          1  1600              67108864     7     7      0  1000  1000  1000  1000 0 0 0  100  0\n";

    #[test]
    fn segments_count_with_their_pages_and_not_with_their_size() {
        assert_eq!(parse_segments(SHM), 4096 + 8192 + 100);
        assert_eq!(parse_segments(""), 0);
    }

    #[test]
    fn many_small_messages_cost_more_than_their_bytes() {
        let table = "key msqid perms cbytes qnum lspid lrpid uid gid cuid cgid stime rtime ctime\n\
            0 0 600 1000 1000 7 0 1000 1000 1000 1000 0 0 0\n";
        assert_eq!(parse_queues(table), 1000 + 1000 * MESSAGE_BYTES + QUEUE_BYTES);
    }

    #[test]
    fn semaphores_count_one_by_one() {
        let table = "key semid perms nsems uid gid cuid cgid otime ctime\n0 0 600 32000 1000 1000 1000 1000 0 0\n";
        assert_eq!(parse_semaphores(table), 32_000 * SEMAPHORE_BYTES);
    }
}
