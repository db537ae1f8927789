//! Keeping what comes in before it is acknowledged. All that arrive while one commit is being written share the next one:
//! each waits for the disk once, and the disk is asked once for many.

use std::sync::Arc;
use std::thread;

use orchestrator_db::{DeliveryInsert, NewDelivery, SqliteForgeStateStore};
use tokio::sync::{Notify, mpsc, oneshot};

/// So many may wait for the disk; who comes then is told to come back later.
const PLACES: usize = 1024;
/// So many share one commit.
const BATCH: usize = 256;

type Waiting = (NewDelivery, oneshot::Sender<Result<DeliveryInsert, String>>);

/// The way into the inbox, for everybody who receives.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    sender: mpsc::Sender<Waiting>,
}

/// Why something was not kept. It must not be acknowledged then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotKept {
    #[error("too much came at once; send it again later")]
    Busy,
    #[error("it could not be kept: {0}")]
    Store(String),
}

impl Inbox {
    /// Opens the inbox over a connection of its own; `news` is notified after each commit that brought something new.
    pub(crate) fn open(store: SqliteForgeStateStore, news: Arc<Notify>) -> Self {
        let (sender, receiver) = mpsc::channel(PLACES);
        thread::spawn(move || write_all(&store, receiver, &news));
        Self { sender }
    }

    /// Keeps one delivery; returns when it is on disk.
    pub(crate) async fn keep(&self, delivery: NewDelivery) -> Result<DeliveryInsert, NotKept> {
        let (answer, answered) = oneshot::channel();
        self.sender.try_send((delivery, answer)).or(Err(NotKept::Busy))?;
        match answered.await {
            Ok(Ok(kept)) => Ok(kept),
            Ok(Err(words)) => Err(NotKept::Store(words)),
            Err(_) => Err(NotKept::Store("the inbox is closed".to_owned())),
        }
    }
}

/// One writer: SQLite has no more either.
fn write_all(store: &SqliteForgeStateStore, mut receiver: mpsc::Receiver<Waiting>, news: &Notify) {
    let mut waiting = Vec::with_capacity(BATCH);
    while receiver.blocking_recv_many(&mut waiting, BATCH) > 0 {
        let (list, answers): (Vec<NewDelivery>, Vec<_>) = waiting.drain(..).unzip();
        host::failpoint::hit("received");
        match store.insert_deliveries(&list) {
            Ok(kept) => {
                host::failpoint::hit("inserted");
                if kept.contains(&DeliveryInsert::New) {
                    news.notify_one();
                }
                for (answer, kept) in answers.into_iter().zip(kept) {
                    // Whoever sent it may have gone; it is kept all the same.
                    drop(answer.send(Ok(kept)));
                }
            }
            Err(error) => {
                let words = model::error_chain(&error);
                for answer in answers {
                    drop(answer.send(Err(words.clone())));
                }
            }
        }
    }
}
