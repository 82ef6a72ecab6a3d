-- Take a mark back. Only for whoever made it, who knows that nothing was sent.

local r, marks, arguments = key('rollout', arg.rollout), key('marks', arg.rollout), key('arguments', arg.rollout)
local run = call('HGET', r, 'run')
local mark = call('HGET', marks, arg.call)
local attempt = mark and string.match(mark, '^%S+ %S+ (%S+)')
local mine = mark and attempt == arg.attempt and call('HEXISTS', key('results', arg.rollout), arg.call) == 0

if mine then
  call('HINCRBY', r, 'bytes', -call('HSTRLEN', arguments, arg.call))
  call('HDEL', marks, arg.call)
  call('HDEL', arguments, arg.call)
  call('LREM', key('order', arg.rollout), -1, arg.call)
  call('HINCRBY', r, 'delivered', -1)
  -- What we take back must not spend the budget of a model that did nothing wrong.
  call('HINCRBY', r, 'calls', -1)
  if run then call('HINCRBY', key('run', run), 'calls', -1) end
end
return {(mine or not mark) and 'retracted' or 'stands', number(call('HGET', r, 'delivered'))}
