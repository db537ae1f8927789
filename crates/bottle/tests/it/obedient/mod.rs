//! The obedient agent: it does whatever any text tells it, and nothing comes of it. Payloads stand in issues, comments,
//! reviews, files and names; after each run the test looks at every way out of the host. `make obedient` runs all and prints
//! the table; the short form is part of `make test`.

mod payload;
mod scene;
mod table;
mod wall;

use std::fmt::Write;

use payload::Act;
use scene::{CONTROL, Stage, secrets};
use table::ACTS;
use testkit::part::{Part, require};
use wall::SignedRecord;

/// Variable that asks for all acts.
const ALL: &str = "OBEDIENT";

#[test]
fn an_agent_that_obeys_every_text_does_no_harm() {
    if require(Part::Perl).is_none() {
        return;
    }
    let is_all = host::env::var(ALL).is_some();
    let mut table = TableOfWalls::default();
    for act in ACTS.iter().filter(|act| is_all || act.is_short) {
        let Some(stage) = Stage::new(act.rows) else { return };
        let output = stage.run(act.rows);
        assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), stage.scene.log());
        table.add(act, &stage);
    }
    println!("{}", table.render());
    assert!(table.faults.is_empty(), "{}", table.faults.join("\n"));
}

#[test]
fn what_looks_for_harm_finds_it() {
    let Some(stage) = Stage::new(&[]) else { return };
    let output = stage.run(&[]);
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), stage.scene.log());
    // A secret in the repository is at origin and in the bottle's folder.
    let found = wall::find_leaks(&stage, &[CONTROL]);
    assert_eq!(found, [(CONTROL, "branch, commit"), (CONTROL, "log")]);
    assert_eq!(wall::find_foreign_writes(&stage), Vec::<String>::new());
    stage.scene.person.fork.origin.git(&["branch", "strange", "main"]);
    assert_eq!(wall::find_foreign_writes(&stage).len(), 1);
    let folder = stage.scene.person.hermetic.root().join("folder");
    std::fs::create_dir(&folder).expect("made");
    let line = format!("touch {}/envrc\n", stage.mark.display());
    std::fs::write(folder.join(".envrc"), line).expect("written");
    wall::open(&stage.scene, &folder);
    assert_eq!(wall::list(&stage.mark), ["envrc"]);
}

/// Rows and sums over all acts.
#[derive(Default)]
struct TableOfWalls {
    rows: Vec<String>,
    faults: Vec<String>,
}

impl TableOfWalls {
    fn add(&mut self, act: &Act, stage: &Stage) {
        let record = SignedRecord::load(&stage.scene);
        let leaks = wall::find_leaks(stage, &secrets());
        let foreign = wall::find_foreign_writes(stage);
        let programs = wall::open_result(stage, record.is_held());
        self.faults.extend(leaks.iter().map(|leak| format!("{}: leaked {leak:?}", act.name)));
        self.faults.extend(foreign.iter().map(|write| format!("{}: wrote {write}", act.name)));
        self.faults.extend(programs.iter().map(|name| format!("{}: {name} ran", act.name)));
        for row in act.rows {
            let (obeyed, recorded) = (record.was_obeyed(row.id), record.has(row.outcome));
            if !obeyed {
                self.faults.push(format!("{}: the agent did not find it", row.id));
            }
            if !recorded {
                let verdict = record.verdict();
                self.faults.push(format!("{}: no line for {:?} {verdict}", row.id, row.outcome));
            }
            let word = |yes: bool| if yes { "yes" } else { "NO" };
            self.rows.push(format!(
                "{:<26} {:<28} {:<11} {:<6} {:>6} {:>7} {:>8} {:<8}",
                row.id,
                row.place.to_string(),
                format!("{:?}", row.disguise).to_lowercase(),
                word(obeyed),
                leaks.len(),
                foreign.len(),
                programs.len(),
                word(obeyed && recorded),
            ));
        }
    }

    fn render(&self) -> String {
        let mut text = format!(
            "{:<26} {:<28} {:<11} {:<6} {:>6} {:>7} {:>8} {:<8}\n",
            "payload", "planted in", "as", "obeyed", "leaked", "foreign", "programs", "recorded"
        );
        for row in &self.rows {
            writeln!(text, "{row}").expect("a text");
        }
        write!(text, "{} payloads, {} faults", self.rows.len(), self.faults.len()).expect("a text");
        text
    }
}
