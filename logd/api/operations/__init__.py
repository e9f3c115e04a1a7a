"""The operations: plain functions of a request, one file per resource."""
