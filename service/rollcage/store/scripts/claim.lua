-- uses: index pool
-- The binding of this rollout, or a sandbox for it now, or a place in line.
--
-- Idempotent for the rollout: asked again it answers with the same binding or
-- renews the same place. What the record says of run and environment counts,
-- not what a retry says.

local r = key('rollout', arg.rollout)
local f = call('HMGET', r, 'state', 'sandbox', 'card', 'delivered', 'environment', 'run', 'verdict', 'cause')
local state, env, run = f[1], f[5] or arg.environment, f[6] or arg.run

if state == 'ended' then return refuse('rollout_ended', text(f[7]), text(f[8])) end

if state == 'bound' then
  if f[2] ~= arg.instead_of then
    if not f[6] then record() commence(arg.rollout) end
    return {'bound', f[2], f[3]}
  end
  if number(f[4]) > 0 then return refuse('may_have_run', f[2]) end
end
if f[7] then return refuse('rollout_ended', f[7], text(f[8])) end
if not live() then return refuse('store_recovering') end
if state == 'bound' then unbind(arg.rollout) end

reap(env)
if call('HGET', r, 'state') == 'bound' then
  f = call('HMGET', r, 'sandbox', 'card')
  return {'bound', f[1], f[2]}
end

local waiting = call('ZSCORE', key('queue', env, run), arg.rollout)
if not waiting then
  local sandbox, card = take_aside(env, run)
  -- Whoever is in the round came first; what is ready then is not for us.
  if not sandbox and call('ZCARD', key('round', env)) == 0 then sandbox, card = take_ready(env) end
  if sandbox then
    record()
    bind(arg.rollout, sandbox, card)
    return {'bound', sandbox, card}
  end
  if tonumber(arg.wait) <= 0 then return {'empty'} end
  local length = call('ZCARD', key('lapses', env))
  if length >= tonumber(arg.max_waiting) then
    return refuse('queue_full', env, tostring(length), arg.max_waiting)
  end
  record()
  call('HSET', r, 'state', 'waiting')
  if number(call('HGET', key('reservation', env, run), 'left')) > 0 then
    call('HSET', r, 'entitled', call('HGET', key('reservation', env, run), 'id'))
    pledge(env, run, -1, 0)
  end
  call('ZADD', key('queue', env, run), call('HGET', r, 'ticket'), arg.rollout)
  seat(env, run)
  call('PUBLISH', key('changes'), env)
end

keep(r)
-- Never shortened: several callers may wait for the same rollout, and the most patient one counts.
call('ZADD', key('lapses', env), 'GT', now + tonumber(arg.wait), run .. ' ' .. arg.rollout)
return {'waiting'}
