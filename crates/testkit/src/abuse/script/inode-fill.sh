need INODE_LIMIT
perl -e '
    mkdir "inodes"; my $made = 0;
    for (1 .. 2 * $ENV{INODE_LIMIT}) { open(my $file, ">", "inodes/$_") or last; $made++ }
    sleep 10; exit($made > $ENV{INODE_LIMIT} ? 0 : 1);' 2>/dev/null
status=$?
rm -rf inodes
if [ "$status" -eq 0 ]; then reached "more than $INODE_LIMIT files"; fi
blocked 'files cannot be made any more'
