#!/bin/bash
# Starts the agent. The host says what to start and what to tell it in a folder that nobody here can write to; there is
# no other way in, and no way to start anything else.
set -uo pipefail

run=/harness-state/run/harness
state=/harness-state
umask 077

show() {
    printf '===== %s =====\n' "$1"
    cat -- "$2"
    printf '\n'
}

# The agent's own settings go into its home as its own files: the host never writes where an agent has been.
[ -d "$run/home" ] && cp -R -- "$run/home/." "$HOME/"

# Nobody else is here yet: a lock that an earlier agent was killed with is nobody's.
rm -f -- /workspace/.git/index.lock 2> /dev/null

mkdir -p -- "$state/logs"
rm -f -- "$state/instructions.txt" "$state/fork-context.md"
cp -- "$run/instructions.txt" "$state/instructions.txt"
mapfile -d '' -t argv < "$run/agent.argv"

# Somebody sits at a terminal: it is the agent's alone, and the host keeps the log of what it shows.
if [ -t 0 ]; then
    [ -f "$run/fork-context.md" ] && cp -- "$run/fork-context.md" "$state/fork-context.md"
    exec "${argv[@]}"
fi

{
    show "instructions" "$run/instructions.txt"
    if [ -f "$run/fork-context.md" ]; then
        cp -- "$run/fork-context.md" "$state/fork-context.md"
        show "fork context" "$run/fork-context.md"
    fi
    printf '===== agent =====\n'
} | tee -- "$state/logs/harness.log" >&2

exec 3> >(exec tee -- "$state/logs/agent.log")
keeper=$!
"${argv[@]}" < /dev/null >&3 3>&- &
wait "$!"
status=$?
exec 3>&-

# The last lines have to get through. A process that the agent left behind may hold the pipe open for ever, so this
# waits for the log only for a moment; the host ends whoever is left.
for _ in {1..20}; do
    kill -0 "$keeper" 2> /dev/null || break
    sleep 0.05
done
exit "$status"
