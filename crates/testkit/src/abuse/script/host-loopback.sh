need CANARY_PORT
# The box may have a loopback of its own, on which a refusal is the right answer.
perl_says 60 '
    use Socket qw(:DEFAULT inet_pton pack_sockaddr_in6 AF_INET6);
    my $port = $ENV{CANARY_PORT};
    for my $host ("127.0.0.1", "127.0.0.53", "0.0.0.0") {
        socket(my $socket, AF_INET, SOCK_STREAM, 0) or next;
        connect($socket, pack_sockaddr_in($port, inet_aton($host))) and reached("$host:$port answers");
    }
    for my $host ("::1", "::ffff:127.0.0.1") {
        socket(my $socket, AF_INET6, SOCK_STREAM, 0) or next;
        connect($socket, pack_sockaddr_in6($port, inet_pton(AF_INET6, $host))) and reached("$host:$port answers");
    }
    blocked("nothing of the host on loopback");'
