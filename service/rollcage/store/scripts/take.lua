-- Keep what was taken out of a rollout's sandbox, for a while; what was taken first stays.

local a = key('artifacts', arg.rollout)
if call('HSETNX', a, 'account', arg.account) == 1 then
  call('HSET', a, 'content', arg.content)
  call('PEXPIRE', a, arg.kept_for)
end
return call('HMGET', a, 'account', 'content')
