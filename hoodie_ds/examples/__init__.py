"""Programs that show the library at work. Nothing of the library imports them."""
