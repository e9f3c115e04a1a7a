"""The search language: text -> syntax tree, filters and cursors. Pure: no I/O, no clock."""
