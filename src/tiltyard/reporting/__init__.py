"""What is told of a run: `schema` is the report itself, `telling` makes its parts of matches."""
