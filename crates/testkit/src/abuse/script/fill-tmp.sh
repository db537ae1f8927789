need TMP_LIMIT
fill_folder /tmp
