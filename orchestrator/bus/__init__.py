"""The bus: takes events from any thread, gives each its place, hands it to who wants it."""
