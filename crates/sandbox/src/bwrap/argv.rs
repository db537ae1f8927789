//! The bubblewrap command line of a box, as a pure function.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::spec::{BindMount, BoxSpec, MountAccess};

/// The parts of a command line that depend on the machine and not on the spec.
#[derive(Debug, Clone)]
pub(crate) struct BoxMounts {
    /// The top-level entries of the root, as they will appear in the box.
    pub(crate) root: Vec<RootEntry>,
    /// Single files and folders of `/etc` that are safe and useful: certificates, alternatives, the linker's cache.
    pub(crate) etc: Vec<(PathBuf, PathBuf)>,
    /// The made-up `/etc`, by a path that the box's user can reach.
    pub(crate) made_up_etc: PathBuf,
    /// The folders of the box, by paths that its user can reach.
    pub(crate) binds: Vec<BindMount>,
    /// Descriptors of the compiled filters.
    pub(crate) seccomp_fds: Vec<i32>,
    /// Descriptor on which bubblewrap reports the pid of the guest.
    pub(crate) status_fd: i32,
    /// Descriptor on which the guest waits until it may start.
    pub(crate) start_fd: i32,
    /// Limits of the box's user namespace: a descriptor with the value, and the name.
    pub(crate) user_limits: Vec<(i32, &'static str)>,
}

/// One entry of the box's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RootEntry {
    /// A folder or file bound read-only.
    Bind { source: PathBuf, dest: PathBuf },
    /// A symbolic link, copied as such.
    Link { target: PathBuf, dest: PathBuf },
}

