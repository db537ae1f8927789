//! Promises about the operation log, kept on a real disk.

use model::id::ProjectName;
use model::secret::Secret;

use super::*;

const NOON: &str = "2025-01-15T12:00:00Z";

/// A run with a log of three lines, closed again.
struct Sample {
    _root: tempfile::TempDir,
    run: RunDir,
}

impl Sample {
    fn empty() -> Self {
        let root = tempfile::tempdir().unwrap();
        let project = ProjectName::parse("app").unwrap();
        let run = RunDir::create(root.path(), &project, NOON.parse().unwrap()).unwrap();
        Self { _root: root, run }
    }

    fn of_three() -> Self {
        let sample = Self::empty();
        let log = OperationLog::create(&sample.run, redactor()).unwrap();
        for target in ["one", "two", "three"] {
            log.append_at(&push(target), NOON.parse().unwrap()).unwrap();
        }
        sample
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.run.operations()).unwrap();
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    fn open(&self) -> Result<OperationLog, StoreError> {
        OperationLog::open(&self.run, redactor())
    }

    fn verify(&self) -> Result<ChainHead, ChainFault> {
        verify(&self.run.operations(), self.run.id())
    }

    /// Changes the lines behind the log's back, and tells what is noticed and where.
    #[track_caller]
    fn tampered(change: impl FnOnce(&mut Vec<String>)) -> String {
        let sample = Self::of_three();
        let mut lines = sample.lines();
        change(&mut lines);
        fs::write(sample.run.operations(), lines.concat()).unwrap();
        sample.verify().unwrap_err().to_string()
    }
}

fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new([Secret::new("hunter2-hunter2")]))
}

fn push(target: &str) -> Operation {
    Operation::new("branch.push", target, OperationOutcome::Done)
}

#[test]
fn each_line_carries_the_digest_of_the_one_before() {
    let sample = Sample::of_three();
    let genesis = sha256(b"bottleworks run app_20250115_120000");
    let mut prev = genesis;
    for (index, (line, target)) in sample.lines().iter().zip(["one", "two", "three"]).enumerate() {
        let seq = index + 1;
        let expected = format!(
            "{{\"seq\":{seq},\"ts\":\"2025-01-15T12:00:00Z\",\"prev\":\"{prev}\",\"op\":\"branch.push\",\
             \"target\":\"{target}\",\"outcome\":\"done\",\"detail\":null}}"
        );
        assert_eq!(line.trim_end(), expected);
        prev = sha256(expected.as_bytes());
    }
    assert_eq!(sample.verify().unwrap(), ChainHead { seq: 3, head: prev });
}

/// Bytes and digests as the first version wrote them: this log must verify for ever.
#[test]
fn a_log_of_the_first_version_verifies_byte_for_byte() {
    let sample = Sample::empty();
    let written = concat!(
        r#"{"seq":1,"ts":"2025-01-15T12:00:00Z","prev":"1d37ac5c6a15b9dd02e74b7b7b8cd84ac4bcac55263055e1a848b93ce2607394","op":"branch.push","target":"one","outcome":"done","detail":null}"#,
        "\n",
        r#"{"seq":2,"ts":"2025-01-15T12:00:00Z","prev":"8978756c804eec909da71c96c3c4718da96578cba61d83017965437d46098cac","op":"branch.push","target":"two","outcome":"done","detail":null}"#,
        "\n"
    );
    fs::write(sample.run.operations(), written).unwrap();
    let head = "57606b07e396e104a33f311417bd26d8a8a44ff13d9eb731de239771391a877b";
    assert_eq!(sample.verify().unwrap(), ChainHead { seq: 2, head: head.to_owned() });
    assert_eq!(sample.open().unwrap().append(&push("three")).unwrap().seq, 3);
}

