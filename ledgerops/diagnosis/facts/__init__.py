"""What is measured of a query before anything judges it: one fact a module, each a pure function of a view."""
