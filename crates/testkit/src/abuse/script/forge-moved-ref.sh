older=$(git merge-base "$head" "$upstream") || older=$head
for name in $refs; do git update-ref "$name" "$older" || blocked "$name cannot be moved"; done
planted "upstream is said to be at $older"
