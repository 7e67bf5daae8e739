"""Federation: gateways that make one event service out of many unlike ones."""
