-- uses: index pool
-- Set sandboxes aside for a run. The same id again changes nothing; another one takes its place.

local env, run = arg.environment, arg.run
local r = key('reservation', env, run)
reap(env)

if call('HGET', r, 'id') ~= arg.id then
  if not live() then return refuse('store_recovering') end
  local wanted = tonumber(arg.count)
  local held = number(call('HGET', key('pledges', env), 'tenant:' .. arg.tenant_key))
  local others = held - number(call('HGET', r, 'left'))
  if others + wanted > tonumber(arg.quota) then
    return refuse('over_quota', tostring(wanted), tostring(others), arg.quota)
  end
  if wanted == 0 then
    if call('EXISTS', r) == 1 then dissolve(env, run) end
  else
    -- What is set aside already stays so, as far as it is still wanted.
    for _ = 1, call('SCARD', key('aside', env, run)) - wanted do put_back(env, run) end
    call('HSET', r, 'id', arg.id, 'count', wanted, 'tenant_key', arg.tenant_key, 'expires', now + tonumber(arg.ttl))
    call('ZADD', key('reservations', env), now + tonumber(arg.ttl), run)
    pledge(env, run, wanted - number(call('HGET', r, 'left')), 0)
    -- Who already waits is part of what the step needs, and must not be counted twice.
    for _, rollout in ipairs(call('ZRANGE', key('queue', env, run), 0, wanted - 1)) do
      call('HSET', key('rollout', rollout), 'entitled', arg.id)
      pledge(env, run, -1, 0)
    end
    seat(env, run)
  end
  serve(env)
  call('PUBLISH', key('changes'), env)
end

local f = call('HMGET', r, 'count', 'left', 'expires')
return {number(f[1]), number(f[2]), call('SCARD', key('aside', env, run)), tostring(number(f[3]))}
