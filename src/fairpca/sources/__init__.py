"""Where rows come from. Everything later sees only blocks of rows."""
