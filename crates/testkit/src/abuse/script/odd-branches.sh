taken=0
refused=0
for name in -f --upload-pack=touch '$(touch${IFS}pwned)' '`touch`' ';id' 'a|b' '&&id' "'quoted'" '"double"' 'a..b' \
    '../../escape' 'x.lock' '@{-1}' 'HEAD' 'refs/heads/main' "$(printf 'new\nline')" "$(printf 'bidi\342\200\256')"; do
    if git update-ref "refs/heads/$name" HEAD 2>/dev/null; then taken=$((taken + 1)); else refused=$((refused + 1)); fi
done
# Git checks names, the file system does not.
heads=$(git rev-parse --git-path refs/heads)
git rev-parse HEAD >"$heads/with space" 2>/dev/null
planted "$taken names taken, $refused refused"
