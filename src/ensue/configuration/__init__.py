"""What all files of settings share: TOML that is read with bounds, and secrets by reference."""
