# fill_folder FOLDER: many small files, so that the limit on one file does not hide the limit on all.
fill_folder() {
    [ -d "$1" ] || skipped "$1 is not there"
    place=$(mktemp -d "$1/fill.XXXXXX") || blocked "$1 cannot be written"
    count=0
    written=0
    while [ "$written" -le "$((TMP_LIMIT + 1048576))" ]; do
        head -c 1048576 /dev/zero >"$place/$count" 2>/dev/null || break
        count=$((count + 1))
        written=$((count * 1048576))
    done
    rm -rf "$place"
    if [ "$written" -gt "$TMP_LIMIT" ]; then reached "$written bytes in $1"; fi
    blocked "full after $written bytes in $1"
}
