-- uses: index pool
-- Write a binding down again, as the pod itself tells it.
--
-- Where the record says otherwise nothing is changed: both accounts are kept as
-- evidence with every rollout concerned, and somebody must decide.

local refusal = deposed()
if refusal then return refusal end

local r, s = key('rollout', arg.rollout), key('sandbox', arg.sandbox)
local rollout = call('HMGET', r, 'state', 'sandbox', 'environment', 'run')
local sandbox = call('HMGET', s, 'state', 'rollout')

local owner_differs = sandbox[2] and sandbox[2] ~= arg.rollout
local home_differs = rollout[2] and rollout[2] ~= arg.sandbox
if owner_differs or home_differs then
  record()
  commence(arg.rollout)
  local account = cjson.encode({
    kind = 'restore_conflict', sandbox = arg.sandbox, told_rollout = arg.rollout,
    recorded_rollout = text(sandbox[2]), recorded_sandbox = text(rollout[2]), at_ms = now,
  })
  local concerned = {[arg.rollout] = true}
  if owner_differs then concerned[sandbox[2]] = true end
  for name in pairs(concerned) do
    call('RPUSH', key('evidence', name), account)
    call('LTRIM', key('evidence', name), -tonumber(arg.most), -1)
    keep(key('evidence', name))
  end
  return refuse('restore_conflict', arg.sandbox, arg.rollout, text(sandbox[2]), text(rollout[2]))
end

-- Nothing goes on in it any more: see that it is deleted.
if rollout[1] == 'ended' or sandbox[1] == 'spent' or sandbox[1] == 'withdrawn' then
  if not sandbox[1] then call('HSET', s, 'environment', arg.environment, 'rollout', arg.rollout) end
  spend(arg.environment, arg.sandbox)
  return {'ended'}
end

if sandbox[1] == 'idle' then unlist(arg.environment, arg.sandbox) end
if rollout[1] ~= 'bound' then
  record()
  call('HSET', s, 'environment', arg.environment, 'card', arg.card)
  bind(arg.rollout, arg.sandbox, arg.card)
end
serve(arg.environment)
if number(call('HGET', r, 'delivered')) < tonumber(arg.delivered) then call('HSET', r, 'delivered', arg.delivered) end
return {'bound'}
