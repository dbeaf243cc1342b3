"""An example to replace: what is in the cupboard, and how many pieces there are of each item."""
