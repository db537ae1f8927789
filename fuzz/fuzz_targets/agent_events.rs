//! Feeds arbitrary lines to the event readers of every agent: whatever an agent prints, they must not panic.

#![no_main]

use agent::provider::Provider;
use agent::reader::EventReader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for provider in Provider::all() {
        let mut reader = EventReader::new(provider);
        for line in text.lines() {
            reader.push_line(line);
        }
        drop(reader.finish(None));
    }
});
