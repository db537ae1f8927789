//! What a box sees of the machine: a root that it cannot change, three folders, one user, no network.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sandbox::backend::BackendKind;
use sandbox::spec::{MountAccess, ProgramMount};

use crate::support::{Rig, on_every_backend};

on_every_backend! {
    only_three_folders_are_mounted_beside_the_root,
    nothing_else_can_be_written,
    the_workspace_may_be_read_only,
    the_user_is_the_same_inside_and_outside,
    the_box_has_a_name_of_its_own,
    there_is_no_network_interface,
    the_box_sees_only_its_own_processes,
    scratch_folders_are_empty_and_programs_run_there,
    programs_are_lent_read_only,
    the_mount_table_shows_the_folders_of_the_run_and_nothing_else_of_a_home,
}

/// The kernel writes the path of a folder in its file system, so those of the run are seen: see docs/explanation/sealed.md.
async fn the_mount_table_shows_the_folders_of_the_run_and_nothing_else_of_a_home(rig: &Rig) {
    let ran = rig.argv(&["cat", "/proc/self/mountinfo"]).run_ok().await;
    let home = rig.workspace();
    let home = home.parent().and_then(Path::file_name).expect("a folder").to_string_lossy();
    let naming: Vec<&str> = ran.stdout.lines().filter(|line| line.contains(&*home)).collect();
    assert!(!naming.is_empty(), "{}", ran.stdout);
    for line in naming {
        let Mount { box_dir, .. } = Mount::parse(line);
        let is_ours = ["/workspace", "/harness-state", "/harness-state/run"].contains(&&*box_dir);
        assert!(is_ours || box_dir.starts_with("/etc/"), "{line}");
        let fields: Vec<&str> = line.split(' ').collect();
        let named = fields.iter().filter(|field| field.contains(&*home)).count();
        assert_eq!((named, fields[3].contains(&*home)), (1, true), "{line}");
    }
}

async fn only_three_folders_are_mounted_beside_the_root(rig: &Rig) {
    let ran = rig.argv(&["cat", "/proc/self/mountinfo"]).run_ok().await;
    let mounts: Vec<Mount> = ran.stdout.lines().map(Mount::parse).collect();
    let given: Vec<&Mount> = mounts.iter().filter(|mount| !mount.is_made_by_the_kernel()).collect();
    let (root, folders): (Vec<&Mount>, Vec<&Mount>) =
        given.into_iter().partition(|mount| mount.is_part_of_the_root());
    for part in &root {
        assert!(part.is_read_only, "{part:?}");
    }
    let mut folders: Vec<(&str, bool)> =
        folders.iter().map(|mount| (mount.box_dir.as_str(), mount.is_read_only)).collect();
    folders.sort_unstable();
    let wanted = [("/harness-state", false), ("/harness-state/run", true), ("/workspace", false)];
    assert_eq!(folders, wanted);
}

/// A line of `mountinfo`, as far as it matters here.
#[derive(Debug)]
struct Mount {
    box_dir: String,
    is_read_only: bool,
    file_system: String,
}

impl Mount {
    fn parse(line: &str) -> Self {
        let (mount, source) = line.split_once(" - ").expect("a separator");
        let fields: Vec<&str> = mount.split(' ').collect();
        Self {
            box_dir: fields[4].to_owned(),
            is_read_only: fields[5].split(',').any(|option| option == "ro"),
            file_system: source.split(' ').next().expect("a file system").to_owned(),
        }
    }

    /// Nothing of the host's disk is in these, nor below them.
    fn is_made_by_the_kernel(&self) -> bool {
        let below = |folder: &str| Path::new(&self.box_dir).starts_with(folder);
        let kinds = ["proc", "sysfs", "cgroup", "cgroup2", "tmpfs", "devtmpfs", "devpts", "mqueue"];
        kinds.contains(&self.file_system.as_str())
            && ["/proc", "/sys", "/dev", "/tmp"].into_iter().any(below)
    }

    fn is_part_of_the_root(&self) -> bool {
        let folders = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];
        self.box_dir == "/"
            || folders.iter().any(|folder| Path::new(&self.box_dir).starts_with(folder))
    }
}

/// Every folder that the box's user may write to. Queues are no files, and the kernel limits them by itself.
async fn nothing_else_can_be_written(rig: &Rig) {
    let script = "find / -xdev -type d -writable 2>/dev/null; \
        cut -d' ' -f5 /proc/self/mountinfo | while read -r box_dir; do [ -d \"$box_dir\" ] && [ -w \"$box_dir\" ] \
        && (: >\"$box_dir/attempt\") 2>/dev/null && rm \"$box_dir/attempt\" && echo \"$box_dir\"; done; true";
    let ran = rig.sh(script).run_ok().await;
    let mut writable: Vec<&str> =
        ran.stdout.lines().filter(|line| *line != "/dev/mqueue").collect();
    writable.sort_unstable();
    writable.dedup();
    assert_eq!(writable, ["/dev/shm", "/harness-state", "/tmp", "/workspace"]);
}

