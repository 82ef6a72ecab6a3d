-- uses: index pool
-- A sandbox is ready: to whoever's turn it is, else on the ready list. Once in its life.

local refusal = deposed()
if refusal then return refusal end

local s, env = key('sandbox', arg.sandbox), arg.environment
local state = call('HGET', s, 'state')
if not state then
  call('HSET', s, 'state', 'idle', 'environment', env, 'card', arg.card)
  call('SADD', key('ready', env), arg.sandbox)
end
if not state or state == 'idle' then keep(s) end
reap(env)
return {call('HGET', s, 'state')}
