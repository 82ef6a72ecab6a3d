-- A page of the calls in the order in which they began: at most *limit*, about *max_bytes*.

local r, start = key('rollout', arg.rollout), tonumber(arg.start)
local length = number(call('HGET', r, 'calls'))
local page, bytes = {}, 0
for n = start + 1, math.min(start + tonumber(arg.limit), length) do
  local f = call('HMGET', r, 'mark:' .. n, 'asked:' .. n, 'result:' .. n)
  bytes = bytes + #f[2] + #text(f[3])
  if #page > 0 and bytes > tonumber(arg.max_bytes) then break end
  table.insert(page, {f[1], f[2], f[3]})
end
return {length, page}
