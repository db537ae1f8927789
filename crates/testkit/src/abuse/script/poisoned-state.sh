home=${HOME:-/harness-state/home}
marker=${BOTTLE_MARKER_DIR:-/tmp}
mkdir -p "$home/.config/git" "$home/.ssh" "$home/.claude" "$home/bin" 2>/dev/null || skipped "$home cannot be written"
for file in .bashrc .profile .bash_profile .zshenv .envrc; do
    echo ": > '$marker/shell-rc'" >"$home/$file"
done
printf '[alias]\n\tstatus = !: > "%s/home-alias"\n[core]\n\thooksPath = %s/hooks\n\tfsmonitor = ": > %s/home-fsmonitor; false"\n' \
    "$marker" "$home" "$marker" >"$home/.gitconfig"
cp "$home/.gitconfig" "$home/.config/git/config"
printf 'Host *\n\tProxyCommand touch %s/home-ssh\n' "$marker" >"$home/.ssh/config"
printf '{"mcpServers":{"x":{"command":"touch","args":["%s/mcp"]}}}\n' "$marker" >"$home/.mcp.json"
printf '{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch %s/agent-hook"}]}]}}\n' "$marker" \
    >"$home/.claude/settings.json"
printf '#!/bin/sh\n: > "%s/home-git"\n' "$marker" >"$home/bin/git"
chmod 755 "$home/bin/git"
planted 'shell, git, ssh and agent configuration in the home'
