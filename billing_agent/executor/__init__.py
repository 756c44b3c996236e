"""The A2A executor: one message in, one ADK run, its events out."""
