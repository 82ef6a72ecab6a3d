-- Keep what a call came to. The first result stays; the answer is what stands in the record.

local marks, results = key('marks', arg.rollout), key('results', arg.rollout)
local mark = call('HGET', marks, arg.call)
local f = call('HMGET', key('rollout', arg.rollout), 'state', 'environment', 'run', 'verdict', 'cause')
if not mark or not f[1] then
  return refuse(live() and 'call_unknown' or 'store_recovering', arg.rollout, arg.call)
end

-- Whoever calls next, from any gateway, names this boot and is refused by a successor.
if arg.boot then call('HSETNX', key('rollout', arg.rollout), 'boot', arg.boot) end

if call('HSETNX', results, arg.call, arg.result) == 1 then
  call('HSET', marks, arg.call, mark .. ' ' .. tostring(now) .. ' ' .. arg.outcome)
  call('HINCRBY', key('rollout', arg.rollout), 'bytes', #arg.result)
  keep(results)
  if f[3] then call('HINCRBY', key('run', f[3]), 'outcome:' .. arg.outcome, 1) end
  if f[1] == 'bound' then call('ZADD', key('activity', f[2]), now, arg.rollout) end
  return {'kept', '', text(f[4]), text(f[5])}
end
return {'same', call('HGET', results, arg.call), text(f[4]), text(f[5])}
