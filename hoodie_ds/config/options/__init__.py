"""The options that users give, one `Option` each, by what they concern."""
