-- uses: calls
-- Keep what a call came to. The first result stays; the answer is what stands in the record.

local r = key('rollout', arg.rollout)
local f = call('HMGET', r, 'call:' .. arg.call, 'state', 'environment', 'run', 'verdict', 'cause', 'boot', 'bytes',
  'kept_at')
local n, run = f[1], f[4]
if not n or not f[2] then
  return refuse(live() and 'call_unknown' or 'store_recovering', arg.rollout, arg.call)
end

-- Whoever calls next, from any gateway, names this boot and is refused by a successor.
if arg.boot and not f[7] then call('HSET', r, 'boot', arg.boot) end

if call('HSETNX', r, 'result:' .. n, arg.result) == 1 then
  call('HSET', r, 'mark:' .. n, call('HGET', r, 'mark:' .. n) .. ended(), 'bytes', number(f[8]) + #arg.result)
  if run then
    call('HINCRBY', key('run', run), 'open', -1)
    call('HINCRBY', key('run', run), 'outcome:' .. arg.outcome, 1)
  end
  if f[2] == 'bound' then call('ZADD', key('activity', f[3]), now, arg.rollout) end
  prolong(r, run, f[9])
  return {'kept', '', text(f[5]), text(f[6])}
end
return {'same', call('HGET', r, 'result:' .. n), text(f[5]), text(f[6])}
