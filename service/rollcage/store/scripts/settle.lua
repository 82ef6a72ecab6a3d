-- uses: index pool
-- Give a rollout its verdict and, if asked to, end it. The first verdict stands for ever.
--
-- A rollout nobody has heard of is recorded as well: one that made no call still
-- ends with a verdict, and a late call must not bring it to life.

local refusal = deposed()
if refusal then return refusal end

local r = key('rollout', arg.rollout)
record()
commence(arg.rollout)
local f = call('HMGET', r, 'state', 'environment', 'run', 'verdict', 'sandbox')
local set = not f[4]

if set then
  call('HSET', r, 'verdict', arg.verdict, 'cause', arg.cause, 'verdict_by', arg.by, 'verdict_at', now)
  call('RPUSH', key('evidence', arg.rollout), arg.evidence)
  keep(key('evidence', arg.rollout))
  count(f[3], {['verdict:' .. arg.verdict] = 1})
  if arg.cause ~= '' then count(f[3], {['cause:' .. arg.cause] = 1}) end
  if arg.verdict == 'masked' then file(arg.rollout, 'masked') end
end

if arg.ends and f[1] ~= 'ended' then
  if f[1] == 'waiting' then
    leave(f[2], f[3], arg.rollout)
    call('PUBLISH', key('wake'), arg.rollout)
  end
  if f[1] == 'bound' then
    spend(f[2], f[5])
    call('ZREM', key('bindings', f[2]), arg.rollout)
  end
  call('ZREM', key('activity', f[2]), arg.rollout)
  call('HSET', r, 'state', 'ended', 'ended_at', now)
  unfile(arg.rollout, 'active')
  file(arg.rollout, 'ended')
  count(f[3], {active = -1, ended = 1})
  to_archive(arg.rollout)
end

f = call('HMGET', r, 'verdict', 'cause', 'verdict_by', 'verdict_at', 'sandbox', 'card', 'delivered')
return {set and '1' or '', f[1], f[2], f[3], f[4], text(f[5]), text(f[6]), text(f[7])}
