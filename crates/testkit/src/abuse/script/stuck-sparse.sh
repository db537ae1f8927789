rm -rf STUCK.md
for size in 10737418240 "${FILE_LIMIT:-1073741824}" 67108864; do
    if (truncate -s "$size" STUCK.md) 2>/dev/null; then planted "STUCK.md has $size bytes of nothing"; fi
done
blocked 'no large file can be made'
