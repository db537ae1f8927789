//! The inbox: stores deliveries before they are acknowledged, on a thread with its own database connection. Deliveries that
//! arrive during a commit share the next one, so that each waits for one commit and the disk is synced once for many.

use std::sync::Arc;
use std::thread;

use orchestrator_db::{Delivery, DeliveryInsert, Store};
use tokio::sync::{Notify, mpsc, oneshot};

/// Deliveries that may wait for the disk; further ones are refused with "try again".
const CAPACITY: usize = 1024;
const BATCH_MAX: usize = 256;

type PendingInsert = (Delivery, oneshot::Sender<Result<DeliveryInsert, String>>);

#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    sender: mpsc::Sender<PendingInsert>,
}

/// A delivery was not stored, and must not be acknowledged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InboxError {
    #[error("the inbox is full; send it again later")]
    Full,
    #[error("it could not be stored: {0}")]
    Database(String),
}

impl Inbox {
    /// Opens the inbox with a connection of its own; `arrived` is notified after each commit with a new delivery.
    pub(crate) fn open(store: Arc<dyn Store>, arrived: Arc<Notify>) -> Self {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        thread::spawn(move || write_batches(&*store, receiver, &arrived));
        Self { sender }
    }

    /// Stores one delivery; returns once it is on disk.
    pub(crate) async fn store(&self, delivery: Delivery) -> Result<DeliveryInsert, InboxError> {
        let (sender, inserted) = oneshot::channel();
        self.sender.try_send((delivery, sender)).or(Err(InboxError::Full))?;
        match inserted.await {
            Ok(Ok(insert)) => Ok(insert),
            Ok(Err(message)) => Err(InboxError::Database(message)),
            Err(_) => Err(InboxError::Database("the inbox is closed".to_owned())),
        }
    }
}

/// The only writer: SQLite allows one at a time.
fn write_batches(store: &dyn Store, mut receiver: mpsc::Receiver<PendingInsert>, arrived: &Notify) {
    let mut pending = Vec::with_capacity(BATCH_MAX);
    while receiver.blocking_recv_many(&mut pending, BATCH_MAX) > 0 {
        let (list, senders): (Vec<Delivery>, Vec<_>) = pending.drain(..).unzip();
        host::failpoint::hit("received");
        match store.insert_deliveries(&list) {
            Ok(inserts) => {
                host::failpoint::hit("inserted");
                if inserts.contains(&DeliveryInsert::New) {
                    arrived.notify_one();
                }
                for (sender, insert) in senders.into_iter().zip(inserts) {
                    // The client may be gone; the delivery is stored all the same.
                    drop(sender.send(Ok(insert)));
                }
            }
            Err(error) => {
                let message = model::error_chain(&error);
                for sender in senders {
                    drop(sender.send(Err(message.clone())));
                }
            }
        }
    }
}
