"""The viewer in the browser, by viser (`pip install 'coupler[view]'`)."""
