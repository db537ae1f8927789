//! Manifests as they are read, every refusal, and bottles that are put together.

use super::super::agent_manifest::{AGENT_TEMPLATE, parse_agent};
use super::super::bottle_manifest::{BOTTLE_TEMPLATE, BottleManifest, parse_bottle, pour};

/// Why each text is refused.
fn refused<T>(texts: &[&str], parse: impl Fn(&str) -> Result<T, String>) -> String {
    let line = |text: &&str| match parse(text) {
        Ok(_) => format!("{}\n  accepted", text.escape_debug()),
        Err(error) => format!("{}\n  {}", text.escape_debug(), error.replace('\n', "\n  ")),
    };
    texts.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn agent(text: &str) -> Result<(), String> {
    parse_agent(text).map(drop).map_err(|fault| fault.to_string())
}

fn bottle(text: &str) -> Result<(), String> {
    parse_bottle(text).map(drop).map_err(|fault| fault.to_string())
}

#[test]
fn the_template_of_agents() {
    let manifest = parse_agent(AGENT_TEMPLATE).expect("it reads");
    insta::assert_snapshot!(format!("{manifest:#?}"), @r#"
    AgentManifest {
        provider: "claude",
        agent: None,
        model: None,
        variant: None,
        persona: None,
        prompt: "You are a careful engineer. Make small commits with clear messages, and run the tests before you commit.\n",
        bottle: None,
        command: None,
        script: None,
        protect: [
            ".gitea/workflows",
            ".forgejo/workflows",
            ".github/workflows",
            ".gitlab-ci.yml",
        ],
        allow_paths: [],
        check: None,
        check_timeout_secs: None,
        check_rounds: None,
        plan: false,
        sign_commits: false,
        pull_labels: [],
        server: ServerTable {
            url: None,
            wire: None,
            key_env: None,
            key_file: None,
            key_command: None,
        },
        egress: EgressTable {
            profile: Some(
                "packages",
            ),
            allow: [],
            permit_private: [],
        },
        limits: LimitsTable {
            timeout_secs: 1800,
            silence_secs: 300,
            memory_mb: None,
            disk_mb: None,
            processes: None,
            cpu_percent: None,
        },
        spend: SpendTable {
            max_usd: None,
            max_tokens: None,
            input_price: None,
            output_price: None,
            prices: {},
        },
    }
    "#);
}

#[test]
fn an_agent_with_everything() {
    let text = "provider = \"command\"\nmodel = \"m\"\nvariant = \"high\"\npersona = \"p\"\nprompt = \"Be careful.\"\nbottle = \"rust\"\ncommand = [\"run\", \"{prompt}\"]\nprotect = [\"a/**\"]\n[server]\nurl = \"https://m.example\"\nwire = \"chat\"\nkey_env = \"KEY\"\n[egress]\nprofile = \"none\"\nallow = [\"x.example\"]\npermit_private = [\"10.0.0.1:80\"]\n[limits]\ntimeout_secs = 60\nsilence_secs = 5\nmemory_mb = 512\ndisk_mb = 1024\nprocesses = 64\ncpu_percent = 150\n[spend]\nmax_usd = 2.5\nmax_tokens = 1000\ninput_price = 3.0\noutput_price = 15.0\n";
    let manifest = parse_agent(text).expect("it reads");
    insta::assert_snapshot!(serde_json::to_string_pretty(&manifest).expect("JSON"), @r#"
    {
      "provider": "command",
      "model": "m",
      "variant": "high",
      "persona": "p",
      "prompt": "Be careful.",
      "bottle": "rust",
      "command": [
        "run",
        "{prompt}"
      ],
      "script": null,
      "protect": [
        "a/**"
      ],
      "server": {
        "url": "https://m.example",
        "wire": "chat",
        "key_env": "KEY",
        "key_file": null,
        "key_command": null
      },
      "egress": {
        "profile": "none",
        "allow": [
          "x.example"
        ],
        "permit_private": [
          "10.0.0.1:80"
        ]
      },
      "limits": {
        "timeout_secs": 60,
        "silence_secs": 5,
        "memory_mb": 512,
        "disk_mb": 1024,
        "processes": 64,
        "cpu_percent": 150
      },
      "spend": {
        "max_usd": 2.5,
        "max_tokens": 1000,
        "input_price": 3.0,
        "output_price": 15.0
      }
    }
    "#);
}

#[test]
fn what_agents_may_reach() {
    let texts = [
        "provider = \"pi\"",
        "provider = \"claude\"\n[egress]\nprofile = \"none\"",
        "provider = \"claude\"\n[egress]\nprofile = \"model-only\"",
        "provider = \"claude\"\n[egress]\nprofile = \"open\"",
        "provider = \"scripted\"\nscript = \"a\"",
        "provider = \"scripted\"\nscript = \"a\"\n[egress]\nprofile = \"packages\"",
        "provider = \"command\"\ncommand = [\"a\"]",
    ];
    let line = |text: &&str| {
        let policy = parse_agent(text).expect("it reads").policy().expect("a policy");
        format!("{}: {:?}", text.escape_debug(), policy.map(|policy| policy.profile))
    };
    insta::assert_snapshot!(texts.iter().map(line).collect::<Vec<_>>().join("\n"), @r#"
    provider = \"pi\": Some(Packages)
    provider = \"claude\"\n[egress]\nprofile = \"none\": Some(None)
    provider = \"claude\"\n[egress]\nprofile = \"model-only\": Some(ModelOnly)
    provider = \"claude\"\n[egress]\nprofile = \"open\": Some(Open)
    provider = \"scripted\"\nscript = \"a\": None
    provider = \"scripted\"\nscript = \"a\"\n[egress]\nprofile = \"packages\": Some(Packages)
    provider = \"command\"\ncommand = [\"a\"]: None
    "#);
}

#[test]
fn agents_that_are_refused() {
    let texts = [
        "",
        "provider = \"clod\"",
        "provider = \"claude\"\nmodle = \"x\"",
        "provider = \"claude",
        "provider = \"scripted\"",
        "provider = \"command\"\ncommand = []",
        "provider = \"pi\"\nbottle = \"a b\"",
        "provider = \"pi\"\nprotect = [\"[\"]",
        "provider = \"pi\"\n[server]\nkey_env = \"A\"\nkey_file = \"b\"",
        "provider = \"pi\"\n[egress]\nprofile = \"all\"",
        "provider = \"pi\"\n[egress]\nallow = [\"a b\"]",
        "provider = \"pi\"\n[limits]\ntimeout_secs = 0",
        "provider = \"pi\"\n[limits]\ntimeout_secs = 86400",
        "provider = \"pi\"\n[limits]\ntimeout_secs = 86401",
        "provider = \"pi\"\n[spend]\nmax_usd = 3.0\ninput_price = 1.0",
        "provider = \"pi\"\n[spend]\noutput_price = -0.1",
        "provider = \"pi\"\n[spend]\noutput_price = inf",
    ];
    insta::assert_snapshot!(refused(&texts, agent), @r#"
      line 1: missing field `provider`
    provider = \"clod\"
      provider: there is no agent "clod"; choose one of: opencode, codex, claude, pi, command, scripted
    provider = \"claude\"\nmodle = \"x\"
      line 2: unknown field `modle`, expected one of `provider`, `agent`, `model`, `variant`, `persona`, `prompt`, `bottle`, `command`, `script`, `protect`, `allow_paths`, `check`, `check_timeout_secs`, `check_rounds`, `plan`, `sign_commits`, `pull_labels`, `server`, `egress`, `limits`, `spend`
    provider = \"claude
      line 1: invalid basic string, expected `"`
    provider = \"scripted\"
      script: the provider 'scripted' needs a script
    provider = \"command\"\ncommand = []
      command: the provider 'command' needs a command
    provider = \"pi\"\nbottle = \"a b\"
      bottle: "a b" is not a valid bottle name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit
    provider = \"pi\"\nprotect = [\"[\"]
      protect: '[' is not a path pattern: unclosed character class; missing ']'
    provider = \"pi\"\n[server]\nkey_env = \"A\"\nkey_file = \"b\"
      server: give one of key_env, key_file and key_command
    provider = \"pi\"\n[egress]\nprofile = \"all\"
      egress.profile: no egress profile is called "all"; choose none, model-only, packages or open
    provider = \"pi\"\n[egress]\nallow = [\"a b\"]
      egress.allow: "a b" is not a host rule: it is not a valid name
    provider = \"pi\"\n[limits]\ntimeout_secs = 0
      limits.timeout_secs: give 1 to 86400 seconds
    provider = \"pi\"\n[limits]\ntimeout_secs = 86400
      accepted
    provider = \"pi\"\n[limits]\ntimeout_secs = 86401
      limits.timeout_secs: give 1 to 86400 seconds
    provider = \"pi\"\n[spend]\nmax_usd = 3.0\ninput_price = 1.0
      spend.max_usd: dollars are counted with input_price and output_price
    provider = \"pi\"\n[spend]\noutput_price = -0.1
      spend: give amounts from 0
    provider = \"pi\"\n[spend]\noutput_price = inf
      spend: give amounts from 0
    "#);
}

#[test]
fn bottles_that_are_refused() {
    let mount = |inside: &str| format!("[[mount]]\nhost = \"/srv\"\ninside = \"{inside}\"");
    let mounts =
        ["/etc/x", "/opt", "/opt/", "/opt//x", "/opt/../x", "/opt/forklift", "opt/x", "/opt/data"]
            .map(mount);
    let mut texts = vec![
        "imgae = \"x\"",
        "image = \"x\"\nroot = \"/r\"",
        "root = \"r\"",
        "packages = [\"a b\"]",
        "packages = [\"\"]",
        "packages = [\"-v\"]",
        "packages = [\"g++\", \"python3.12\"]",
        "[[mount]]\nhost = \"srv\"\ninside = \"/opt/x\"",
    ];
    texts.extend(mounts.iter().map(String::as_str));
    insta::assert_snapshot!(refused(&texts, bottle), @r#"
    imgae = \"x\"
      line 1: unknown field `imgae`, expected one of `image`, `root`, `packages`, `setup`, `setup_timeout_secs`, `mount`
    image = \"x\"\nroot = \"/r\"
      image: give an image or a root, not both
    root = \"r\"
      root: give an absolute path
    packages = [\"a b\"]
      packages: 'a b' is not the name of a program
    packages = [\"\"]
      packages: '' is not the name of a program
    packages = [\"-v\"]
      packages: '-v' is not the name of a program
    packages = [\"g++\", \"python3.12\"]
      accepted
    [[mount]]\nhost = \"srv\"\ninside = \"/opt/x\"
      mount.host: srv is not an absolute path
    [[mount]]\nhost = \"/srv\"\ninside = \"/etc/x\"
      mount.inside: '/etc/x' cannot be; choose a path below /opt
    [[mount]]\nhost = \"/srv\"\ninside = \"/opt\"
      mount.inside: '/opt' cannot be; choose a path below /opt
    [[mount]]\nhost = \"/srv\"\ninside = \"/opt/\"
      mount.inside: '/opt/' cannot be; choose a path below /opt
    [[mount]]\nhost = \"/srv\"\ninside = \"/opt//x\"
      mount.inside: '/opt//x' cannot be; choose a path below /opt
    [[mount]]\nhost = \"/srv\"\ninside = \"/opt/../x\"
      mount.inside: '/opt/../x' cannot be; choose a path below /opt
    [[mount]]\nhost = \"/srv\"\ninside = \"/opt/forklift\"
      mount.inside: '/opt/forklift' cannot be; choose a path below /opt
    [[mount]]\nhost = \"/srv\"\ninside = \"opt/x\"
      mount.inside: 'opt/x' cannot be; choose a path below /opt
    [[mount]]\nhost = \"/srv\"\ninside = \"/opt/data\"
      accepted
    "#);
}

#[test]
fn the_template_of_bottles() {
    let manifest = parse_bottle(BOTTLE_TEMPLATE).expect("it reads");
    insta::assert_snapshot!(format!("{manifest:#?}"), @r#"
    BottleManifest {
        image: None,
        root: None,
        packages: [
            "git",
        ],
        setup: None,
        setup_timeout_secs: None,
        mounts: [],
    }
    "#);
}

/// Bottles that are put together.
fn poured(texts: &[&str]) -> Result<BottleManifest, String> {
    let bottles: Vec<BottleManifest> =
        texts.iter().map(|text| parse_bottle(text).expect("it reads")).collect();
    pour(&bottles).map_err(|fault| fault.to_string())
}

#[test]
fn bottles_are_put_together_in_order() {
    let whole = poured(&[
        "image = \"x\"\npackages = [\"git\"]\nsetup = \"npm ci\"\nsetup_timeout_secs = 60",
        "packages = [\"rg\"]\nsetup = \"cargo fetch\"\nsetup_timeout_secs = 900",
        "[[mount]]\nhost = \"/srv/data\"\ninside = \"/opt/data\"",
    ]);
    insta::assert_snapshot!(format!("{:#?}", whole.expect("poured")), @r#"
    BottleManifest {
        image: Some(
            "x",
        ),
        root: None,
        packages: [
            "git",
            "rg",
        ],
        setup: Some(
            "{ npm ci\n} && { cargo fetch\n}",
        ),
        setup_timeout_secs: Some(
            900,
        ),
        mounts: [
            MountTable {
                host: "/srv/data",
                inside: "/opt/data",
            },
        ],
    }
    "#);
}

#[test]
fn the_set_up_of_bottles() {
    let line = |texts: &[&str]| {
        let whole = poured(texts).expect("poured");
        format!(
            "{} s: {}",
            whole.setup_secs(),
            whole.setup_line().unwrap_or_else(|| "nothing".to_owned())
        )
    };
    let all = [
        line(&[]),
        line(&["setup = \"npm ci\""]),
        line(&["packages = [\"git\", \"rg\"]"]),
        line(&[
            "packages = [\"git\"]\nsetup = \"a # note\"",
            "setup = \"b\"\nsetup_timeout_secs = 5",
        ]),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    600 s: nothing
    600 s: npm ci
    600 s: command -v git >/dev/null || { echo 'missing in the box: git' >&2; exit 66; }
    command -v rg >/dev/null || { echo 'missing in the box: rg' >&2; exit 66; }

    5 s: command -v git >/dev/null || { echo 'missing in the box: git' >&2; exit 66; }
    { a # note
    } && { b
    }
    ");
}

#[test]
fn bottles_that_contradict_each_other() {
    let clash = |texts: &[&str]| poured(texts).expect_err("refused");
    let all = [
        clash(&["image = \"x\"", "image = \"x\""]),
        clash(&["image = \"x\"", "root = \"/r\""]),
        clash(&["root = \"/r\"", "packages = [\"git\"]", "root = \"/r\""]),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    image: two of the bottles name an image or a root
    image: two of the bottles name an image or a root
    image: two of the bottles name an image or a root
    ");
}

/// Names of all keys of a document, those of tables with a dot.
fn keys_of(value: &serde_json::Value) -> Vec<String> {
    let Some(table) = value.as_object() else { return Vec::new() };
    let names = |(name, value): (&String, &serde_json::Value)| match value.is_object() {
        true => keys_of(value).iter().map(|inner| format!("{name}.{inner}")).collect(),
        false => vec![name.clone()],
    };
    table.iter().flat_map(names).collect()
}

#[test]
fn every_key_is_documented_and_no_other() {
    let page = include_str!("../../../../../docs/configuration.md");
    let documented = |heading: &str| -> Vec<String> {
        let table = page.split(heading).nth(1).expect("the table").split("\n\n").next();
        let rows = table.unwrap_or_default().lines().skip(2);
        let mut keys: Vec<String> =
            rows.filter_map(|row| Some(row.split('`').nth(1)?.to_owned())).collect();
        keys.sort();
        keys
    };
    let sorted = |mut keys: Vec<String>| {
        keys.sort();
        keys
    };
    let agent = "provider = \"pi\"\nallow_paths = [\"x\"]\ncheck = \"true\"\ncheck_timeout_secs = 1\ncheck_rounds = 1\n\
                 plan = true\nsign_commits = true\npull_labels = [\"x\"]\n[spend.prices.MODEL]\ninput = 1.0\noutput = 1.0";
    let mut agent = parse_agent(agent).expect("good");
    agent.agent = Some("local".to_owned());
    let agent = serde_json::to_value(agent).expect("JSON");
    assert_eq!(documented("| key of an agent | meaning |"), sorted(keys_of(&agent)));
    let bottle = serde_json::to_value(parse_bottle("").expect("good")).expect("JSON");
    assert_eq!(documented("| key of a bottle | meaning |"), sorted(keys_of(&bottle)));
}
