"""What a table remembers of its answers: prices of what is missing, finer noise.

explaining        what a question costs, and what is known of it already
refining          a stored answer with less noise, for the difference
broader           a broader answer for little more, which later questions are read from
read_answers      answers read from stored ones: shown again, and read once more
content_labels    which content the records have, in words that tell nothing of it
"""
