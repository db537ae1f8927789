# Sets the clock to the time that it has.
[ "$(uname -m)" = x86_64 ] || skipped 'system call numbers are those of x86_64'
perl_says 60 '
    my $now = "\0" x 16;
    syscall(228, 0, $now) == 0 or die "no time";
    syscall(227, 0, $now) == 0 and reached("clock_settime");
    reached("clock_settime: taken, then $!") if !refused();
    syscall(228, 0, $now);
    my ($secs, $nanos) = unpack("qq", $now);
    my $timeval = pack("qq", $secs, int($nanos / 1000));
    syscall(164, $timeval, 0) == 0 and reached("settimeofday");
    reached("settimeofday: taken, then $!") if !refused();
    my $adjust = pack("L", 1) . "\0" x 204;
    syscall(305, 0, $adjust) >= 0 and reached("clock_adjtime");
    blocked("the clock cannot be set: $!");'
