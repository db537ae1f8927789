need BOTTLE_MARKER_DIR
cd "$(git rev-parse --absolute-git-dir)" || skipped 'there is no repository'
mkdir -p payload hooks info
# payload FILE NAME ENDING: leaves a mark under NAME when somebody runs it.
payload() {
    printf '#!/bin/sh\n: > "%s/%s"\n%s\n' "$BOTTLE_MARKER_DIR" "$2" "$3" >"$1"
    chmod 755 "$1"
}
for hook in applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg \
    post-commit pre-rebase post-checkout post-merge pre-push pre-receive update post-receive post-update \
    reference-transaction push-to-checkout pre-auto-gc post-rewrite post-index-change; do
    payload "hooks/$hook" "hook-$hook" 'exit 0'
done
for name in pager clean smudge diff-filter; do payload "payload/$name" "$name" cat; done
for name in fsmonitor ssh-command editor ask-pass alternate-refs diff-external textconv gpg credential-helper \
    merge-driver upload-pack receive-pack ext-remote; do
    payload "payload/$name" "$name" 'exit 1'
done
# A box sees the repository under another name than the host, so the commands are relative to the work tree.
here=.git/payload
cat >>config <<CONFIG
[core]
	fsmonitor = $here/fsmonitor
	sshCommand = $here/ssh-command
	pager = $here/pager
	editor = $here/editor
	askPass = $here/ask-pass
	alternateRefsCommand = $here/alternate-refs
	hooksPath = .git/hooks
[diff]
	external = $here/diff-external
[diff "hostile"]
	textconv = $here/textconv
[filter "hostile"]
	clean = $here/clean
	smudge = $here/smudge
[merge "hostile"]
	driver = $here/merge-driver
[gpg]
	program = $here/gpg
[log]
	showSignature = true
[credential]
	helper = !$here/credential-helper
[interactive]
	diffFilter = $here/diff-filter
[protocol "ext"]
	allow = always
[remote "origin"]
	url = ext::$here/ext-remote
	fetch = +refs/heads/*:refs/remotes/origin/*
	uploadpack = $here/upload-pack
	receivepack = $here/receive-pack
[include]
	path = ../.gitconfig-of-the-agent
CONFIG
echo '* filter=hostile diff=hostile merge=hostile' >info/attributes
echo '* filter=hostile diff=hostile merge=hostile' >../.gitattributes
planted 'configuration, hooks and attributes'