#[test]
fn an_empty_log_ends_where_the_run_begins() {
    let sample = Sample::empty();
    let log = OperationLog::create(&sample.run, redactor()).unwrap();
    assert_eq!(log.head(), genesis(sample.run.id()));
    assert_eq!(sample.verify().unwrap(), log.head());
}

#[test]
fn a_changed_line_is_noticed_at_the_next_one() {
    let fault = Sample::tampered(|lines| lines[1] = lines[1].replace("two", "2"));
    assert_eq!(
        fault,
        "line 3: it does not follow the line before it, which was changed, removed or moved"
    );
    let first =
        Sample::tampered(|lines| lines[0] = lines[0].replace("\"prev\":\"", "\"prev\":\"0"));
    assert_eq!(first, "line 1: it was not written as the first line of this log");
}

#[test]
fn a_changed_last_line_gives_another_end() {
    let sample = Sample::of_three();
    let recorded = sample.verify().unwrap();
    let changed = sample.lines().concat().replace("three", "3");
    fs::write(sample.run.operations(), changed).unwrap();
    assert_ne!(sample.verify().unwrap(), recorded);
}

#[test]
fn a_removed_line_is_noticed_in_its_place() {
    let fault = Sample::tampered(|lines| drop(lines.remove(1)));
    assert_eq!(fault, "line 2: it has number 3; lines were removed, added or moved");
    let first = Sample::tampered(|lines| drop(lines.remove(0)));
    assert!(first.starts_with("line 1: it has number 2"), "{first}");
}

#[test]
fn a_line_removed_from_the_end_gives_another_end() {
    let sample = Sample::of_three();
    let recorded = sample.verify().unwrap();
    fs::write(sample.run.operations(), sample.lines()[..2].concat()).unwrap();
    let found = sample.verify().unwrap();
    assert_eq!((found.seq, recorded.seq), (2, 3));
}

#[test]
fn lines_in_another_order_are_noticed() {
    let fault = Sample::tampered(|lines| lines.swap(0, 1));
    assert!(fault.starts_with("line 1: it has number 2"), "{fault}");
}

#[test]
fn renumbering_does_not_hide_a_removed_line() {
    let fault = Sample::tampered(|lines| {
        lines.remove(1);
        lines[1] = lines[1].replace("\"seq\":3", "\"seq\":2");
    });
    assert!(fault.starts_with("line 2: it does not follow"), "{fault}");
}

#[test]
fn a_shortened_line_is_noticed() {
    let last = Sample::tampered(|lines| lines[2].truncate(40));
    assert_eq!(last, "line 3: it has no end; the log was cut or a crash tore it");
    let middle = Sample::tampered(|lines| lines[1] = format!("{}\n", &lines[1][..40]));
    assert!(middle.starts_with("line 2: it is not an entry of this log"), "{middle}");
    let blank = Sample::tampered(|lines| lines.insert(1, "\n".to_owned()));
    assert!(blank.starts_with("line 2: it is not an entry"), "{blank}");
}

#[test]
fn the_log_of_another_run_is_noticed() {
    let sample = Sample::of_three();
    let other = model::id::RunId::parse("app_20250115_120001").unwrap();
    let fault = verify(&sample.run.operations(), &other).unwrap_err();
    assert!(matches!(fault, ChainFault { line: 1, what: ChainDefect::Genesis }), "{fault}");
}

#[test]
fn a_missing_log_is_a_fault_of_no_line() {
    let fault = Sample::empty().verify().unwrap_err();
    assert!(matches!(fault, ChainFault { line: 0, what: ChainDefect::Unreadable(_) }), "{fault}");
}

#[test]
fn a_log_that_was_opened_again_goes_on_with_its_chain() {
    let sample = Sample::of_three();
    let head = sample.open().unwrap().append(&push("four")).unwrap();
    assert_eq!(head.seq, 4);
    assert_eq!(sample.verify().unwrap(), head);
}

