"""The colours of every picture, in one place.

Okabe and Ito's colours, which also colour-blind readers can tell apart, ordered so that neighbours
differ in grey too. No picture says anything by colour alone: names, marks or dashes say it as well.
Every picture lies on paper of its own, so that it reads the same in a dark theme.
"""

PAPER, EDGE = "#fbfaf7", "#d8d4ca"
WHITE = "#ffffff"
INK, SOFT, FAINT = "#141414", "#4a4a4a", "#b9b4a8"

BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
RED, SKY, PINK = "#D55E00", "#56B4E9", "#CC79A7"

# colour, and the colour of text upon it
SERIES = ((BLUE, WHITE), (ORANGE, INK), (RED, INK), (SKY, INK), (GREEN, INK), (PINK, INK))

# light grounds for boxes with text: what they mean
LEAF, RESULT, FOLDED, PLAIN = "#dcecf7", "#fdeecb", "#e9e6df", WHITE
WRONG, RIGHT = "#f9dccb", "#d5efe4"
