-- The figures of a tenant's latest runs, newest first. Runs whose figures expired are dropped.

local found, runs = {}, key('runs', arg.tenant_key)
for _, run in ipairs(call('ZREVRANGE', runs, 0, tonumber(arg.limit) - 1)) do
  local fields = call('HGETALL', key('run', run))
  if #fields == 0 then call('ZREM', runs, run) else table.insert(found, fields) end
end
return found
