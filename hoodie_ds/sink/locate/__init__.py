"""Where rows go: the location of keys, and the routers of rows to file groups."""
