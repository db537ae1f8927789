//! The `demo` of a program, and its folder: the same in the three programs.

use crate::hermetic::{Hermetic, Output};
use crate::part::{Part, require};

/// A program whose demo is run, with its folders in a place of their own.
#[derive(Debug)]
pub struct Demo {
    hermetic: Hermetic,
    path: &'static str,
}

impl Demo {
    /// The program at `path`; `None` when bubblewrap is missing, which is then reported by name.
    pub fn new(path: &'static str) -> Option<Self> {
        require(Part::Bwrap)?;
        Some(Self { hermetic: Hermetic::new(), path })
    }

    /// Runs the demo, with both streams in one, as on a terminal.
    pub fn run(&self, flags: &str) -> Output {
        let mut command = self.hermetic.command("sh");
        let line = format!("exec '{}' demo {flags} 2>&1", self.path);
        self.hermetic.run(command.args(["-c", &line]).env("TMPDIR", self.hermetic.work()))
    }

    /// The number of folders that demos have left.
    pub fn folders(&self) -> usize {
        std::fs::read_dir(self.hermetic.work()).expect("the folder").count()
    }

    /// Tries that a demo keeps its folder when asked, and when it fails.
    pub fn keeps_its_folder_when_asked_or_when_it_fails(&self) {
        let kept = self.run("--keep");
        assert_eq!(kept.status, Some(0), "{}", kept.snapshot());
        assert!(kept.stdout.contains("rm -r "), "{}", kept.snapshot());
        assert_eq!(self.folders(), 1);
        let failed = self.run("--backend nonsense");
        assert_ne!(failed.status, Some(0), "{}", failed.snapshot());
        assert_eq!(self.folders(), 2);
    }
}
