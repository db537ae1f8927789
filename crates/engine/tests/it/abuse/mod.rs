//! What a bad agent tries, in boxes as the engine builds them. Every attempt of the abuse kit is a test by its own
//! name, on every backend.
//!
//! Some attempts only prepare something for the host to trip over; what the host has to do then is in [`aftermath`]
//! for files and logs, and in [`repository`] for what git makes of a workspace.

mod aftermath;
mod repository;
mod scene;

use model::verdict::Ended;
use testkit::abuse::{ATTEMPTS, Attempt, Expect, Outcome};

use crate::support::{Ran, Rig, on_every_backend};
use scene::Scene;

/// Makes a test of each attempt, by its name with underscores.
macro_rules! attempts {
    ($($name:ident),+ $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),+];

        on_every_backend!($($name),+);

        $(async fn $name(rig: &Rig) {
            check(rig, stringify!($name)).await;
        })+
    };
}

attempts! {
    host_files,
    shadow,
    host_processes,
    host_kill,
    init_environ,
    secrets_in_sight,
    ptrace_init,
    read_init_memory,
    init_files,
    stop_init,
    kill_init,
    engine_sockets,
    metadata,
    private_ranges,
    public_addresses,
    host_addresses,
    interfaces,
    host_loopback,
    abstract_socket,
    vsock,
    raw_sockets,
    odd_families,
    dns,
    fork_bomb,
    memory_hog,
    fill_tmp,
    fill_shm,
    large_file,
    space_fill,
    inode_fill,
    ignore_sigterm,
    daemons,
    clock,
    unshare_user,
    unshare_mount,
    unshare_net,
    clone_user,
    clone3_user,
    setns,
    nested_mount,
    fsopen,
    open_tree,
    move_mount,
    mount_setattr,
    pivot_root,
    sysctl,
    bpf,
    perf_event_open,
    kexec_load,
    keyctl,
    add_key,
    request_key,
    userfaultfd,
    io_uring_setup,
    init_module,
    finit_module,
    open_by_handle,
    pidfd_getfd,
    kcmp,
    iopl,
    acct,
    swapon,
    reboot,
    kernel_log,
    own_suid,
    root_suid,
    terminal,
    stuck_link,
    stuck_fifo,
    stuck_folder,
    stuck_sparse,
    traversal_names,
    log_flood,
    escape_sequences,
    invalid_output,
    hostile_git,
    forge_moved_ref,
    forge_replace,
    forge_graft,
    forged_identity,
    odd_branches,
    poisoned_state,
    read_only_root,
    guest_folder,
    remount,
    device_nodes,
    chroot,
    kernel_memory,
    kernel_addresses,
    wider_affinity,
    privileges,
    hostname,
}

#[test]
fn every_attempt_of_the_kit_is_a_test() {
    let tested: Vec<String> = NAMES.iter().map(|name| name.replace('_', "-")).collect();
    let table: Vec<&str> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
    assert_eq!(tested, table);
}

async fn check(rig: &Rig, name: &str) {
    let attempt = Attempt::named(&name.replace('_', "-"));
    if attempt.arch.is_some_and(|arch| arch != std::env::consts::ARCH) {
        return;
    }
    let mut scene = Scene::new(rig, &attempt).await;
    let ran = scene.run(&attempt).await;
    assert_eq!(attempt.judge(&ran.stdout), Ok(()), "{ran:#?}");
    check_end(&attempt, &ran);
    aftermath::check(&scene, &attempt, &ran).await;
    repository::check(&scene, &attempt).await;
    scene.assert_unharmed();
}

/// How the box itself has to end.
fn check_end(attempt: &Attempt, ran: &Ran) {
    let ended = &ran.record.ended;
    let good = match attempt.expect {
        Expect::Blocked | Expect::Daemons | Expect::HostSide => *ended == Ended::Exited { code: 0 },
        Expect::EndsBox(class) => {
            ended.class() == class
                || matches!(Outcome::parse(&ran.stdout), Some(Outcome::Blocked(_)))
        }
        Expect::EndsAtDeadline => *ended == Ended::OutOfTime,
    };
    assert!(good, "{}: {ran:#?}", attempt.name);
}
