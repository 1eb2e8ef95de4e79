"""Files and directories that appear whole or not at all, and none out of proportion."""
