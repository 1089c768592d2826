"""Tools of the developers of kons: nothing here is installed."""
