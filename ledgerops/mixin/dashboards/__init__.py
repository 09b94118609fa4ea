"""The Grafana dashboards: pages as data, and what makes Grafana's JSON of them."""
