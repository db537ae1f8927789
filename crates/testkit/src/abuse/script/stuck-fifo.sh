rm -rf STUCK.md
mkfifo STUCK.md && planted 'STUCK.md is a FIFO that nobody writes to'
blocked 'no FIFO can be made'
