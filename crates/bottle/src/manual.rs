//! The parts of the manual of `bot-bottle` that its command line does not have: examples, files and variables.

use shell::manual::Manual;

pub(crate) static MANUAL: Manual = Manual {
    examples: EXAMPLES,
    files: &[
        ("~/.bot-bottle/agents/NAME.toml", "the manifest of an agent"),
        ("~/.bot-bottle/bottles/NAME.toml", "the manifest of a bottle"),
        (
            "~/.bot-bottle/cellar/SLUG",
            "a bottle: workspace, the agent's files, records of its runs",
        ),
        ("~/.bot-bottle/bot-bottle.db", "which bottle works on which issue"),
        ("~/.bot-bottle/attest", "the signing key and the chain of all runs"),
        ("~/.bot-bottle/forge-token", "the token of the forge (0600)"),
    ],
    environment: &[
        ("FORGE_TOKEN", "the older name of BOTTLEWORKS_FORGE_TOKEN"),
        (
            "FORGE_GITEA_API, FORGE_OWNER, FORGE_REPO, FORGE_ISSUE_NUMBER",
            "the issue of orchestrate start",
        ),
    ],
};

const EXAMPLES: &[(&str, &str)] = &[
    (
        "",
        "bot-bottle start worker\nbot-bottle start worker --headless --prompt @task.md\nbot-bottle list",
    ),
    ("freeze", "bot-bottle freeze login"),
    ("stop", "bot-bottle stop login"),
    ("destroy", "bot-bottle destroy login\nbot-bottle destroy login --dry-run"),
    (
        "prune",
        "bot-bottle prune\nbot-bottle prune --dry-run\nbot-bottle prune --older-than 2w --keep 5 --yes",
    ),
    ("list", "bot-bottle list\nbot-bottle list --json"),
    ("show", "bot-bottle show login\nbot-bottle show login --json"),
    ("logs", "bot-bottle logs login\nbot-bottle logs -f login"),
    ("diff", "bot-bottle diff login"),
    ("apply", "bot-bottle apply login"),
    ("checkout", "bot-bottle checkout login\nbot-bottle checkout login --branch login-form"),
    ("exec", "bot-bottle exec login git log --oneline"),
    ("doctor", "bot-bottle doctor\nbot-bottle doctor --config serve.toml"),
    ("agent list", "bot-bottle agent list"),
    ("agent show", "bot-bottle agent show worker"),
    ("agent check", "bot-bottle agent check worker"),
    ("agent new", "bot-bottle agent new worker"),
    ("bottle list", "bot-bottle bottle list"),
    ("bottle show", "bot-bottle bottle show rust"),
    ("bottle check", "bot-bottle bottle check rust"),
    ("bottle new", "bot-bottle bottle new rust"),
    ("orchestrate start", "bot-bottle orchestrate start --agent worker --prompt @task.md"),
    (
        "orchestrate resume",
        "bot-bottle orchestrate resume --slug login --prompt 'Answer the review'",
    ),
    ("orchestrate status", "bot-bottle orchestrate status"),
    ("serve", "bot-bottle serve --config serve.toml"),
    ("worker", "bot-bottle worker --config serve.toml"),
    ("fleet status", "bot-bottle fleet status\nbot-bottle fleet status --json"),
    ("fleet role", "bot-bottle fleet role worker_1"),
    (
        "dispatch",
        "bot-bottle dispatch acme/widget --agent worker --prompt 'Update the lock file'\nbot-bottle dispatch acme/widget --agent worker --prompt @task.md --key release-12",
    ),
    ("init", "bot-bottle init\nbot-bottle init --yes --provider claude"),
    ("config show", "bot-bottle config show"),
    ("config list", "bot-bottle config list"),
    ("config get", "bot-bottle config get agent"),
    ("config set", "bot-bottle config set agent claude"),
    ("config unset", "bot-bottle config unset agent"),
    ("config path", "bot-bottle config path"),
    ("config check", "bot-bottle config check serve.toml"),
    ("hook install", "bot-bottle hook install them/project --url https://bottles.example.org"),
    ("hook list", "bot-bottle hook list"),
    ("hook remove", "bot-bottle hook remove them/project"),
    ("key create", "bot-bottle key create"),
    ("key show", "bot-bottle key show\nbot-bottle key show --ssh"),
    ("key rotate", "bot-bottle key rotate"),
    ("provenance show", "bot-bottle provenance show login"),
    (
        "provenance export",
        "bot-bottle provenance export login --as vsa\nbot-bottle provenance export login --as agent-commit",
    ),
    (
        "provenance verify",
        "bot-bottle provenance verify login\nbot-bottle provenance verify provenance.json --key host.pem",
    ),
    ("demo", "bot-bottle demo"),
    ("completions", "bot-bottle completions bash\nbot-bottle completions fish"),
    ("man", "bot-bottle man"),
];
