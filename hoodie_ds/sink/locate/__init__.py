"""Where rows go: the locations of keys, and the routers of rows to file groups."""