#[test]
fn a_torn_end_is_cut_when_the_next_line_is_written_and_the_cut_is_recorded() {
    let sample = Sample::of_three();
    let before = sample.lines().concat();
    let torn = "{\"seq\":4,\"ts\":\"20";
    fs::write(sample.run.operations(), format!("{before}{torn}")).unwrap();

    let log = sample.open().unwrap();
    assert_eq!(log.head().seq, 3);
    assert!(sample.lines().concat().ends_with(torn), "opening alone changes nothing");

    assert_eq!(log.append(&push("four")).unwrap().seq, 5);
    assert_eq!(sample.verify().unwrap(), log.head());
    let lines = sample.lines();
    assert!(lines.concat().starts_with(&before));
    assert!(
        lines[3].contains("\"op\":\"log.cut\",\"target\":\"operations.jsonl\""),
        "{}",
        lines[3]
    );
    assert!(lines[3].contains(&format!("\"bytes\":{}", torn.len())), "{}", lines[3]);
    assert!(lines[3].contains(&sha256(torn.as_bytes())), "{}", lines[3]);
}

#[test]
fn a_log_that_was_changed_is_not_continued() {
    let sample = Sample::of_three();
    fs::write(sample.run.operations(), sample.lines()[1..].concat()).unwrap();
    let error = sample.open().unwrap_err();
    assert!(
        matches!(&error, StoreError::Log(ChainFileError::Broken { source, .. }) if source.line == 1),
        "{error}"
    );
}

#[test]
fn there_is_one_writer_at_a_time() {
    let sample = Sample::of_three();
    let first = sample.open().unwrap();
    assert!(matches!(sample.open(), Err(StoreError::Log(ChainFileError::Busy { .. }))));
    drop(first);
    assert!(sample.open().is_ok());
}

#[test]
fn threads_share_one_chain() {
    let sample = Sample::empty();
    let log = OperationLog::create(&sample.run, redactor()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for _ in 0..5 {
                    log.append(&push(&thread.to_string())).unwrap();
                }
            });
        }
    });
    assert_eq!(sample.verify().unwrap().seq, 20);
}

#[test]
fn a_log_is_started_once_and_never_after_the_end() {
    let sample = Sample::of_three();
    let again = OperationLog::create(&sample.run, redactor());
    assert!(matches!(again, Err(StoreError::Log(ChainFileError::Exists { .. }))));

    let log = sample.open().unwrap();
    sample.run.close(&redactor(), &log.head()).unwrap();
    assert!(matches!(log.append(&push("late")), Err(StoreError::Closed { .. })));
    drop(log);
    assert!(matches!(sample.open(), Err(StoreError::Closed { .. })));
    let head: ChainHead = crate::metadata::load_metadata(&sample.run).unwrap();
    assert_eq!(sample.verify().unwrap(), head);
}

#[test]
fn a_log_is_continued_or_started_as_needed() {
    let sample = Sample::empty();
    for count in 1..=2 {
        let log = OperationLog::open_or_create(&sample.run, redactor()).unwrap();
        assert_eq!(log.append(&push("one")).unwrap().seq, count);
    }
    assert_eq!(sample.verify().unwrap().seq, 2);
    sample.run.close(&redactor(), &json!({})).unwrap();
    let late = OperationLog::open_or_create(&sample.run, redactor());
    assert!(matches!(late, Err(StoreError::Closed { .. })));
}

#[test]
fn no_secret_reaches_the_log() {
    let sample = Sample::empty();
    let log = OperationLog::create(&sample.run, redactor()).unwrap();
    let secret = "hunter2-hunter2";
    let operation = Operation::new(secret, secret, OperationOutcome::Intended)
        .with_detail(json!({ "note": format!("with {secret}"), secret: [secret] }));
    log.append(&operation).unwrap();
    let text = sample.lines().concat();
    assert!(!text.contains(secret), "{text}");
    assert_eq!(text.matches("***").count(), 5, "{text}");
    assert!(sample.verify().is_ok());
}
