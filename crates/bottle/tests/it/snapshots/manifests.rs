//! `agent` and `bottle`: manifests that are written, listed, shown and checked.

use super::{transcript, tree};
use crate::support::Person;

#[test]
fn a_home_without_manifests() {
    let Some(person) = Person::new() else { return };
    std::fs::remove_dir_all(person.home()).expect("removed");
    insta::assert_snapshot!(transcript(&person, &[&["agent", "list"], &["bottle", "list"]]), @"
    $ bot-bottle agent list
    status: 0
    --- stdout
    No manifests of agents yet. Write one with: bot-bottle agent new NAME
    --- stderr

    $ bot-bottle bottle list
    status: 0
    --- stdout
    No manifests of bottles yet. Write one with: bot-bottle bottle new NAME
    --- stderr
    ");
}

#[test]
fn a_new_agent() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 2] = [&["agent", "new", "fresh"], &["agent", "show", "fresh"]];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle agent new fresh
    status: 0
    --- stdout
    made        [ROOT]/home/.bot-bottle/agents/fresh.toml
    --- stderr

    $ bot-bottle agent show fresh
    status: 0
    --- stdout
    # An agent: provider, model and limits.
    provider = "claude"
    # model = "anthropic/claude-sonnet-4-5"
    prompt = """
    You are a careful engineer. Make small commits with clear messages, and run the tests before you commit.
    """
    # bottle = "default"
    # plan = true               # the agent writes a plan first, and works once a member approves it
    # check = "make test"       # run on the result before it is published; without it, the one in .bot-bottle.toml
    # check_rounds = 2          # runs that a failing check may cause before the result becomes a draft

    [egress]
    profile = "packages"        # none, model-only, packages or open

    [limits]
    timeout_secs = 1800
    silence_secs = 300

    [spend]
    # max_tokens = 2000000
    # input_price = 3.0         # dollars per million tokens
    # output_price = 15.0
    # prices = { "claude-haiku" = { input = 1.0, output = 5.0 } }   # of models that members choose with /model
    --- stderr
    "#);
}

#[test]
fn a_new_agent_as_a_document() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["agent", "new", "fresh"]).status, Some(0));
    insta::assert_snapshot!(transcript(&person, &[&["agent", "show", "fresh", "--json"]]), @r#"
    $ bot-bottle agent show fresh --json
    status: 0
    --- stdout
    {
      "provider": "claude",
      "model": null,
      "variant": null,
      "persona": null,
      "prompt": "You are a careful engineer. Make small commits with clear messages, and run the tests before you commit.\n",
      "bottle": null,
      "command": null,
      "script": null,
      "protect": [
        ".gitea/workflows",
        ".forgejo/workflows",
        ".github/workflows",
        ".gitlab-ci.yml"
      ],
      "server": {
        "url": null,
        "wire": null,
        "key_env": null,
        "key_file": null,
        "key_command": null
      },
      "egress": {
        "profile": "packages",
        "allow": [],
        "permit_private": []
      },
      "limits": {
        "timeout_secs": 1800,
        "silence_secs": 300,
        "memory_mb": null,
        "disk_mb": null,
        "processes": null,
        "cpu_percent": null
      },
      "spend": {
        "max_usd": null,
        "max_tokens": null,
        "input_price": null,
        "output_price": null
      }
    }
    --- stderr
    "#);
}

#[test]
fn a_new_bottle() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 2] = [&["bottle", "new", "fresh"], &["bottle", "show", "fresh"]];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle bottle new fresh
    status: 0
    --- stdout
    made        [ROOT]/home/.bot-bottle/bottles/fresh.toml
    --- stderr

    $ bot-bottle bottle show fresh
    status: 0
    --- stdout
    # A bottle: what the box is made of.
    # image = "forklift/kitchen-sink:latest"   # for a container engine
    # root = "/srv/roots/debian"               # for bubblewrap; this host's /usr if nothing is said
    packages = ["git"]                         # programs that must be there
    # setup = "npm ci"                         # run once, in the box, before the agent

    # [[mount]]                                # read-only; refused if it holds secrets or sockets
    # host = "/srv/datasets"
    # inside = "/opt/datasets"
    --- stderr
    "#);
}

#[test]
fn a_new_bottle_as_a_document() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["bottle", "new", "fresh"]).status, Some(0));
    insta::assert_snapshot!(transcript(&person, &[&["bottle", "show", "fresh", "--json"]]), @r#"
    $ bot-bottle bottle show fresh --json
    status: 0
    --- stdout
    {
      "image": null,
      "root": null,
      "packages": [
        "git"
      ],
      "setup": null,
      "setup_timeout_secs": null,
      "mount": []
    }
    --- stderr
    "#);
}

