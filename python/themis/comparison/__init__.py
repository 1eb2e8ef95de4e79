"""The same workload under several policies, app by app."""
