"""Charts as plain data for plotly: one kind a file. They draw tables that figures hand over, and compute nothing."""
