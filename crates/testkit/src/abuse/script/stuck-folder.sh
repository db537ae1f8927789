rm -rf STUCK.md
mkdir STUCK.md && echo inside >STUCK.md/STUCK.md && planted 'STUCK.md is a folder'
blocked 'no folder can be made'
