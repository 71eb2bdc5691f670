"""A step with contact as one program: program.py lists what it does, in order."""
