-- What beginning a call and ending it have in common.
--
-- A rollout's calls stand in its own record: under a call's id its number, and under that its mark, what was asked
-- and what came back. So a call is looked up with its rollout, and kept in one write.

local function ended() return ' ' .. tostring(now) .. ' ' .. arg.outcome .. ' ' .. arg.shown end

-- Now and then, not with every call: it costs as much as a write.
local function prolong(r, run, kept_at)
  if now - number(kept_at) <= tonumber(arg.retention) / 100 then return end
  call('HSET', r, 'kept_at', now)
  keep(r)
  if run then keep(key('run', run)) end
end
