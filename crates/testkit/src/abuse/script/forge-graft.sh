info=$(git rev-parse --git-path info)
mkdir -p "$info"
echo "$head $parents$upstream" >"$info/grafts" || blocked 'no graft can be made'
planted "$head is grafted into a merge"
