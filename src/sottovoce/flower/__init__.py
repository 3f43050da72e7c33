"""A federation of real parties: Flower moves the messages, Optuna runs the trials.

`studyfile` reads what all parties agree on, `sites` who they are, `wire` is what travels; `site` is
one party, `coordinator` the server's part, and an `app` in each hangs it into Flower.
"""
