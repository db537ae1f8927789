# shellcheck disable=SC2086 # parents are words
git replace --force --graft "$head" $parents "$upstream" 2>/dev/null || blocked 'no replacement can be made'
planted "$head is replaced by a merge"
