"""The archived timeline: instants that have left the active one, in Hudi's own form."""
