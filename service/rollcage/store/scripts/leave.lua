-- uses: index pool
-- Give up waiting, unless a sandbox was bound in the meantime: then it is the rollout's, and said so.

local r = key('rollout', arg.rollout)
local f = call('HMGET', r, 'state', 'environment', 'run', 'sandbox', 'card')

if f[1] == 'bound' then return {'bound', f[4], f[5]} end
if f[1] == 'waiting' then
  leave(f[2], f[3], arg.rollout)
  -- Another gateway may wait for the same rollout: it takes the place again at once.
  call('PUBLISH', key('wake'), arg.rollout)
  call('PUBLISH', key('changes'), f[2])
end
return {'left'}
