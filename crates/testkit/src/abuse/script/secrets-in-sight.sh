perl_says 60 '
    my $word = "canary" . "-";
    for my $file (</proc/[0-9]*/environ>, </proc/[0-9]*/cmdline>, </proc/[0-9]*/auxv>) {
        open(my $handle, "<", $file) or next;
        local $/; my $content = <$handle> // "";
        reached("a secret in $file") if index($content, $word) >= 0;
    }
    for my $folder (grep { -d } "/harness-state", $ENV{HOME} // ()) {
        open(my $list, "-|", "find", $folder, "-xdev", "-type", "f", "-size", "-1024k") or next;
        while (my $file = <$list>) {
            chomp $file;
            open(my $handle, "<", $file) or next;
            local $/; my $content = <$handle> // "";
            reached("a secret in $file") if index($content, $word) >= 0;
        }
    }
    blocked("no secret in any environment, command line or file of ours");'
