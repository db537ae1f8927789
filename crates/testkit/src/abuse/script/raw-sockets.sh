perl_says 60 '
    my @kinds = (["IPv4 ICMP", 2, 3, 1], ["IPv4 raw", 2, 3, 255], ["IPv6 ICMP", 10, 3, 58], ["packet", 17, 3, 768],
        ["packet dgram", 17, 2, 768]);
    for my $kind (@kinds) {
        my ($name, $family, $type, $protocol) = @$kind;
        socket(my $socket, $family, $type, $protocol) and reached("$name socket can be made");
    }
    blocked("raw and packet sockets: $!");'
