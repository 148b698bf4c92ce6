"""The flow editor: a dock with files, text, problems, graph and a try-out of unsaved flows."""
