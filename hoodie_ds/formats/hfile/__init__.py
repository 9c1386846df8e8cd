"""HFiles, of which a metadata table consists: sorted keys with a value each."""
