-- Take a mark back. Only for whoever made it, who knows that nothing was sent.

local r = key('rollout', arg.rollout)
local f = call('HMGET', r, 'call:' .. arg.call, 'run', 'calls')
local n, last = tonumber(f[1]), tonumber(f[3])
local known = n and call('HMGET', r, 'mark:' .. n, 'result:' .. n)
local mine = known and not known[2] and string.match(known[1], '^%S+ %S+ (%S+)') == arg.attempt

if mine then
  call('HINCRBY', r, 'bytes', -call('HSTRLEN', r, 'asked:' .. n))
  -- Those that have begun since move up, so that no number is missing.
  for i = n, last - 1 do
    local from = call('HMGET', r, 'mark:' .. i + 1, 'asked:' .. i + 1, 'result:' .. i + 1)
    call('HSET', r, 'mark:' .. i, from[1], 'asked:' .. i, from[2], 'call:' .. string.match(from[1], '^%S+'), i)
    if from[3] then call('HSET', r, 'result:' .. i, from[3]) else call('HDEL', r, 'result:' .. i) end
  end
  call('HDEL', r, 'call:' .. arg.call, 'mark:' .. last, 'asked:' .. last, 'result:' .. last)
  call('HINCRBY', r, 'delivered', -1)
  -- What we take back must not spend the budget of a model that did nothing wrong.
  call('HINCRBY', r, 'calls', -1)
  if f[2] then call('HINCRBY', key('run', f[2]), 'open', -1) end
end
return {(mine or not known) and 'retracted' or 'stands', number(call('HGET', r, 'delivered'))}
