"""Speech recognition: models behind one Protocol, and the mailbox that feeds them."""
