[ "$(uname -m)" = x86_64 ] || skipped 'system call numbers are those of x86_64'
perl_says 60 '
    # Both at once: the new user namespace owns the new mount namespace, nothing outside changes.
    syscall(272, 0x10020000) == 0 or blocked("unshare: $!");
    my ($type, $target) = ("tmpfs\0", "/tmp\0");
    syscall(165, $type, $target, $type, 0, 0) == 0 and reached("a file system was mounted");
    reached("a namespace was made, then $!");'
