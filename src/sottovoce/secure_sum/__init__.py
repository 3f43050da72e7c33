"""A sum that nobody can open alone. Imports only `privacy` and errors; it reads and writes nothing.

`grid` puts a clipped vector on whole numbers and adds its share of the noise; `field` and `sharing`
split that into shares, any t of which give it back; `keys` seals and signs them; `protocol` is what
a speaker says, what a member of the committee answers, and what is made of the answers.
"""
