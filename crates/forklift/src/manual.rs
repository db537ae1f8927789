//! The parts of forklift's manual that its command line does not have: examples, files and variables.

use shell::manual::Manual;

pub(crate) static MANUAL: Manual = Manual {
    examples: EXAMPLES,
    files: &[
        ("FORK.md", "rules and notes of a fork, on its main branch"),
        ("FORK.toml", "the changes of a fork, by name, on its main branch"),
        ("~/.local/state/forklift/runs", "a folder for each run: record, logs, workspace"),
        ("~/.local/state/forklift/trains", "branches and records of trains"),
        ("~/.local/state/forklift/checks", "results of checks, by the tree that was checked"),
        ("~/.cache/forklift", "mirrors of forks, and what was learned from their merges"),
        ("~/.config/forklift/opencode.env", "settings of OpenCode (0600), if you keep them there"),
        ("~/.config/forklift/forge-token", "the token of the forge (0600)"),
    ],
    environment: &[
        ("FORKLIFT_TOKEN", "the older name of BOTTLEWORKS_FORGE_TOKEN"),
        ("FORKLIFT_OPENCODE_ENV", "the file with the settings of OpenCode"),
        ("BOTTLEWORKS_TIMEOUT, BOTTLEWORKS_SILENCE", "limits of an agent in seconds"),
    ],
};

const EXAMPLES: &[(&str, &str)] = &[
    (
        "",
        "forklift --dry-run\nforklift\nforklift -C ~/src/fork --target v2.0\nforklift --all @forks.txt --quiet",
    ),
    ("attach", "forklift attach\nforklift attach last --accept-loss"),
    (
        "resume",
        "forklift resume --answer 'keep our version of the parser'\nforklift resume last --timeout 900",
    ),
    ("retry", "forklift retry\nforklift retry last"),
    ("publish", "forklift publish\nforklift publish last --accept-loss"),
    ("withdraw", "forklift withdraw\nforklift withdraw last --yes"),
    ("status", "forklift status\nforklift status --max-days 3 --json"),
    ("changelog", "forklift changelog\nforklift changelog --target v2.0"),
    (
        "delta",
        "forklift delta\nforklift delta --html delta.html\nforklift delta --limit 500 --json",
    ),
    ("delta export", "forklift delta export ../patches"),
    ("delta rebase", "forklift delta rebase\nforklift delta rebase --target latest-tag"),
    ("delta check", "forklift delta check\nforklift delta check --target v2.0 --all"),
    ("files", "forklift files\nforklift files --hash"),
    (
        "first",
        "forklift first\nforklift first --check\nforklift first --check='make test' --prove-check",
    ),
    (
        "security",
        "forklift security --advisories ~/src/vulndb\nforklift security --format sarif\nforklift security --update --min-severity high",
    ),
    (
        "security land",
        "forklift security land CVE-2024-1234\nforklift security land CVE-2024-1234 --commit 1a2b3c4d --no-push",
    ),
    (
        "prune",
        "forklift prune\nforklift prune --dry-run\nforklift prune --older-than 2w --keep 5 --yes",
    ),
    ("agents install", "forklift agents install claude"),
    ("agents list", "forklift agents list"),
    ("image build", "forklift image build"),
    ("image check", "forklift image check"),
    ("runs", "forklift runs\nforklift runs --json"),
    ("show", "forklift show\nforklift show last --json"),
    ("log", "forklift log\nforklift log -f last"),
    ("replay", "forklift replay --last 30\nforklift replay --html merges.html"),
    (
        "train",
        "forklift train --plan\nforklift train\nforklift train --batch 50 --stack\nforklift train --steps 1 --prove-check",
    ),
    ("trust", "forklift trust"),
    ("merge-plan", "forklift merge-plan --git-dir .git HEAD upstream/main"),
    ("doctor", "forklift doctor\nforklift doctor --json"),
    ("demo", "forklift demo"),
    (
        "init",
        "forklift init\nforklift init --yes --upstream https://git.example.org/them/project --provider claude",
    ),
    ("config show", "forklift config show"),
    ("config list", "forklift config list"),
    ("config get", "forklift config get agent"),
    ("config set", "forklift config set agent claude\nforklift config set limits.timeout_secs 900"),
    ("config unset", "forklift config unset agent"),
    ("config path", "forklift config path"),
    ("script", "forklift script"),
    ("completions", "forklift completions bash\nforklift completions fish"),
    ("man", "forklift man"),
];
