export GIT_AUTHOR_NAME='Somebody Else' GIT_AUTHOR_EMAIL=somebody@example.org GIT_AUTHOR_DATE='1112911993 -0700'
export GIT_COMMITTER_NAME='The Release Bot' GIT_COMMITTER_EMAIL=bot@example.org GIT_COMMITTER_DATE='@4102444800 +0000'
git -c core.hooksPath=/dev/null commit --quiet --allow-empty -m 'Signed by somebody else

Signed-off-by: Somebody Else <somebody@example.org>' 2>/dev/null || blocked 'no commit can be made'
planted "$(git rev-parse HEAD)"
