//! The system call filter of a box, rendered for bubblewrap (compiled programs) and for container engines (JSON)
//! from the one list in `list`.

mod list;

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, compile_from_json,
};
use serde_json::{Value, json};

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// A filter that could not be built: a fault of this program, not of its input.
#[derive(Debug, thiserror::Error)]
#[error("could not build the system call filter: {0}")]
pub struct SeccompError(String);

/// Compiled programs for `bwrap --add-seccomp-fd`, in order. The kernel runs all of them and takes the strictest
/// result.
pub fn bwrap_programs() -> Result<Vec<Vec<u8>>, SeccompError> {
    Ok(vec![program_bytes(&allow_list()?), program_bytes(&argument_rules()?)])
}

/// The profile for the `seccomp=` security option of Docker and podman.
pub fn engine_profile() -> Value {
    let mut rules =
        vec![allow(&names().filter(|n| !INSPECTED.contains(n)).collect::<Vec<_>>(), json!([]))];
    for family in list::SOCKET_FAMILIES {
        rules.push(allow(&["socket"], json!([{"index": 0, "value": family, "op": "SCMP_CMP_EQ"}])));
    }
    rules.push(allow(
        &["clone"],
        json!([{"index": 0, "value": list::NAMESPACE_FLAGS, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]),
    ));
    rules.push(json!({"names": list::ABSENT, "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS}));
    json!({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": ENOSYS, "syscalls": rules})
}

/// Calls that are allowed only with certain arguments.
const INSPECTED: &[&str] = &["socket", "clone"];

fn names() -> impl Iterator<Item = &'static str> {
    list::ALLOWED.iter().chain(list::ALLOWED_HERE).copied()
}

fn allow(names: &[&str], args: Value) -> Value {
    json!({"names": names, "action": "SCMP_ACT_ALLOW", "args": args})
}

/// First program: calls on the list pass, everything else does not exist.
fn allow_list() -> Result<BpfProgram, SeccompError> {
    let filter: Vec<Value> = names().map(|name| json!({"syscall": name})).collect();
    let text = json!({"main": {
        "mismatch_action": {"errno": ENOSYS}, "match_action": "allow", "filter": filter,
    }})
    .to_string();
    let mut compiled = compile_from_json(text.as_bytes(), arch()?).map_err(fault)?;
    compiled.remove("main").ok_or_else(|| SeccompError("no program came out".to_owned()))
}

/// Second program: of the allowed calls, these arguments are refused.
fn argument_rules() -> Result<BpfProgram, SeccompError> {
    let foreign_family = list::SOCKET_FAMILIES
        .iter()
        .map(|family| condition(SeccompCmpOp::Ne, *family))
        .collect::<Result<Vec<_>, _>>()?;
    let own_files = SeccompCmpOp::MaskedEq(list::THREAD_FLAG | list::SHARED_FILES_FLAG);
    let mut clones = vec![rule(vec![condition(own_files, list::THREAD_FLAG)?])?];
    let unshare = SeccompCmpOp::MaskedEq(list::UNSHARE_FILES_FLAG);
    let close_range = rule(vec![condition_on(2, unshare, list::UNSHARE_FILES_FLAG)?])?;
    let namespaces = (0..64)
        .map(|bit| 1_u64 << bit)
        .filter(|flag| list::NAMESPACE_FLAGS & flag != 0)
        .map(|flag| rule(vec![condition(SeccompCmpOp::MaskedEq(flag), flag)?]))
        .collect::<Result<Vec<_>, _>>()?;
    clones.extend(namespaces);
    let rules = BTreeMap::from([
        (libc_number("socket")?, vec![rule(foreign_family)?]),
        (libc_number("clone")?, clones),
        (CLOSE_RANGE, vec![close_range]),
    ]);
    let refuse = SeccompAction::Errno(EPERM);
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch()?)
        .and_then(BpfProgram::try_from)
        .map_err(fault)
}

fn condition(op: SeccompCmpOp, value: u64) -> Result<SeccompCondition, SeccompError> {
    condition_on(0, op, value)
}

fn condition_on(
    argument: u8,
    op: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, SeccompError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value).map_err(fault)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, SeccompError> {
    SeccompRule::new(conditions).map_err(fault)
}

fn arch() -> Result<TargetArch, SeccompError> {
    TargetArch::try_from(std::env::consts::ARCH).map_err(fault)
}

/// The same number on every architecture.
const CLOSE_RANGE: i64 = 436;

/// The numbers of the calls whose number differs.
fn libc_number(name: &str) -> Result<i64, SeccompError> {
    match (std::env::consts::ARCH, name) {
        ("x86_64", "socket") => Ok(41),
        ("x86_64", "clone") => Ok(56),
        ("aarch64" | "riscv64", "socket") => Ok(198),
        ("aarch64" | "riscv64", "clone") => Ok(220),
        (arch, name) => Err(SeccompError(format!("no number for {name} on {arch}"))),
    }
}

fn fault(error: impl std::fmt::Display) -> SeccompError {
    SeccompError(error.to_string())
}

/// The kernel's `struct sock_filter`, in native byte order.
fn program_bytes(program: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for op in program {
        bytes.extend_from_slice(&op.code.to_ne_bytes());
        bytes.extend_from_slice(&[op.jt, op.jf]);
        bytes.extend_from_slice(&op.k.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel refuses programs of more than 4,096 instructions of eight bytes.
    #[test]
    fn both_programs_build_and_fit_the_kernel() {
        let programs = bwrap_programs().expect("the list compiles");
        assert_eq!(programs.len(), 2);
        for program in programs {
            assert!(program.len() % 8 == 0 && program.len() / 8 <= 4096, "{} bytes", program.len());
        }
    }

    #[test]
    fn nothing_that_opens_a_way_out_is_on_the_list() {
        for name in list::ABSENT {
            assert!(!names().any(|allowed| allowed == *name), "{name} must not be allowed");
        }
    }

    #[test]
    fn the_engine_profile_allows_what_the_programs_allow() {
        let profile = engine_profile();
        let mut allowed: Vec<String> = profile["syscalls"]
            .as_array()
            .expect("rules")
            .iter()
            .filter(|rule| rule["action"] == "SCMP_ACT_ALLOW")
            .flat_map(|rule| rule["names"].as_array().expect("names").clone())
            .map(|name| name.as_str().expect("a name").to_owned())
            .collect();
        allowed.sort();
        allowed.dedup();
        let mut listed: Vec<String> = names().map(str::to_owned).collect();
        listed.sort();
        assert_eq!(allowed, listed);
    }
}
