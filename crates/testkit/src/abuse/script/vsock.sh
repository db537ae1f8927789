perl_says 60 '
    use Socket;
    for my $type (SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET) {
        socket(my $socket, 40, $type, 0) and reached("a socket to the hypervisor can be made");
        reached("the family is known: $!") if !refused();
    }
    blocked("AF_VSOCK: $!");'
