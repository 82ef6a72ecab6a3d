-- The sandboxes of an environment that a claim could get, those that are kept for a run among them.

local found = call('SMEMBERS', key('ready', arg.environment))
for _, run in ipairs(call('ZRANGE', key('reservations', arg.environment), 0, -1)) do
  for _, sandbox in ipairs(call('SMEMBERS', key('aside', arg.environment, run))) do
    table.insert(found, sandbox)
  end
end
return found
