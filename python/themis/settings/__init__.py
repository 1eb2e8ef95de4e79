"""Settings by name: defaults, presets, overrides, messages about wrong ones."""
