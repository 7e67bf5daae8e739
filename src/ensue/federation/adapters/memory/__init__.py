"""An event service inside the process, for trials and tests of gateways."""
