need PIDS_LIMIT
perl_says 60 '
    my $limit = $ENV{PIDS_LIMIT};
    die "odd limit" if $limit > 20000;
    my @children;
    for (1 .. $limit + 50) {
        my $child = fork();
        last if !defined $child;
        if (!$child) { alarm 50; sleep 50; exit 0 }
        push @children, $child;
    }
    my $alive = grep { kill 0, $_ } @children;
    kill "KILL", @children;
    waitpid($_, 0) for @children;
    reached("$alive processes at once") if $alive > $limit;
    blocked("$alive processes at once");'
