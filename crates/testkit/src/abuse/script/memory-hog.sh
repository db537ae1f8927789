need MEMORY_LIMIT
perl -e '
    my ($block, @held) = (16 << 20);
    for (1 .. 2 * $ENV{MEMORY_LIMIT} / $block + 1) { push @held, "x" x $block; select(undef, undef, undef, 0.01) }
    sleep 3;' 2>/dev/null && reached "twice the $MEMORY_LIMIT bytes were allocated"
blocked "allocation ended with status $?"
