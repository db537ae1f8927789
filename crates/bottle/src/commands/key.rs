//! `bot-bottle key`: the key that signs statements about runs.

use attest::host_chain::HostChain;
use attest::key::PublicKey;
use attest::keyring::Keyring;
use clap::Subcommand;
use model::exit::BottleExit;
use serde_json::json;
use shell::Ui;

use crate::exit::{Failure, OrExit, OrGeneral, Outcome, SUCCESS};
use crate::flow::attestation::sign_statements;
use crate::flow::home::Home;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key; done by itself when the first run ends
    Create,
    /// Show the public key and its id
    Show {
        /// As a line of OpenSSH, for forges and `gpg.ssh.allowedSignersFile`: published commits are signed with it where the
        /// manifest of their agent has `sign_commits = true`
        #[arg(long)]
        ssh: bool,
    },
    /// Replace the key by a new one, with a statement that both sign
    Rotate,
}

pub(crate) fn cmd_key(ui: &Ui, command: &KeyCommand) -> Outcome {
    let home = Home::from_env()?;
    let ring = home.keyring();
    match command {
        KeyCommand::Create => {
            let key = ring.create().or_exit(BottleExit::NotFound)?.public();
            sign_statements(ui, &home);
            show(ui, &ring, &key)
        }
        KeyCommand::Show { ssh } => {
            sign_statements(ui, &home);
            let key = load(&ring)?;
            if *ssh && !ui.is_json() {
                ui.page(&format!("{}\n", key.ssh_line()));
                return Ok(SUCCESS);
            }
            show(ui, &ring, &key)
        }
        KeyCommand::Rotate => {
            // The document is the whole result for scripts.
            let ui = &ui.without_events();
            let old = load(&ring)?;
            // Signing needs the chain too, so no run that ends after this moment is signed by the old key.
            let chain = HostChain::open(&home.host_chain, host::clock::now()).or_general()?;
            let new = ring.rotate(host::clock::now()).or_general()?.public();
            drop(chain);
            ui.note(&format!("{} is replaced; what it signed still verifies", old.id()));
            sign_statements(ui, &home);
            show(ui, &ring, &new)
        }
    }
}

fn load(ring: &Keyring) -> Result<PublicKey, Failure> {
    Ok(ring.load().or_exit(BottleExit::NotFound)?.public())
}

fn show(ui: &Ui, ring: &Keyring, key: &PublicKey) -> Outcome {
    let pem = key.pem().or_exit(BottleExit::Internal)?;
    match ui.is_json() {
        true => ui.document(&json!({
            "keyid": key.id(), "pem": pem, "ssh": key.ssh_line(), "file": ring.key_file(),
        })),
        false => {
            ui.result("keyid", key.id().as_str());
            ui.result("file", &ring.key_file().display().to_string());
            ui.page(&pem);
        }
    }
    Ok(SUCCESS)
}
