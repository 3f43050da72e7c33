"""What a study promises, to whom and against whom: in sentences, and as a page to sign."""
