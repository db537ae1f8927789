need BOTTLE_CANARY_PATH
for root in '' /proc/1/root /proc/$PPID/root /proc/self/root /workspace/../..; do
    if [ -e "$root$BOTTLE_CANARY_PATH" ]; then reached "$root$BOTTLE_CANARY_PATH is there"; fi
done
for home in /root /home/* "${HOME:-/nonexistent}"; do
    for secret in .ssh .gnupg .aws .netrc .git-credentials .config/gh .docker .kube .claude .codex; do
        if [ -n "$(ls -A "$home/$secret" 2>/dev/null)" ]; then reached "$home/$secret is there"; fi
    done
done
blocked 'no file of the host, no key'
