"""A federation of real parties: Flower moves the messages, Optuna runs the trials.

`studyfile` reads what all parties agree on, `wire` is what travels, `site` is one party,
`coordinator` the server's part; `clientapp` and `serverapp` hang them into Flower.
"""
