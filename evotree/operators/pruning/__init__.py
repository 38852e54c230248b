"""What cuts trees back: by a penalty for nodes, or by held-out rows."""
