state=${HARNESS_STATE:-/harness-state}
mkdir -p "$state/queue" 2>/dev/null || skipped "$state cannot be written"
outside=${BOTTLE_CANARY_PATH:-/etc/passwd}
ln -sfn / "$state/queue/root"
ln -sfn ../../../../../.. "$state/up"
ln -sfn "$outside" "$state/clarification.json"
ln -sfn "../../../../../..$outside" "$state/answer.json"
: >"$state/queue/-rf"
: >"$state/queue/\$(touch pwned)"
: >"$state/queue/..\\..\\windows"
: >"$state/queue/two
lines"
printf '{"path":"../../../../../..%s"}\n' "$outside" >"$state/queue/..%2f..%2fitem.json"
planted 'links and names that lead out of the harness state'
