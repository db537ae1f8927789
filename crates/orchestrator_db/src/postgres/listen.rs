//! Wake-ups: a connection of its own that listens to the notifications of other processes. They only save the time until the
//! next look: a pooler of transactions passes none on, and a connection that breaks loses some.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use postgres::Client;
use postgres::fallible_iterator::FallibleIterator;

use super::pool::ConnectionPool;

/// Time until a listener sees that its store is gone.
const LOOK: Duration = Duration::from_secs(2);
/// Pause before a broken connection is made again.
const PAUSE: Duration = Duration::from_secs(2);

/// The listeners of a store; they end with it.
#[derive(Debug, Default)]
pub(super) struct NoticeListener {
    is_over: Arc<AtomicBool>,
}

impl NoticeListener {
    pub(super) fn start(&self, pool: Arc<ConnectionPool>, wake: Box<dyn Fn() + Send>) {
        let is_over = Arc::clone(&self.is_over);
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if let Ok(mut client) = pool.connect_to_listen() {
                    // What was stored while nothing listened was announced to nobody.
                    wake();
                    hear(&mut client, &wake, &is_over);
                }
                thread::sleep(PAUSE);
            }
        });
    }
}

impl Drop for NoticeListener {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Calls back for each notification, until the connection breaks or the store is gone.
fn hear(client: &mut Client, wake: &dyn Fn(), is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) && !client.is_closed() {
        match client.notifications().timeout_iter(LOOK).next() {
            Ok(Some(_)) => wake(),
            Ok(None) => {}
            Err(_) => return,
        }
    }
}
