"""The thinking side of Mynah: bus, generations, dialogue, flows and rails. Knows neither Qt nor sound devices."""
