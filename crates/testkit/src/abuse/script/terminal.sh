# The streams of the attempt itself, under other numbers, since Perl is given streams of its own.
perl_says 60 '
    use Fcntl;
    sysopen(my $tty, "/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK) and reached("there is a terminal");
    my $why = "$!";
    for my $number (0 .. 20) {
        open(my $handle, "<&=", $number) or next;
        my $key = "x";
        ioctl($handle, 0x5412, $key) and reached("a key was typed into descriptor $number");
    }
    blocked("/dev/tty: $why");' 9<&0 8>&2