/// Renders the whole command line after `bwrap`.
pub(crate) fn argv_bwrap(spec: &BoxSpec, machine: &BoxMounts) -> Vec<OsString> {
    let mut argv = Argv::default();
    argv.flags(&["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]);
    argv.flags(&["--new-session", "--as-pid-1", "--cap-drop", "ALL", "--hostname", "bottle"]);
    // Inside, the user is always 1000, whatever the host identity: images, harness and logs agree on that.
    argv.flags(&["--uid", "1000", "--gid", "1000"]);
    for entry in &machine.root {
        match entry {
            RootEntry::Bind { source, dest } => argv.bind("--ro-bind", source, dest),
            RootEntry::Link { target, dest } => argv.bind("--symlink", target, dest),
        }
    }
    for file in super::root::MADE_UP_ETC {
        argv.bind("--ro-bind", &machine.made_up_etc.join(file), &Path::new("/etc").join(file));
    }
    for (source, dest) in &machine.etc {
        argv.bind("--ro-bind", source, dest);
    }
    argv.flags(&["--proc", "/proc", "--dev", "/dev"]);
    for (fd, name) in &machine.user_limits {
        argv.flags(&["--file", &fd.to_string(), &format!("/proc/sys/user/{name}")]);
    }
    argv.tmpfs("/tmp", spec.limits.tmp_bytes);
    argv.tmpfs("/dev/shm", spec.limits.tmp_bytes);
    argv.flags(&["--dir", "/run", "--dir", "/var", "--symlink", "../tmp", "/var/tmp"]);
    for BindMount { source, inside, access } in &machine.binds {
        let flag = match access {
            MountAccess::ReadWrite => "--bind",
            MountAccess::ReadOnly => "--ro-bind",
        };
        argv.bind(flag, source, Path::new(inside));
    }
    // `/dev` is a file system in memory that the box's user owns and that has no size of its own.
    argv.flags(&["--remount-ro", "/dev", "--remount-ro", "/"]);
    for fd in &machine.seccomp_fds {
        argv.flags(&["--add-seccomp-fd", &fd.to_string()]);
    }
    argv.flags(&["--json-status-fd", &machine.status_fd.to_string()]);
    argv.flags(&["--block-fd", &machine.start_fd.to_string(), "--chdir", "/"]);
    argv.flags(&["--"]);
    argv.0.extend(crate::boxdir::guest_command().into_iter().map(OsString::from));
    argv.0
}

#[derive(Default)]
struct Argv(Vec<OsString>);

impl Argv {
    fn flags(&mut self, flags: &[&str]) {
        self.0.extend(flags.iter().map(OsString::from));
    }

    fn bind(&mut self, flag: &str, source: &Path, dest: &Path) {
        self.0.extend([flag.into(), source.into(), dest.into()]);
    }

    fn tmpfs(&mut self, path: &str, bytes: u64) {
        self.flags(&["--size", &bytes.to_string(), "--tmpfs", path]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ProgramMount;
    use crate::spec::tests::spec;

    fn machine(spec: &BoxSpec) -> BoxMounts {
        let staged = ["workspace", "harness-state", "guest", "p0", "p1"];
        let mut binds = spec.binds();
        for (bind, name) in binds.iter_mut().zip(staged) {
            bind.source = Path::new("/stage").join(name);
        }
        BoxMounts {
            root: vec![
                RootEntry::Bind { source: "/usr".into(), dest: "/usr".into() },
                RootEntry::Link { target: "usr/bin".into(), dest: "/bin".into() },
            ],
            etc: vec![("/etc/ssl/certs".into(), "/etc/ssl/certs".into())],
            made_up_etc: "/stage/etc".into(),
            binds,
            seccomp_fds: vec![7, 8],
            status_fd: 9,
            start_fd: 10,
            user_limits: vec![(11, "max_inotify_instances")],
        }
    }

    fn shown(spec: &BoxSpec) -> String {
        let argv = argv_bwrap(spec, &machine(spec));
        let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ").replace(" --", "\n--")
    }

    #[test]
    fn the_profile_is_the_measured_one() {
        insta::assert_snapshot!(shown(&spec()), @r"
        --unshare-all
        --unshare-user
        --disable-userns
        --die-with-parent
        --new-session
        --as-pid-1
        --cap-drop ALL
        --hostname bottle
        --uid 1000
        --gid 1000
        --ro-bind /usr /usr
        --symlink usr/bin /bin
        --ro-bind /stage/etc/passwd /etc/passwd
        --ro-bind /stage/etc/group /etc/group
        --ro-bind /stage/etc/hosts /etc/hosts
        --ro-bind /stage/etc/nsswitch.conf /etc/nsswitch.conf
        --ro-bind /stage/etc/resolv.conf /etc/resolv.conf
        --ro-bind /etc/ssl/certs /etc/ssl/certs
        --proc /proc
        --dev /dev
        --file 11 /proc/sys/user/max_inotify_instances
        --size 268435456
        --tmpfs /tmp
        --size 268435456
        --tmpfs /dev/shm
        --dir /run
        --dir /var
        --symlink ../tmp /var/tmp
        --bind /stage/workspace /workspace
        --bind /stage/harness-state /harness-state
        --ro-bind /stage/guest /harness-state/run
        --remount-ro /dev
        --remount-ro /
        --add-seccomp-fd 7
        --add-seccomp-fd 8
        --json-status-fd 9
        --block-fd 10
        --chdir /
        -- /harness-state/run/bottle-guest init /harness-state/run/config.json
        ");
    }

    /// Only the lines that differ from the plain box.
    #[test]
    fn programs_are_mounted_read_only_behind_the_guest_folder() {
        let mut spec = spec();
        spec.programs = vec![
            ProgramMount { host: "/opt/agents/codex".into(), inside: "/opt/agent".to_owned() },
            ProgramMount { host: "/opt/forge".into(), inside: "/opt/forge".to_owned() },
        ];
        let plain = shown(&self::spec());
        let with_programs = shown(&spec);
        let added: Vec<_> =
            with_programs.lines().filter(|line| !plain.lines().any(|old| old == *line)).collect();
        assert_eq!(added, ["--ro-bind /stage/p0 /opt/agent", "--ro-bind /stage/p1 /opt/forge"]);
        let guest = with_programs.find("/harness-state/run\n").expect("the guest folder");
        assert!(guest < with_programs.find("/opt/agent").expect("a program"));
    }

    #[test]
    fn command_and_environment_of_the_agent_are_not_on_the_command_line() {
        let mut spec = spec();
        spec.argv = vec!["agent".to_owned(), "--key=hunter2".to_owned()];
        spec.env.insert("TOKEN".to_owned(), "hunter2".to_owned());
        assert_eq!(shown(&spec), shown(&self::spec()));
    }

    #[test]
    fn memory_file_systems_have_the_size_of_the_limit() {
        let mut spec = spec();
        spec.limits.tmp_bytes = 4096;
        let text = shown(&spec);
        assert_eq!(text.matches("--size 4096\n--tmpfs").count(), 2, "{text}");
    }

    #[test]
    fn an_export_box_sees_the_workspace_read_only() {
        let mut spec = spec();
        spec.workspace_access = MountAccess::ReadOnly;
        let argv = argv_bwrap(&spec, &machine(&spec));
        let at = argv.iter().position(|word| word == "/workspace").expect("mounted");
        assert_eq!(argv[at - 2], "--ro-bind");
    }
}
