"""What an assistant may ask of Ensue, over the Model Context Protocol."""
