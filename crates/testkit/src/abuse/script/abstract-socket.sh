need CANARY_ABSTRACT
perl_says 60 '
    use Socket;
    my $name = $ENV{CANARY_ABSTRACT};
    for my $type (SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET) {
        socket(my $socket, AF_UNIX, $type, 0) or next;
        connect($socket, pack("Sa*", AF_UNIX, "\0$name")) and reached("\@$name answers");
    }
    if (open(my $list, "<", "/proc/net/unix")) {
        while (<$list>) { reached("a foreign socket is listed: $1") if / (\@\S+)$/ }
    }
    blocked("no abstract socket can be seen");'
