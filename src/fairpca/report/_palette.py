"""Colours and markers for groups, readable with any colour vision and in grey (Okabe and Ito)."""

GROUP_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
GROUP_MARKERS = ("o", "^", "s", "D", "v", "P", "X")
