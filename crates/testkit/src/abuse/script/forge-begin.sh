export GIT_AUTHOR_NAME=agent GIT_AUTHOR_EMAIL=agent@example.com GIT_COMMITTER_NAME=agent
export GIT_COMMITTER_EMAIL=agent@example.com
refs=$(git for-each-ref --format='%(refname)' | grep -E '(^|/)upstream(/|$)' | grep -v '/HEAD$')
[ -n "$refs" ] || skipped 'there is no ref of upstream'
upstream=$(git rev-parse "$(echo "$refs" | head -n 1)^{commit}")
head=$(git rev-parse HEAD)
parents=$(git --no-replace-objects cat-file commit HEAD | sed -n '/^$/q; s/^parent //p' | tr '\n' ' ')
