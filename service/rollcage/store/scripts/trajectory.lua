-- A page of the calls in the order in which they began: at most *limit*, about *max_bytes*.

local order, start = key('order', arg.rollout), tonumber(arg.start)
local page, bytes = {}, 0
for i, id in ipairs(call('LRANGE', order, start, start + tonumber(arg.limit) - 1)) do
  local arguments = text(call('HGET', key('arguments', arg.rollout), id))
  local result = call('HGET', key('results', arg.rollout), id)
  bytes = bytes + #arguments + #text(result)
  if i > 1 and bytes > tonumber(arg.max_bytes) then break end
  page[i] = {id, call('HGET', key('marks', arg.rollout), id), arguments, result and '1' or '', text(result)}
end
return {call('LLEN', order), page}
