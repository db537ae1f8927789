run=${GUEST_FOLDER:-/harness-state/run}
[ -d "$run" ] || skipped "$run is not there"
(: >"$run/new.$$") 2>/dev/null && reached "a file was made in $run"
for file in "$run"/*; do
    if mv "$file" "$file.moved" 2>/dev/null; then
        mv "$file.moved" "$file"
        reached "$file can be replaced"
    fi
    if [ -f "$file" ] && [ -w "$file" ]; then reached "$file can be written"; fi
    chmod 777 "$file" 2>/dev/null && reached "$file can be given other rights"
done
if mv "$run" "$run.moved" 2>/dev/null; then
    mv "$run.moved" "$run"
    reached "$run itself can be replaced"
fi
blocked "$run stays as it is"
