-- The marks of a rollout's calls, which tell of them without what was asked and what came back.

-- As many as Lua surely passes on at once.
local MANY = 1000

local r = key('rollout', arg.rollout)
local length = number(call('HGET', r, 'calls'))
local marks = {}
for first = 1, length, MANY do
  local names = {}
  for n = first, math.min(first + MANY - 1, length) do table.insert(names, 'mark:' .. n) end
  for _, mark in ipairs(call('HMGET', r, unpack(names))) do table.insert(marks, mark) end
end
return marks
