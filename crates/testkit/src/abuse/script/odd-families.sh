perl_says 60 '
    my %families = (alg => 38, bluetooth => 31, can => 29, tipc => 30, rds => 21, kcm => 41, xdp => 44, smc => 43,
        qipcrtr => 42, x25 => 9, ax25 => 3, llc => 26, nfc => 39);
    for my $name (sort keys %families) {
        for my $type (1, 2, 3, 5) {
            socket(my $socket, $families{$name}, $type, 0) and reached("AF_\U$name\E socket can be made");
        }
    }
    blocked("no family beside Unix, IP and netlink");'
