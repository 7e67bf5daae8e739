"""HTTP: requests in, problem documents and JSON out. Every route is described in `openapi`."""
