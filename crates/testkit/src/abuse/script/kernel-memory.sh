perl_says 60 '
    use Fcntl;
    for my $file ("/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun",
        "/dev/vsock", "/dev/vhost-net", "/dev/uinput", "/dev/loop-control", "/dev/mapper/control", "/dev/snd/seq",
        "/proc/kcore", "/proc/kmsg", "/proc/kpagecount", "/proc/vmallocinfo", "/proc/slabinfo", </dev/sd*>,
        </dev/vd*>, </dev/nvme*>, </dev/dm-*>, </dev/loop*>) {
        sysopen(my $handle, $file, O_RDONLY | O_NONBLOCK) or next;
        # An engine hides such files behind /dev/null, which opens and is empty.
        my @stat = stat($handle);
        next if $stat[6] == 0x103 || !sysread($handle, my $byte, 1) && $file =~ m{^/proc};
        reached("$file can be opened");
    }
    blocked("no device of the kernel");'
