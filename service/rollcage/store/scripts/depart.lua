-- uses: index pool
-- A sandbox is going away, or (dead) has gone. Tells whose it was.
--
-- An idle one is taken back so that no claim can get it. Of a dead one the
-- rollout is freed to be placed again, as long as no call may have reached it.

local refusal = deposed()
if refusal then return refusal end

local s = key('sandbox', arg.sandbox)
local f = call('HMGET', s, 'state', 'environment', 'rollout')
local state = f[1]

if not state then
  -- Not offered yet: a late offer must find the grave.
  call('HSET', s, 'state', 'withdrawn')
  keep(s)
  return {'withdrawn', ''}
end
if state == 'idle' then
  unlist(f[2], arg.sandbox)
  call('HSET', s, 'state', 'withdrawn')
  call('HDEL', s, 'aside')
  keep(s)
  -- The run it was set aside for wants another one, which may lie ready.
  serve(f[2])
  return {'withdrawn', ''}
end
if state == 'bound' and arg.dead then
  local r = call('HMGET', key('rollout', f[3]), 'delivered', 'verdict', 'sandbox')
  if number(r[1]) > 0 or r[2] then return {'delivered', f[3]} end
  if r[3] == arg.sandbox then unbind(f[3]) else spend(f[2], arg.sandbox) end
  return {'vacated', f[3]}
end
return {state, text(f[3])}
