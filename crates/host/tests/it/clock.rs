//! Timers that count real time.

use std::time::{Duration, Instant};

use host::clock::{BootTimer, boottime};

#[tokio::test]
async fn a_boot_timer_runs_out_once_its_time_has_passed() {
    let start = Instant::now();
    let timer = BootTimer::after(Duration::from_millis(150)).unwrap();
    assert!(timer.remaining() > Duration::ZERO);
    timer.wait().await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(149), "{:?}", start.elapsed());
    assert!(boottime() >= timer.deadline());
    // Whoever asks again is told again.
    timer.wait().await.unwrap();
    assert_eq!(timer.remaining(), Duration::ZERO);
}

#[tokio::test]
async fn a_deadline_in_the_past_has_run_out() {
    BootTimer::at(Duration::ZERO).unwrap().wait().await.unwrap();
    BootTimer::after(Duration::ZERO).unwrap().wait().await.unwrap();
}

#[tokio::test]
async fn a_timer_that_is_far_away_does_not_run_out() {
    let timer = BootTimer::after(Duration::MAX).unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(50), timer.wait()).await;
    assert!(waited.is_err());
}
