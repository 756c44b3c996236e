"""The ADK agent: its tools, its scripted model, how both are put together."""
