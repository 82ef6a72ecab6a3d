-- One rollout's record.

return call('HGETALL', key('rollout', arg.rollout))
