# What a program in a box has for speaking to the proxy: a socket, and HTTP/1.1 written by hand. Every answer is shown
# as one line, its status first; 0 means that there was none.
use strict;
use warnings;
use Errno;
use Socket qw(:DEFAULT inet_pton pack_sockaddr_in6 AF_INET6);
$| = 1;
$SIG{PIPE} = "IGNORE";
alarm 50;

my %kept;    # what was received and not yet read, by connection

# dial: a connection to the proxy.
sub dial {
    socket(my $socket, AF_INET, SOCK_STREAM, 0) or die "no socket: $!\n";
    connect($socket, pack_sockaddr_in(3128, inet_aton("127.0.0.1"))) or die "no proxy: $!\n";
    $kept{$socket} = "";
    return $socket;
}

# put CONNECTION TEXT: false if the other side takes no more.
sub put {
    my ($socket, $text) = @_;
    for (my $at = 0; $at < length $text;) {
        my $count = syswrite($socket, $text, 65536, $at);
        return 0 unless defined $count;
        $at += $count;
    }
    return 1;
}

# more CONNECTION: false at its end.
sub more {
    my ($socket) = @_;
    my $count = sysread($socket, my $part, 65536) or return 0;
    $kept{$socket} .= $part;
    return $count;
}

# before CONNECTION MARK: what comes before it; undefined if the end comes first.
sub before {
    my ($socket, $mark) = @_;
    while (index($kept{$socket}, $mark) < 0) { more($socket) or return undef }
    my $text = substr($kept{$socket}, 0, index($kept{$socket}, $mark), "");
    substr($kept{$socket}, 0, length $mark, "");
    return $text;
}

# take CONNECTION COUNT: as many bytes, or those up to the end.
sub take {
    my ($socket, $count) = @_;
    while (length $kept{$socket} < $count) { more($socket) or last }
    return substr($kept{$socket}, 0, $count, "");
}

# rest CONNECTION: everything up to the end.
sub rest {
    my ($socket) = @_;
    while (more($socket)) { }
    return take($socket, length $kept{$socket});
}

# chunk CONNECTION: the next piece of a stream; empty at its end, undefined if it breaks off.
sub chunk {
    my ($socket) = @_;
    my $size = before($socket, "\r\n");
    return undef unless defined $size;
    my $text = take($socket, hex $size);
    return undef unless defined before($socket, "\r\n");
    return $text;
}

# head CONNECTION: status and head of an answer.
sub head {
    my ($socket) = @_;
    my $head = before($socket, "\r\n\r\n");
    return (0, "") unless defined $head;
    return $head =~ m{^HTTP/1\.[01] (\d+)} ? ($1, $head) : (0, $head);
}

# answer CONNECTION: status, body and head.
sub answer {
    my ($socket) = @_;
    my ($status, $head) = head($socket);
    my $body = "";
    if ($head =~ /^content-length: *(\d+)/mi) { $body = take($socket, $1) }
    elsif ($head =~ /^transfer-encoding: *chunked/mi) {
        while (defined(my $part = chunk($socket))) { last if $part eq ""; $body .= $part }
    }
    elsif ($status != 204) { $body = rest($socket) }
    return ($status, $body, $head);
}

sub show {
    my ($status, $body) = @_;
    $body =~ s/\n/\\n/g;
    print "$status $body\n";
}

# request METHOD TARGET BODY HEADER...: its text.
sub request {
    my ($method, $target, $body, @headers) = @_;
    push @headers, "content-length: " . length $body if $method eq "POST";
    return join("\r\n", "$method $target HTTP/1.1", "host: box", @headers, "", $body);
}

# get TARGET HEADER...: on a connection of its own.
sub get {
    my ($target, @headers) = @_;
    my $socket = dial();
    put($socket, request("GET", $target, "", @headers));
    return answer($socket);
}

# post TARGET BODY HEADER...
sub post {
    my $socket = dial();
    put($socket, request("POST", @_));
    return answer($socket);
}

# tunnel TARGET: a connection through the proxy; undefined, after showing why, if there is none.
sub tunnel {
    my ($target) = @_;
    my $socket = dial();
    put($socket, "CONNECT $target HTTP/1.1\r\nhost: $target\r\n\r\n");
    my ($status, $head) = head($socket);
    return $socket if $status == 200;
    my ($length) = $head =~ /^content-length: *(\d+)/mi;
    show($status, take($socket, $length // 0));
    return undef;
}

# until_there FILE: waits for somebody outside.
sub until_there { my ($file) = @_; select(undef, undef, undef, 0.02) until -e $file }

# make FILE: tells somebody outside.
sub make { my ($file) = @_; open(my $made, ">", $file) or die "$file: $!\n" }
