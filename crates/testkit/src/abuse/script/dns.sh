perl_says 60 '
    use Socket;
    my $query = pack("nnnnnn", 4711, 256, 1, 0, 0, 0) . "\7example\3com\0" . pack("nn", 1, 1);
    my @servers = ("8.8.8.8", "1.1.1.1");
    if (open(my $list, "<", "/etc/resolv.conf")) {
        while (<$list>) { push @servers, $1 if /^nameserver\s+([\d.]+)/ }
    }
    for my $server (@servers) {
        socket(my $socket, AF_INET, SOCK_DGRAM, 0) or next;
        my $sent = send($socket, $query, 0, pack_sockaddr_in(53, inet_aton($server)));
        next if !defined $sent;
        reached("a question to $server was sent") if $server !~ /^127\./;
        my $bits = ""; vec($bits, fileno($socket), 1) = 1;
        next if !select($bits, undef, undef, 1);
        reached("$server answers") if defined recv($socket, my $answer, 512, 0);
    }
    alarm 10;
    reached("a name was resolved") if gethostbyname("example.com");
    blocked(scalar(@servers), "servers cannot be asked, no name resolves");'