async fn the_workspace_may_be_read_only(rig: &Rig) {
    fs::write(rig.workspace().join("there"), "before\n").expect("a file");
    let script = "cat there; (: >new) || echo refused; (echo more >>there) || echo refused";
    let ran =
        rig.sh(script).with(|spec| spec.workspace_access = MountAccess::ReadOnly).run_ok().await;
    assert_eq!(ran.stdout, "before\nrefused\nrefused\n", "{ran:#?}");
    assert_eq!(fs::read(rig.workspace().join("there")).expect("a file"), b"before\n");
    assert!(!rig.workspace().join("new").exists());
}

async fn the_user_is_the_same_inside_and_outside(rig: &Rig) {
    let script =
        "id -u; id -g; id -G; mkdir made; : >made/file; ln -s nowhere link; : >/harness-state/file";
    let ran = rig.sh(script).run_ok().await;
    let inside = rig.uid_inside();
    let group = match rig.kind() {
        BackendKind::Bwrap => 1000,
        BackendKind::Docker => rig.user().gid,
    };
    assert_eq!(ran.stdout, format!("{inside}\n{group}\n{group}\n"));
    assert_eq!(ran.record.report.expect("a report").uid, inside);
    let (workspace, state) = (rig.workspace(), rig.harness_state());
    for path in [
        workspace.join("made"),
        workspace.join("made/file"),
        workspace.join("link"),
        state.join("file"),
    ] {
        let meta = fs::symlink_metadata(&path).expect("it is there");
        let owner = (meta.uid(), meta.gid());
        assert_eq!(owner, (rig.user().uid, rig.user().gid), "{}", path.display());
        assert_ne!(meta.uid(), 0, "{}", path.display());
    }
}

async fn the_box_has_a_name_of_its_own(rig: &Rig) {
    let ran = rig.argv(&["cat", "/proc/sys/kernel/hostname"]).run_ok().await;
    assert_eq!(ran.stdout, "bottle\n");
}

/// Kernels put fallback tunnels into every namespace; they are down, and no route leads over them.
async fn there_is_no_network_interface(rig: &Rig) {
    let script = "tail -n +2 /proc/net/route; echo -; grep -v ' lo$' /proc/net/if_inet6; echo -; \
        tail -n +3 /proc/net/dev | grep -v ' *lo:' | tr -s ' ' | cut -d: -f2";
    let ran = rig.sh(script).run().await;
    let (routes, rest) = ran.stdout.split_once("-\n").expect("routes");
    let (addresses, traffic) = rest.split_once("-\n").expect("addresses");
    assert_eq!((routes, addresses), ("", ""));
    assert!(traffic.chars().all(|c| matches!(c, '0' | ' ' | '\n')), "{traffic}");
}

async fn the_box_sees_only_its_own_processes(rig: &Rig) {
    let ran = rig.sh("ls -d /proc/[0-9]* | wc -l; tr '\\0' ' ' </proc/1/cmdline").run_ok().await;
    let (count, first) = ran.stdout.split_once('\n').expect("two lines");
    assert!(count.trim().parse::<u32>().expect("a number") < 10, "{count}");
    assert_eq!(first, "/harness-state/run/bottle-guest init /harness-state/run/config.json ");
}

async fn scratch_folders_are_empty_and_programs_run_there(rig: &Rig) {
    let script = "ls -A /tmp /dev/shm; printf '#!/bin/sh\\necho ran\\n' >/tmp/tool; chmod +x /tmp/tool; /tmp/tool";
    let ran = rig.sh(script).run_ok().await;
    assert_eq!(ran.stdout, "/dev/shm:\n\n/tmp:\nran\n");
}

async fn programs_are_lent_read_only(rig: &Rig) {
    let folder = rig.dir().join("tools");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("tool"), "#!/bin/sh\necho from $0\n").expect("a program");
    fs::set_permissions(folder.join("tool"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let lent = ProgramMount { host: folder.clone(), inside: "/opt/some tools".to_owned() };
    let script = "'/opt/some tools/tool'; (: >'/opt/some tools/new') 2>/dev/null || echo refused";
    let ran = rig.sh(script).with(|spec| spec.programs.push(lent)).run_ok().await;
    assert_eq!(ran.stdout, "from /opt/some tools/tool\nrefused\n");
    assert!(!folder.join("new").exists());
    // A program of one file, as vendors' own installers leave it.
    let host = folder.join("tool");
    let inside = "/opt/alone/tool";
    let lent = ProgramMount { host, inside: inside.to_owned() };
    let ran = rig.argv(&[inside]).with(|spec| spec.programs.push(lent)).run_ok().await;
    assert_eq!(ran.stdout, "from /opt/alone/tool\n");
}
