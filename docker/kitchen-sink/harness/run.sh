#!/bin/bash
# Starts the agent. The host says what to start and what to tell it in a folder that nobody here can write to; there is
# no other way in, and no way to start anything else.
set -uo pipefail

run=/harness-state/run/harness
state=/harness-state
umask 077

# Adds a text to what is shown before the agent starts. Bash reads it by itself: each program that is started here keeps
# the agent waiting. A zero byte is shown as a blank.
page=
show() {
    local text
    mapfile -d '' -t text < "$2"
    printf -v page '%s===== %s =====\n%s\n' "$page" "$1" "${text[*]-}"
}

# Removes what an earlier agent may have left, also a link that leads nowhere.
forget() {
    if [ -e "$1" ] || [ -L "$1" ]; then rm -f -- "$1" 2> /dev/null; fi
}

# The agent's own settings go into its home as its own files: the host never writes where an agent has been.
[ -d "$run/home" ] && cp -R -- "$run/home/." "$HOME/"

# Nobody else is here yet: a lock that an earlier agent was killed with is nobody's.
forget /workspace/.git/index.lock

[ -d "$state/logs" ] || mkdir -p -- "$state/logs"
forget "$state/instructions.txt"
forget "$state/fork-context.md"
texts=("$run/instructions.txt")
show "instructions" "$run/instructions.txt"
if [ -f "$run/fork-context.md" ]; then
    texts+=("$run/fork-context.md")
    show "fork context" "$run/fork-context.md"
fi
cp -- "${texts[@]}" "$state/"
mapfile -d '' -t argv < "$run/agent.argv"

# Somebody sits at a terminal: it is the agent's alone, and the host keeps the log of what it shows.
[ -t 0 ] && exec "${argv[@]}"

page+=$'===== agent =====\n'
printf '%s' "$page" > "$state/logs/harness.log"
printf '%s' "$page" >&2

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
