"""Where rows come from: the embedded source, files, Kafka topics, and reference data."""
