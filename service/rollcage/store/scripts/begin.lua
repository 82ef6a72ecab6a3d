-- uses: calls
-- takes: rollout call hash attempt arguments max_calls max_bytes sandbox lasted result outcome shown boot
-- Mark a call as possibly delivered: from here on it runs at most once.
--
-- The same attempt again is still new (its answer was lost on the way); any
-- other attempt finds the mark and must not send. A call that was over before
-- it could be marked brings its result along, and how long ago it was sent.
--
-- Every call waits for this; most of its time goes into asking Redis, whatever for.

local r = key('rollout', arg.rollout)
local f = call('HMGET', r, 'state', 'sandbox', 'card', 'verdict', 'cause', 'environment', 'run', 'calls', 'bytes',
  'begun_at', 'boot', 'delivered', 'kept_at', 'call:' .. arg.call)
local since, boot, known = text(f[10]), text(f[11]), f[14]

if known then
  local then_was = call('HMGET', r, 'mark:' .. known, 'result:' .. known)
  local hash, attempt, then_at = string.match(then_was[1], '^%S+ (%S+) (%S+) (%S+)')
  if hash ~= arg.hash then return refuse('call_conflict', arg.rollout, arg.call) end
  local status = then_was[2] and 'finished' or (attempt == arg.attempt and 'new' or 'running')
  return {status, known, then_at, text(f[3]), text(then_was[2]), text(f[4]), text(f[5]), since, boot}
end
if not f[1] then return refuse(live() and 'rollout_unknown' or 'store_recovering', arg.rollout) end
if f[4] or f[1] == 'ended' then return refuse('rollout_ended', text(f[4]), text(f[5])) end
if f[1] ~= 'bound' or (arg.sandbox and arg.sandbox ~= f[2]) then
  return refuse('rollout_moved', text(arg.sandbox), text(f[2]))
end
if number(f[8]) >= tonumber(arg.max_calls) or number(f[9]) >= tonumber(arg.max_bytes) then
  return refuse('record_full', text(f[8]), text(f[9]))
end

local n, begun_at = number(f[8]) + 1, now - number(arg.lasted)
local mark = arg.call .. ' ' .. arg.hash .. ' ' .. arg.attempt .. ' ' .. tostring(begun_at)
local bytes, delivered, counted = number(f[9]) + #arg.arguments, number(f[12]) + 1, 'open'
if arg.result then
  counted = 'outcome:' .. arg.outcome
  call('HSET', r, 'calls', n, 'delivered', delivered, 'bytes', bytes + #arg.result,
    'call:' .. arg.call, n, 'mark:' .. n, mark .. ended(), 'asked:' .. n, arg.arguments, 'result:' .. n, arg.result)
  if arg.boot and boot == '' then call('HSET', r, 'boot', arg.boot) end
else
  call('HSET', r, 'calls', n, 'delivered', delivered, 'bytes', bytes,
    'call:' .. arg.call, n, 'mark:' .. n, mark, 'asked:' .. n, arg.arguments)
end
call('ZADD', key('activity', f[6]), now, arg.rollout)
if f[7] then call('HINCRBY', key('run', f[7]), counted, 1) end
prolong(r, f[7], f[13])
-- Whoever brought the result knows the rest.
if arg.result then return {'kept', tostring(n), tostring(begun_at)} end
return {'new', tostring(n), tostring(begun_at), f[3], '', '', '', since, boot}
