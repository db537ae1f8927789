need FILE_LIMIT
file=large-file.$$
# Sparse, so that it is the limit that stops it and never the disk.
(dd if=/dev/zero of="$file" bs=1 count=1 seek="$FILE_LIMIT") >/dev/null 2>&1
(truncate -s "$((FILE_LIMIT + 1))" "$file") >/dev/null 2>&1
size=$(stat -c %s "$file" 2>/dev/null || echo 0)
rm -f "$file"
if [ "$size" -gt "$FILE_LIMIT" ]; then reached "a file of $size bytes"; fi
blocked "the file stayed at $size bytes"
