"""The report of a diagnosis as one HTML file: readable without a network, in light and dark, and on paper."""
