//! Copying of bytes in both directions through a tunnel, until both sides have ended or a limit is reached.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::attempt::Meter;
use crate::policy::{DenyReason, EgressLimits};

const BUFFER: usize = 128 << 10;

/// Copies bytes between the box and the server. A reached cap cuts both directions; the meter stores the reason.
pub(super) async fn pump(
    (from_box, to_box): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    (from_out, to_out): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    meter: &Meter,
    limits: &EgressLimits,
) {
    let up = copy(from_box, to_out, |bytes| meter.count_up(bytes));
    let down = copy(from_out, to_box, |bytes| meter.count_down(bytes));
    let both = async {
        // A side that has ended may still receive; one that has failed may not.
        tokio::try_join!(up, down).map(drop).unwrap_or_default();
    };
    let silence = silence(meter, Duration::from_secs(limits.idle_secs));
    let watched = async {
        tokio::select! {
            () = both => {}
            () = silence => {}
        }
    };
    timeout(Duration::from_secs(limits.total_secs), watched).await.unwrap_or_default();
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: impl Fn(u64) -> Result<(), DenyReason>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            to.shutdown().await?;
            return Ok(());
        }
        count(read as u64).map_err(io::Error::other)?;
        to.write_all(&buffer[..read]).await?;
    }
}

/// Returns once nothing has moved for `limit`, at the latest after twice that time.
async fn silence(meter: &Meter, limit: Duration) {
    loop {
        let before = meter.moved();
        sleep(limit).await;
        if meter.moved() == before {
            return;
        }
    }
}
