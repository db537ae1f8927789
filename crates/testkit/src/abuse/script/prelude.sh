# What every attempt starts with. An attempt prints one line and ends; the first word is the result.
set -u
blocked() { echo "BLOCKED $*"; exit 0; }
reached() { echo "REACHED $*"; exit 0; }
planted() { echo "PLANTED $*"; exit 0; }
skipped() { echo "SKIPPED $*"; exit 0; }

# need NAME: the host has to set this variable.
need() { eval "[ -n \"\${$1:-}\" ]" || skipped "$1 is not set"; }

# perl_says SECONDS CODE ARG...: what a Perl program prints, cut off after a while. It has `refused`, which tells a
# refusal (by filter, capability or permission) from an error that only comes once the kernel has taken the request.
perl_says() {
    limit=$1
    code=$2
    shift 2
    timeout -k 1 "$limit" perl -e '
        use strict; use warnings; use Errno; $| = 1;
        # A limit of no namespaces at all answers with ENOSPC.
        sub refused { $!{EPERM} || $!{EACCES} || $!{ENOSYS} || $!{EAFNOSUPPORT} || $!{ENOSPC} }
        sub blocked { print "BLOCKED @_\n"; exit 0 } sub reached { print "REACHED @_\n"; exit 0 }
        eval shift(@ARGV); print "SKIPPED the attempt itself failed: $@\n" if $@;' "$code" "$@" </dev/null 2>/dev/null ||
        echo "SKIPPED perl did not finish"
}

# try_call NAME NUMBER ARG...: one system call. `text:` and `zero:` make buffers. A child that it makes ends at once.
try_call() {
    [ "$(uname -m)" = x86_64 ] || skipped "system call numbers are those of x86_64"
    perl_says 60 '
        my ($name, $number, @given) = @ARGV;
        my @args = map { /^text:(.*)/s ? "$1\0" : /^hex:(.*)/ ? pack("H*", $1)
            : /^zero:(\d+)/ ? "\0" x $1 : /^0x/ ? hex : $_ + 0 } @given;
        my $parent = $$;
        my $result = syscall($number + 0, @args);
        if ($result == 0 && syscall(39) != $parent) { syscall(231, 0) }
        blocked("$name: $!") if $result == -1 && refused();
        reached("$name:", $result == -1 ? "taken, then $!" : "returned $result");' "$@"
    exit 0
}

# try_open FILE...: opens for writing, writes nothing.
try_open() {
    perl_says 60 '
        use Fcntl;
        for my $file (@ARGV) {
            sysopen(my $handle, $file, O_WRONLY | O_NONBLOCK) and reached("$file can be opened for writing");
        }
        blocked(scalar(@ARGV), "files cannot be opened for writing");' "$@"
    exit 0
}

# try_connect ADDRESS:PORT...: with no interface every address is unreachable at once. Anything else, even a refusal
# or silence, means that a packet found a way.
try_connect() {
    perl_says 60 '
        use Socket qw(:DEFAULT inet_pton pack_sockaddr_in6 AF_INET6 SOCK_NONBLOCK);
        for my $target (@ARGV) {
            my ($host, $port) = $target =~ /^\[?(.*?)\]?:(\d+)$/ or die "odd address $target";
            my $v6 = $host =~ /:/;
            my $ip = inet_pton($v6 ? AF_INET6 : AF_INET, $host) or die "odd address $target";
            socket(my $socket, $v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) or next;
            next if !connect($socket, $v6 ? pack_sockaddr_in6($port, $ip) : pack_sockaddr_in($port, $ip))
                && (refused() || $!{ENETUNREACH} || $!{EADDRNOTAVAIL});
            my $bits = ""; vec($bits, fileno($socket), 1) = 1;
            my $error = !select(undef, $bits, undef, 1) ? "no answer, but it was sent"
                : ($! = unpack("i", getsockopt($socket, SOL_SOCKET, SO_ERROR))) ? "$!" : "connected";
            reached("$target: $error");
        }
        blocked(scalar(@ARGV), "addresses are unreachable");' "$@"
    exit 0
}
