-- Begin or complete a recovery.
--
-- A generation names one recovery: whoever completes must be the one who began
-- last, or a second loss in the middle would go unnoticed.

local refusal = deposed()
if refusal then return refusal end

local state = key('state')
local f = call('HMGET', state, 'phase', 'generation')
if arg.step == 'begin' then
  if f[1] == 'live' and not arg.force then return {'live', text(f[2])} end
  call('HSET', state, 'phase', 'recovering', 'generation', arg.generation)
  call('SETNX', key('schema'), arg.schema)
  return {'recovering', arg.generation}
end
if f[2] ~= arg.generation then return refuse('store_recovering') end
call('HSET', state, 'phase', 'live')
call('PUBLISH', key('wake'), '*')
return {'live', arg.generation}
