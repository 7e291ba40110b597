"""Maximum concurrent flow between switches: exact, dense and sparse methods, and the choice between them."""
