"""What all pages share: their looks, axes, charts, tables, and words for values."""
