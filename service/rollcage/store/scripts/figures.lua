-- One run's figures.

return call('HGETALL', key('run', arg.run))
