-- Take rollouts that are to be archived and have been at rest for a while.
--
-- They are taken for a turn: whoever fails, or is never heard of again, leaves
-- them to the next one. That somebody asks is what makes them be written down.

call('SET', key('archivist'), now, 'PX', arg.absence)
local unarchived, rest = key('unarchived'), tonumber(arg.rest)
local ticket = now - rest + tonumber(arg.turn)
local taken = call('ZRANGEBYSCORE', unarchived, '-inf', now - rest, 'LIMIT', 0, tonumber(arg.limit))
for _, rollout in ipairs(taken) do call('ZADD', unarchived, ticket, rollout) end
return {tostring(ticket), taken}
