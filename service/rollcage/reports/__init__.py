"""
Pages for people who were not there: what a burst or a run did, as one HTML file.

Self-contained: inline pictures, no script from elsewhere, nothing to install.
"""
