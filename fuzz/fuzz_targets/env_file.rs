//! Feeds arbitrary bytes to the env-file parser: it must not panic, must render what it read, and
//! must read back what was set.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::env_file::EnvFile;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = EnvFile::parse_bytes(bytes) else {
        return;
    };
    assert_eq!(file.to_string().as_bytes(), bytes);

    // The file itself serves as a source of odd values.
    let value = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
    let first = file.keys().next().unwrap_or("NEW_KEY").to_owned();
    for key in [first.as_str(), "ADDED"] {
        if file.set(key, &value).is_ok() {
            assert_eq!(file.get(key), Some(value.as_str()));
            assert_eq!(EnvFile::parse(&file.to_string()), Ok(file.clone()));
        }
    }
});
