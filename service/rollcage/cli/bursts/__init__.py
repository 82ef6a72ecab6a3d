"""
Driving many scripted rollouts at once, as a trainer does at the start of a step.

``scripts`` says what each does, ``trainer`` plays it over the Agent RFT
contract, ``figures`` counts what came of it, ``view`` shows it meanwhile.
"""
