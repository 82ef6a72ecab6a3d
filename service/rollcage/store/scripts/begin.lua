-- uses: ending
-- takes: rollout call hash attempt arguments max_calls max_bytes sandbox lasted result outcome shown boot
-- Mark a call as possibly delivered: from here on it runs at most once.
--
-- The same attempt again is still new (its answer was lost on the way); any
-- other attempt finds the mark and must not send. A call that was over before
-- it could be marked brings its result along, and how long ago it was sent.

local r, marks, call_id = key('rollout', arg.rollout), key('marks', arg.rollout), arg.call
local f = call('HMGET', r, 'state', 'sandbox', 'card', 'verdict', 'cause', 'environment', 'run', 'calls', 'bytes',
  'begun_at', 'boot', 'delivered', 'kept_at', 'results_kept_at')
local since, boot = text(f[10]), text(f[11])

local moved = f[1] ~= 'bound' or (arg.sandbox and arg.sandbox ~= f[2])
local full = number(f[8]) >= tonumber(arg.max_calls) or number(f[9]) >= tonumber(arg.max_bytes)
local n, begun_at = number(f[8]) + 1, now - number(arg.lasted)
local mark = n .. ' ' .. arg.hash .. ' ' .. arg.attempt .. ' ' .. tostring(begun_at)
if arg.result then mark = mark .. ended() end

if f[4] or moved or full or call('HSETNX', marks, call_id, mark) == 0 then
  mark = call('HGET', marks, call_id)
  if mark then
    local number_then, hash, attempt, then_at = string.match(mark, '^(%S+) (%S+) (%S+) (%S+)')
    if hash ~= arg.hash then return refuse('call_conflict', arg.rollout, call_id) end
    local result = call('HGET', key('results', arg.rollout), call_id)
    local status = result and 'finished' or (attempt == arg.attempt and 'new' or 'running')
    return {status, number_then, then_at, text(f[3]), text(result), text(f[4]), text(f[5]), since, boot}
  end
  if not f[1] then return refuse(live() and 'rollout_unknown' or 'store_recovering', arg.rollout) end
  if f[4] or f[1] == 'ended' then return refuse('rollout_ended', text(f[4]), text(f[5])) end
  if moved then return refuse('rollout_moved', text(arg.sandbox), text(f[2])) end
  return refuse('record_full', text(f[8]), text(f[9]))
end

local bytes = number(f[9]) + #arg.arguments
if arg.result then
  bytes = bytes + #arg.result
  call('HSET', key('results', arg.rollout), call_id, arg.result)
end
call('HSET', r, 'calls', n, 'delivered', number(f[12]) + 1, 'bytes', bytes)
call('HSET', key('arguments', arg.rollout), call_id, arg.arguments)
local length = call('RPUSH', key('order', arg.rollout), call_id)
call('ZADD', key('activity', f[6]), now, arg.rollout)
if f[7] then call('HINCRBY', key('run', f[7]), 'calls', 1) end
if arg.result then
  if arg.boot and boot == '' then call('HSET', r, 'boot', arg.boot) end
  count_ended(r, f[7], f[14])
end

-- Prolonged now and then, not by every call: each of these costs as much as a write. New keys have no end yet.
if length == 1 or now - number(f[13]) > tonumber(arg.retention) / 100 then
  call('HSET', r, 'kept_at', now)
  keep(r)
  for _, part in ipairs({'marks', 'arguments', 'order', 'results'}) do keep(key(part, arg.rollout)) end
end
-- Whoever brought the result knows the rest.
if arg.result then return {'kept', tostring(n), tostring(begun_at)} end
return {'new', tostring(n), tostring(begun_at), f[3], '', '', '', since, boot}
