-- uses: ending
-- Keep what a call came to. The first result stays; the answer is what stands in the record.

local r, marks, results = key('rollout', arg.rollout), key('marks', arg.rollout), key('results', arg.rollout)
local mark = call('HGET', marks, arg.call)
local f = call('HMGET', r, 'state', 'environment', 'run', 'verdict', 'cause', 'boot', 'bytes', 'results_kept_at')
if not mark or not f[1] then
  return refuse(live() and 'call_unknown' or 'store_recovering', arg.rollout, arg.call)
end

-- Whoever calls next, from any gateway, names this boot and is refused by a successor.
if arg.boot and not f[6] then call('HSET', r, 'boot', arg.boot) end

if call('HSETNX', results, arg.call, arg.result) == 1 then
  call('HSET', marks, arg.call, mark .. ended())
  call('HSET', r, 'bytes', number(f[7]) + #arg.result)
  count_ended(r, f[3], f[8])
  if f[1] == 'bound' then call('ZADD', key('activity', f[2]), now, arg.rollout) end
  return {'kept', '', text(f[4]), text(f[5])}
end
return {'same', call('HGET', results, arg.call), text(f[4]), text(f[5])}
