"""What the model can do besides talking: tools, how they are checked and run, and the yes they may need."""
