"""The compiled part: projections on cones, and what is calculated of their anchors. Nothing here knows of runs."""