#[test]
fn a_name_that_is_taken() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 2] = [&["agent", "new", "worker"], &["bottle", "new", "worker"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"
    $ bot-bottle agent new worker
    status: 2
    --- stdout
    --- stderr
    error: [ROOT]/home/.bot-bottle/agents/worker.toml is there already; edit it, or choose another name

    $ bot-bottle bottle new worker
    status: 0
    --- stdout
    made        [ROOT]/home/.bot-bottle/bottles/worker.toml
    --- stderr
    ");
}

#[test]
fn names_that_cannot_be() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 4] = [
        &["agent", "new", "../x"],
        &["agent", "show", "a b"],
        &["bottle", "check", ""],
        &["bottle", "new", ".hidden"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle agent new ../x
    status: 2
    --- stdout
    --- stderr
    error: "../x" is not a valid agent name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit

    $ bot-bottle agent show a b
    status: 2
    --- stdout
    --- stderr
    error: "a b" is not a valid agent name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit

    $ bot-bottle bottle check 
    status: 2
    --- stdout
    --- stderr
    error: "" is not a valid bottle name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit

    $ bot-bottle bottle new .hidden
    status: 2
    --- stdout
    --- stderr
    error: ".hidden" is not a valid bottle name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit
    "#);
}

#[test]
fn an_agent_that_is_good_here() {
    let Some(person) = Person::new() else { return };
    person.script("");
    let lines: [&[&str]; 2] =
        [&["agent", "check", "worker"], &["agent", "check", "worker", "--json"]];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle agent check worker
    status: 0
    --- stdout
    good        worker
    --- stderr

    $ bot-bottle agent check worker --json
    status: 0
    --- stdout
    {"event":"good","name":"worker"}
    --- stderr
    "#);
}

#[test]
fn an_agent_whose_script_is_missing() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["agent", "check", "worker"]]), @"
    $ bot-bottle agent check worker
    status: 2
    --- stdout
    --- stderr
    error: could not read the script [ROOT]/home/.bot-bottle/agents/worker-script.txt: No such file or directory (os error 2)
    ");
}

#[test]
fn an_agent_whose_bottle_is_missing() {
    let Some(person) = Person::new() else { return };
    person.agent("worker", "bottle = \"nope\"\n");
    person.script("");
    insta::assert_snapshot!(transcript(&person, &[&["agent", "check", "worker"]]), @"
    $ bot-bottle agent check worker
    status: 2
    --- stdout
    --- stderr
    error: there is no bottle 'nope' ([ROOT]/home/.bot-bottle/bottles/nope.toml); make one with: bot-bottle bottle new nope
    ");
}

#[test]
fn manifests_are_listed_by_name() {
    let Some(person) = Person::new() else { return };
    for name in ["zoe", "ann"] {
        assert_eq!(person.run(&["agent", "new", name]).status, Some(0));
        assert_eq!(person.run(&["bottle", "new", name]).status, Some(0));
    }
    let lines: [&[&str]; 4] = [
        &["agent", "list"],
        &["agent", "list", "--json"],
        &["bottle", "list"],
        &["bottle", "list", "--json"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle agent list
    status: 0
    --- stdout
    ann
    worker
    zoe
    --- stderr

    $ bot-bottle agent list --json
    status: 0
    --- stdout
    [
      "ann",
      "worker",
      "zoe"
    ]
    --- stderr

    $ bot-bottle bottle list
    status: 0
    --- stdout
    ann
    zoe
    --- stderr

    $ bot-bottle bottle list --json
    status: 0
    --- stdout
    [
      "ann",
      "zoe"
    ]
    --- stderr
    "#);
}

#[test]
fn what_new_leaves_on_disk() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["agent", "new", "fresh"]).status, Some(0));
    assert_eq!(person.run(&["bottle", "new", "fresh"]).status, Some(0));
    insta::assert_snapshot!(tree(&person, &person.home()), @"
    agents
    agents/fresh.toml (private)
    agents/worker.toml
    bottles
    bottles/fresh.toml (private)
    ");
}

#[test]
fn a_mount_that_is_not_there() {
    let Some(person) = Person::new() else { return };
    let mount = "[[mount]]\nhost = \"/nowhere/data\"\ninside = \"/opt/data\"\n";
    person.manifest("bottles", "lend", mount);
    insta::assert_snapshot!(transcript(&person, &[&["bottle", "check", "lend"]]), @"
    $ bot-bottle bottle check lend
    status: 2
    --- stdout
    --- stderr
    error: /nowhere/data cannot be lent to a box: No such file or directory (os error 2)
    ");
}

#[test]
fn a_mount_of_the_home() {
    let Some(person) = Person::new() else { return };
    let home = person.hermetic.home();
    let mount = format!("[[mount]]\nhost = \"{}\"\ninside = \"/opt/home\"\n", home.display());
    person.manifest("bottles", "lend", &mount);
    insta::assert_snapshot!(transcript(&person, &[&["bottle", "check", "lend"]]), @"
    $ bot-bottle bottle check lend
    status: 2
    --- stdout
    --- stderr
    error: [ROOT]/home cannot be lent to a box: it holds your home
    ");
}

#[test]
fn a_mount_with_a_key_in_it() {
    let Some(person) = Person::new() else { return };
    let data = person.hermetic.root().join("data");
    std::fs::create_dir_all(data.join(".ssh")).expect("made");
    let mount = format!("[[mount]]\nhost = \"{}\"\ninside = \"/opt/data\"\n", data.display());
    person.manifest("bottles", "lend", &mount);
    insta::assert_snapshot!(transcript(&person, &[&["bottle", "check", "lend"]]), @"
    $ bot-bottle bottle check lend
    status: 2
    --- stdout
    --- stderr
    error: [ROOT]/data cannot be lent to a box: [ROOT]/data/.ssh is where people keep secrets
    ");
}
